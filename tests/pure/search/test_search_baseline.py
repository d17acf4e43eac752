"""The loops as written are measured in turn with the best kernel, where that does not take long."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from autosched.cli.answers.tune_report import beside
from autosched.device.protocol import Build
from autosched.ir import workload
from autosched.machine.catalogue import load_target
from autosched.search.tuning.baseline import FEWEST, IN_TURN_S, MOST, Baseline, literal_plan, measure_baseline
from autosched.search.tuning.tune import limit_loops
from autosched.store.records import Measurement

PROGRAM, TARGET = workload("matmul", m=8, n=8, k=8), load_target("portable")
BEST: Any = SimpleNamespace(candidate="the best", time_s=1e-4)


class Alone:
    """Times by name: the machine is twice as slow while one is measured alone."""

    def __init__(self, loops_s: float, status: str = "ok") -> None:
        self.loops_s, self.status = loops_s, status
        self.races: list[tuple[list[Any], int]] = []

    def build(self, candidate: Any) -> Build:
        return Build(candidate, "the best" if candidate == "the best" else candidate.plan.name)

    def measure(self, build: Build, repeats: str = "search") -> Measurement:
        return Measurement("ok", 2 * self.loops_s)


class InTurn(Alone):
    def measure_interleaved(self, builds: Sequence[Build], rounds: int) -> list[Measurement]:
        self.races.append(([b.payload for b in builds], rounds))
        return [Measurement("ok", BEST.time_s), Measurement(self.status, self.loops_s)]


def measured(device: Any) -> Baseline | None:
    return measure_baseline(PROGRAM, TARGET, device, 0.0, BEST)


def test_both_take_turns() -> None:
    device = InTurn(1e-3)
    assert measured(device) == Baseline("the loops as written", 1e-3, BEST.time_s)
    assert device.races == [(["the best", literal_plan(PROGRAM, TARGET).name], MOST)]


def test_slow_loops_have_few_rounds_or_none() -> None:
    device = InTurn(IN_TURN_S / 20)
    assert measured(device) == Baseline("the loops as written", IN_TURN_S / 20, BEST.time_s)
    ((_, rounds),) = device.races
    assert FEWEST <= rounds < MOST
    slow = InTurn(IN_TURN_S)
    assert measured(slow) == Baseline("the loops as written", 2 * IN_TURN_S)
    assert not slow.races


def test_where_no_race_comes_out_right_the_first_measurement_counts() -> None:
    assert measured(InTurn(1e-3, "wrong")) == Baseline("the loops as written", 2e-3)
    assert measured(Alone(1e-3)) == Baseline("the loops as written", 2e-3)


@pytest.mark.parametrize(
    ("baseline", "device", "said"),
    [
        (Baseline("it", 1e-3, 5e-4), "cpu", "2x as fast as it (1.00 ms, measured in turn with the best, at 500 µs)"),
        (Baseline("it", 1e-3), "cpu", "4x as fast as it (1.00 ms, measured alone)"),
        (Baseline("it", 1e-3), "simulator", "4x as fast as it (1.00 ms)"),
    ],
)
def test_the_answer_says_what_is_compared(baseline: Baseline, device: str, said: str) -> None:
    assert beside(baseline, 2.5e-4, device) == said


def test_the_loops_as_written_have_a_tenth_of_a_limited_time() -> None:
    device = SimpleNamespace(plain_s=20.0)
    limit_loops(device, None)
    assert device.plain_s == 20.0
    limit_loops(device, 30.0)
    assert device.plain_s == pytest.approx(3.0)
    limit_loops(device, 600.0)
    assert device.plain_s == pytest.approx(3.0)
    limit_loops(SimpleNamespace(), 30.0)
