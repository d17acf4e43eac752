"""Comparisons on a synthetic device: fair, paired, reproducible, and honest about runs that found nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from conformance.synthetic import SyntheticDevice, clock, make_plan, record, tiny_plan

from autosched.errors import NoScheduleError, UnknownNameError, UsageError, WrongResultError
from autosched.report.comparison import StrategyComparison
from autosched.search import SearchSpace, open_study, run, strategy
from autosched.search.evaluate.compare import MemoizingDevice, Row, RunDone, compare, contestants, seeds_of
from autosched.search.strategy.simple import Random
from autosched.store.records import Trial
from autosched.tiling.candidate import Candidate


def space() -> SearchSpace:
    return SearchSpace([make_plan("a", tiles=3), make_plan("b", 1.2, tiles=2)], clock, threads=1)


def rows_of(
    names: Sequence[str] = ("random", "clock"),
    trials: int = 12,
    seeds: int = 3,
    device: SyntheticDevice | None = None,
    over: SearchSpace | None = None,
    listener: list[RunDone] | None = None,
) -> tuple[Row, ...]:
    device = device or SyntheticDevice()
    chosen, numbers = contestants(list(names), "analytic"), seeds_of(seeds)
    on_run = None if listener is None else listener.append
    return compare(over or space(), device, record(), chosen, trials, numbers, on_run=on_run, clock=device.clock).some()


def test_every_run_is_what_tuning_alone_does() -> None:
    """The same candidates in the same order as a study of that strategy and seed, with times of the shared device."""
    for name in ("random", "evolutionary", "auto", "clock"):
        compared = rows_of([name], seeds=2, device=SyntheticDevice(noise=0.0))
        for seed in (0, 1):
            study = open_study(replace(record(), seed=seed), space(), strategy_name=name, model_name="analytic")
            run(study, SyntheticDevice(noise=0.0), 12, final_rounds=0)
            mine = [(r.plan, r.row, r.time_s) for r in compared if r.seed == seed]
            assert mine == [(t.plan, t.row, t.measurement.time_s) for t in study.searched]


def test_a_candidate_is_measured_once() -> None:
    device = SyntheticDevice(noise=0.2)
    rows = rows_of(["clock", "auto", "random"], device=device)
    assert len(device.measured) == len(set(device.measured)) == len({(r.plan, r.row) for r in rows}) < len(rows)
    times: dict[tuple[str, int], float | None] = {}
    for r in rows:
        assert times.setdefault((r.plan, r.row), r.time_s) == r.time_s


def test_rows_are_in_order_and_best_is_the_running_minimum() -> None:
    rows = rows_of(["random", "clock"], trials=7, seeds=2)
    expected = [(s, seed, t) for s in ("random", "clock") for seed in (0, 1) for t in range(1, 8)]
    assert [tuple(r[:3]) for r in rows] == expected
    for start in range(0, len(rows), 7):
        times = [r.time_s for r in rows[start : start + 7]]
        assert [r.best_s for r in rows[start : start + 7]] == np.minimum.accumulate(times).tolist()
    assert all(isinstance(r, tuple) for r in rows)


def test_elapsed_time_counts_what_remembering_saved() -> None:
    """`clock` proposes the same rows for every seed: the second run measures nothing and has taken as long."""
    device = SyntheticDevice(takes_s=0.5)
    rows = rows_of(["clock"], trials=5, seeds=2, device=device)
    assert len(device.measured) == 5
    assert [r.elapsed_s for r in rows] == pytest.approx([1, 2, 3, 4, 5, 1, 2, 3, 4, 5])


def test_a_device_that_raises_is_asked_again_with_the_whole_build() -> None:
    device = SyntheticDevice(fail=lambda c: "raise")
    remembering = MemoizingDevice(device, device.clock)
    (candidate,) = space().candidates(space().best(1)[0])
    for _ in range(2):
        with pytest.raises(RuntimeError):
            remembering.measure(remembering.build(candidate))
    device.fail = None
    build = remembering.build(candidate)
    assert build.payload is candidate
    assert remembering.measure(build).ok
    assert remembering.build(candidate).payload is None


def test_failures_count_as_trials() -> None:
    kinds = {0: "build", 1: "crash", 2: "wrong", 3: "timeout", 4: "raise"}
    rows = rows_of(["random", "auto"], device=SyntheticDevice(fail=lambda c: kinds.get(c.row % 7)), trials=20)
    assert len(rows) == 2 * 3 * 20
    assert {"build", "crash", "wrong", "timeout", "ok"} <= {r.status for r in rows}
    assert all((r.time_s is None) == (r.status != "ok") for r in rows)


def test_a_run_in_which_everything_failed_is_a_run_like_any_other() -> None:
    """Only the row that `clock` proposes first comes out right, and `random` does not come by it."""
    (first,) = strategy("clock", space()).propose(1)
    device = SyntheticDevice(fail=lambda c: None if c.key == first.key else "crash")
    rows = rows_of(["random", "clock"], device=device, trials=4, seeds=2)
    assert [(r.status, r.best_s) for r in rows[:8]] == [("crash", None)] * 8
    assert all(r.best_s is not None for r in rows[8:])


@pytest.mark.parametrize(("kind", "error"), [("crash", NoScheduleError), ("wrong", WrongResultError)])
def test_when_everything_failed_the_reason_is_said(kind: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"it went {kind}"):
        rows_of(device=SyntheticDevice(fail=lambda c: kind), trials=4)


def test_a_small_space_ends_the_run() -> None:
    done: list[RunDone] = []
    rows = rows_of(["random", "clock"], trials=20, over=SearchSpace([tiny_plan()], clock), seeds=2, listener=done)
    assert [(d.strategy, d.seed, d.trials, d.done, d.total) for d in done] == [
        ("random", 0, 7, 1, 4), ("random", 1, 7, 2, 4), ("clock", 0, 7, 3, 4), ("clock", 1, 7, 4, 4)
    ]  # fmt: skip
    assert len({d.best_s for d in done}) == 1
    curves = StrategyComparison("p", "t", "d", ("random", "clock"), (0, 1), 20, rows).curves
    assert {c.shape for c in curves.values()} == {(2, 20)}
    assert all((c[:, 6:] == done[0].best_s).all() for c in curves.values())


def test_an_empty_space() -> None:
    with pytest.raises(NoScheduleError, match="no trials"):
        rows_of(["random"], over=SearchSpace([], clock))


def test_a_strategy_of_ones_own() -> None:
    class Last:
        """Proposes the last rows first."""

        def __init__(self, space: SearchSpace, seed: int, model: object) -> None:
            self.space, self.next = space, space.rows

        def propose(self, n: int) -> list[Candidate]:
            first, self.next = max(0, self.next - n), max(0, self.next - n)
            return self.space.candidates(self.space.locate(np.arange(first, min(first + n, self.space.rows))))

        def observe(self, trials: Sequence[Trial]) -> None:
            pass

    chosen = contestants([Last, "random", Random])
    assert [c.name for c in chosen] == ["Last", "random", "Random"]
    rows = compare(space(), SyntheticDevice(), record(), chosen, 5, (0, 3)).some()
    by = {name: [(r.seed, r.plan, r.row) for r in rows if r.strategy == name] for name in ("Last", "random", "Random")}
    assert by["random"] == by["Random"] != by["Last"]
    assert {seed for seed, _, _ in by["Last"]} == {0, 3}


def test_a_cost_model_for_one_strategy() -> None:
    chosen = contestants(["auto", "auto:analytic"], "xgb")
    assert [(c.name, c.model) for c in chosen] == [("auto", "xgb"), ("auto:analytic", "analytic")]


def test_ctrl_c_ends_the_comparison() -> None:
    with pytest.raises(KeyboardInterrupt):
        rows_of(device=SyntheticDevice(interrupt_after=3))


@pytest.mark.parametrize(
    ("names", "error", "said"),
    [
        ([], UsageError, "no strategy"),
        (["randon"], UnknownNameError, "did you mean 'random'"),
        (["auto:xgbb"], UnknownNameError, "did you mean 'xgb'"),
        (["random", "auto", "random"], UsageError, "random is given twice"),
    ],
)
def test_strategies_that_cannot_be(names: list[str], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        contestants(names)


@pytest.mark.parametrize("seeds", [0, -3, [], [1, 1], [-1]])
def test_seeds_that_cannot_be(seeds: int | list[int]) -> None:
    with pytest.raises(UsageError, match="seed"):
        seeds_of(seeds)


def test_no_trials() -> None:
    with pytest.raises(UsageError, match="0 trials"):
        rows_of(trials=0)
