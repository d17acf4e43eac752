"""What the command line says of noise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conformance.synthetic import SyntheticDevice, clock, make_plan, record

import autosched
from autosched import api
from autosched.cli.answers.peak import forget_slow_peak, peak_lines
from autosched.cli.answers.tune_report import as_text
from autosched.cli.progress import Progress
from autosched.device.protocol import Build
from autosched.ir.work import operations
from autosched.search import SearchSpace, Stopwatch, open_study, run
from autosched.search.events import NewBest, Noisy
from autosched.search.request import TuneRequest
from autosched.search.tuning.noise import Noise
from autosched.search.tuning.tune import Tuning
from autosched.store.records import Measurement, Trial

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
        (Noise(0, 15, 0.0, -0.05), ""),
        (
            Noise(0, 15, 0.0, -0.5),
            "noise  the machine was 100% faster in the final round than in the search: "
            "times of trials that did not take part are that much too long",
        ),
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


def test_a_corrected_trial_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(REQUEST, quiet=False, verbose=False)
    progress.peak = progress.work / 1e-3
    fine, corrected = Measurement("ok", 1e-3), Measurement("ok", 5e-4, extra={"level": 1.9})
    for m in (fine, corrected):
        progress(NewBest(Trial(1, "p", 0, {}, m), 1.0))
    first, second = capsys.readouterr().err.splitlines()
    assert "100% of peak" in first
    assert "corrected" not in first
    assert second.endswith("above the peak  (corrected: another machine than at first)  p")


@pytest.mark.parametrize(
    ("ratio", "target", "extra", "rewrites", "says", "kept"),
    [
        (0.98, "native", {}, (), [], True),
        (1.004, "native", {}, (), [], True),
        (1.3, "native", {}, (), ["something slowed the machine when the peak was measured; the next run"], False),
        (1.3, "native", {"level": 2.0}, (), ["the time is corrected for a machine that had changed"], True),
        (1.3, "native", {}, ("defer",), ["rewrites save operations"], True),
        (1.3, "x86-avx512", {}, (), ["the machine is faster than its target states"], True),
    ],
)
def test_more_than_the_peak_is_never_printed_without_a_reason(
    tmp_path: Path, ratio: float, target: str, extra: dict[str, float], rewrites: Any, says: list[str], kept: bool
) -> None:
    work = operations(REQUEST.program)
    machine = replace(REQUEST.target, name=target)
    peaks = tmp_path / "peaks.json"
    peaks.write_text("{}")
    tuning: Any = SimpleNamespace(
        peak=("x86/vfmadd.f32.zmm", work / 1e-3),
        request=replace(REQUEST, target=machine),
        study=SimpleNamespace(record=SimpleNamespace(device="cpu")),
    )
    best: Any = SimpleNamespace(
        time_s=1e-3 / ratio,
        trial=SimpleNamespace(measurement=Measurement("ok", 1e-3 / ratio, extra=extra)),
        candidate=SimpleNamespace(plan=SimpleNamespace(rewrites=rewrites)),
    )
    first, *others = peak_lines(tuning, best)
    assert first.startswith(f"{ratio:.0%} of the peak of x86/vfmadd.f32.zmm ")
    assert len(others) == len(says)
    assert all(line.startswith(f"more than there can be: {said}") for line, said in zip(others, says, strict=True))
    forget_slow_peak(tuning, best, peaks)
    assert peaks.exists() == kept
    tuning.study.record.device = "simulator"
    assert peak_lines(tuning, best) == []


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
