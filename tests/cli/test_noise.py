"""What the command line says of noise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from conformance.synthetic import SyntheticDevice, clock, make_plan, record

import autosched
from autosched import api
from autosched.cli.progress import Progress
from autosched.cli.tune_report import as_text
from autosched.search import SearchSpace, Stopwatch, open_study, run
from autosched.search.events import Noisy
from autosched.search.noise import Noise
from autosched.search.request import TuneRequest
from autosched.search.tune import Tuning

REQUEST = TuneRequest(autosched.workload("matmul", m=8, n=8, k=8), api.target("x86-avx512"))


def test_a_disturbed_round_is_told_when_it_happens(capsys: pytest.CaptureFixture[str]) -> None:
    told = Progress(REQUEST, quiet=False, verbose=False)
    told(Noisy(7, 15, 0.2, again=True))
    told(Noisy(9, 30, 0.1, again=False))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "noise  7 of 15 rounds were 20% slower for all alike: they are run again"
    assert lines[1].endswith("quiet rounds decide where there are enough")


@pytest.mark.parametrize(
    ("noise", "says"),
    [
        (Noise(0, 15, 0.0, 0.02), ""),
        (Noise(3, 15, 0.3, 0.02), ""),
        (Noise(9, 15, 0.3, 0.02), "noise  9 of 15 rounds of the final were disturbed, 30% slower"),
        (Noise(0, 15, 0.0, 0.25), "noise  the machine was 25% slower in the final round than in the search"),
    ],
)
def test_the_answer_says_what_stayed(noise: Noise, says: str) -> None:
    device = SyntheticDevice()
    space: Any = SearchSpace([make_plan("a", tiles=4)], clock)
    study = open_study(record(), space, strategy_name="random", watch=Stopwatch(device.clock))
    result = replace(run(study, device, 8), noise=noise)
    assert result.best is not None
    text = as_text(Tuning(REQUEST, study, device, (), (), study.watch), result, brief=False)
    found = [line for line in text.splitlines() if line.startswith("noise")]
    assert found == ([says] if says else [])
