"""`tune` says that a kernel was checked only where the device says so."""

from __future__ import annotations

import pytest

from autosched.cli.answers.tune_report import checked, out_of_time
from autosched.store import Measurement

LEFT_OUT = ["the data set 's = 0': outputs would be infinite", "the data set 's = 1': so here"]
CASES = {
    "not checked": Measurement("ok", 1e-6),
    "not checked: nothing ran": Measurement("ok", 1e-6, extra={"verified_by": "not checked: nothing ran"}),
    "recorded as right": Measurement("ok", 1e-6, extra={"verified": False, "verified_by": "recorded as right"}),
    "against the interpreter: exact": Measurement("ok", 1e-6, max_abs_error=0.0, tolerance=0.0),
    "against the emulator: exact": Measurement("ok", 1e-6, extra={"verified": True, "verified_by": "the emulator"}),
    "against the interpreter: largest error 1.00e-06, allowed 1.00e-05": Measurement(
        "ok", 1e-6, max_abs_error=1e-6, tolerance=1e-5
    ),
    "against the interpreter in boxes, and the loops as written: exact": Measurement(
        "ok", 1e-6, max_abs_error=0.0, tolerance=0.0, extra={"whole": 1.0}
    ),
    "against the interpreter: largest error 1.00e-06, allowed 1.00e-03, the bound of the worst rounding": Measurement(
        "ok", 1e-6, max_abs_error=1e-6, tolerance=1e-3
    ),
    f"against the interpreter: exact; not checked: {LEFT_OUT[0]}; and 1 more": Measurement(
        "ok",
        1e-6,
        max_abs_error=0.0,
        tolerance=0.0,
        extra={"not_checked": LEFT_OUT},
    ),
}


@pytest.mark.parametrize("line", CASES)
def test_silence_is_no_check(line: str) -> None:
    assert checked(CASES[line]) == line
    assert CASES[line].verified == line.startswith("against")


@pytest.mark.parametrize(
    ("done", "best", "finals", "said"),
    [
        (4, CASES["not checked"], True, "after 4 trials"),
        (1, CASES["not checked"], False,
         "after 1 trial, before the final round: the best was measured in the search alone, and not verified"),
        (2, CASES["against the interpreter: exact"], False,
         "after 2 trials, before the final round: the best was measured in the search alone"),
    ],
)  # fmt: skip
def test_the_end_of_the_time_says_what_is_missing(done: int, best: Measurement, finals: bool, said: str) -> None:
    assert out_of_time(60.0, done, best, finals) == f"--timeout 60 s was over {said}"
