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
from autosched.device.protocol import Build
from autosched.search import SearchSpace, Stopwatch, open_study, run
from autosched.search.events import Noisy
from autosched.search.request import TuneRequest
from autosched.search.tuning.noise import Noise
from autosched.search.tuning.tune import Tuning
from autosched.store.records import Measurement

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
    assert told(SyntheticDevice(), noise) == ([says] if says else [])


@pytest.mark.parametrize(("level", "than"), [(1.6, "1.6x as slow as"), (0.6, "1.67x as fast as")])
def test_the_answer_says_how_many_trials_met_another_machine(level: float, than: str) -> None:
    class Other(SyntheticDevice):
        """The third and the fourth trial meet a slower or faster machine."""

        def measure(self, build: Build, repeats: str = "search") -> Measurement:
            found = super().measure(build, repeats)
            return replace(found, extra=found.extra | {"level": level}) if len(self.measured) in (3, 4) else found

    said = f"noise  2 of 8 trials met a machine {than} at first; their times are corrected for it"
    assert told(Other(), None) == [said]


@pytest.mark.parametrize(("spread", "says"), [(0.05, False), (1.38, True)])
def test_a_wide_spread_is_told(spread: float, says: bool) -> None:
    class Wide(SyntheticDevice):
        def measure(self, build: Build, repeats: str = "search") -> Measurement:
            return replace(super().measure(build, repeats), spread=spread)

    said = "noise  the middle half of the best's times spans 138% of their median (quiet: below 10%)"
    assert told(Wide(), None, final_rounds=0) == ([said] if says else [])


def told(device: SyntheticDevice, noise: Noise | None, **options: Any) -> list[str]:
    """What a run of eight trials says of noise."""
    space: Any = SearchSpace([make_plan("a", tiles=4)], clock)
    study = open_study(record(), space, strategy_name="random", watch=Stopwatch(device.clock))
    result = run(study, device, 8, **options)
    assert result.best is not None
    tuning = Tuning(REQUEST, study, device, (), (), study.watch)
    text = as_text(tuning, replace(result, noise=noise), brief=False)
    return [line for line in text.splitlines() if line.startswith("noise")]
