"""`tune` says that a kernel was checked only where the device says so."""

from __future__ import annotations

import pytest

from autosched.cli.tune_report import checked
from autosched.store import Measurement

CASES = {
    "not checked": Measurement("ok", 1e-6),
    "not checked: nothing ran": Measurement("ok", 1e-6, extra={"verified_by": "not checked: nothing ran"}),
    "recorded as right": Measurement("ok", 1e-6, extra={"verified": False, "verified_by": "recorded as right"}),
    "against the interpreter: exact": Measurement("ok", 1e-6, max_abs_error=0.0, tolerance=0.0),
    "against the emulator: exact": Measurement("ok", 1e-6, extra={"verified": True, "verified_by": "the emulator"}),
    "against the interpreter: largest error 1.00e-06, allowed 1.00e-05": Measurement(
        "ok", 1e-6, max_abs_error=1e-6, tolerance=1e-5
    ),
    "against the interpreter: exact; not checked: where s = 0: outputs would be infinite, and 1 more": Measurement(
        "ok",
        1e-6,
        max_abs_error=0.0,
        tolerance=0.0,
        extra={"not_checked": ["where s = 0: outputs would be infinite", "where s = 1: so here"]},
    ),
}


@pytest.mark.parametrize("line", CASES)
def test_silence_is_no_check(line: str) -> None:
    assert checked(CASES[line]) == line
    assert CASES[line].verified == line.startswith("against")
