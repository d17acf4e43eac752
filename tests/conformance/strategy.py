"""What every strategy must do; subclass and provide `make`."""

from __future__ import annotations

import numpy as np
import pytest
from conformance.synthetic import FakePlan, SyntheticDevice, clock, make_plan, tiny_plan

from autosched.logic import Var
from autosched.search import SearchSpace, Strategy
from autosched.store import Measurement, Trial
from autosched.tiling.candidate import Candidate
from autosched.tiling.space.space import Space
from autosched.tiling.step import Decision, Rule, Step


def space() -> SearchSpace:
    return SearchSpace([make_plan("a", tiles=3), make_plan("b", 1.2, tiles=2), make_plan("slow", 50.0, tiles=2)], clock)


def tiny() -> SearchSpace:
    return SearchSpace([tiny_plan("x"), tiny_plan("y")], clock)


def trial(number: int, candidate: Candidate, measurement: Measurement) -> Trial:
    named = candidate.schedule.named
    return Trial(number, candidate.plan.name, candidate.row, named, measurement, candidate.analytic_s)


def play(strategy: Strategy, batches: int, n: int, device: SyntheticDevice | None = None) -> list[Trial]:
    """Propose, measure, observe."""
    device = device or SyntheticDevice()
    done: list[Trial] = []
    for _ in range(batches):
        batch = strategy.propose(n)
        told = [trial(len(done) + i + 1, c, device.measure(device.build(c))) for i, c in enumerate(batch)]
        strategy.observe(told)
        done += told
    return done


class StrategyConformance:
    def make(self, space: SearchSpace, seed: int = 0) -> Strategy:
        raise NotImplementedError

    def test_reproducible_by_seed(self) -> None:
        runs = [play(self.make(space(), seed=5), 4, 6) for _ in range(2)]
        assert [t.key for t in runs[0]] == [t.key for t in runs[1]]

    def test_proposals_are_legal_and_carry_the_clock(self) -> None:
        found = space()
        for candidate in self.make(found).propose(20):
            assert candidate.plan.space.violated(candidate.row) == ()
            values = candidate.plan.space.values([candidate.row])
            assert candidate.analytic_s == pytest.approx(float(clock(candidate.plan, values)["total"][0]), rel=1e-5)

    def test_as_many_as_asked_for_and_none_twice(self) -> None:
        strategy = self.make(space())
        done = [t.key for t in play(strategy, 5, 7)]
        done += [c.key for c in strategy.propose(7)]  # not told
        done += [c.key for c in strategy.propose(7)]
        assert len(done) == len(set(done)) == 49

    def test_measured_rows_are_not_proposed(self) -> None:
        before = play(self.make(space(), seed=1), 4, 8)
        strategy = self.make(space(), seed=1)
        strategy.observe(before)
        assert not {c.key for c in strategy.propose(40)} & {t.key for t in before}

    @pytest.mark.parametrize("n", [1, 5, 100])
    def test_exhausts_a_tiny_space_and_then_has_no_more(self, n: int) -> None:
        strategy = self.make(tiny())
        done: list[str] = []
        while batch := play(strategy, 1, n):
            done += [t.key for t in batch]
            assert len(done) <= 14
        assert sorted(done) == sorted([f"{p}#{r}" for p in "xy" for r in range(7)])
        assert strategy.propose(n) == []

    def test_failures_are_tolerated(self) -> None:
        kinds = ["ok", "build", "crash", "timeout", "wrong", "refused"]
        device = SyntheticDevice(fail=lambda c: None if c.row % 6 == 0 else kinds[c.row % 6])
        done = play(self.make(space()), 6, 8, device)
        assert len({t.key for t in done}) == 48

    def test_only_failures_are_tolerated(self) -> None:
        done = play(self.make(space()), 4, 8, SyntheticDevice(fail=lambda c: "crash"))
        assert len({t.key for t in done}) == 32

    def test_trials_of_unknown_plans_are_ignored(self) -> None:
        strategy = self.make(tiny())
        strategy.observe([Trial(1, "gone", 3, {}, Measurement("ok", 1e-3))])
        assert len(strategy.propose(3)) == 3

    def test_an_empty_space(self) -> None:
        nothing = Rule("never", Var("d") > 2, "{d} is not above 2")
        plan = FakePlan("empty", Space("empty", [Step("s", (Decision("d", (1, 2)),), (nothing,))]))
        assert self.make(SearchSpace([plan], clock)).propose(4) == []
        assert self.make(SearchSpace([], clock)).propose(4) == []

    def test_nothing_asked_nothing_given(self) -> None:
        assert self.make(tiny()).propose(0) == []

    def test_numbers_are_plain(self) -> None:
        for candidate in self.make(tiny()).propose(3):
            assert type(candidate.row) is int
            assert type(candidate.analytic_s) is float
            predicted = candidate.predicted_s
            assert predicted is None or (type(predicted) is float and np.isfinite(predicted))
