"""Candidates measured aside: one batch is under way while the next is proposed and built, and nothing is lost by it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event as Gate
from typing import Any, TypeVar

import pytest
from conformance.synthetic import SyntheticDevice, clock, make_plan, record

from autosched.device.processes.claimable_build import ClaimableBuild
from autosched.device.protocol import Build
from autosched.search import Result, SearchSpace, Stopwatch, Study, open_study, run
from autosched.store import Measurement, SqliteStore
from autosched.tiling.candidate import Candidate

T = TypeVar("T")
SPACE = SearchSpace([make_plan("a", tiles=4), make_plan("b", 1.3, tiles=4)], clock)


@dataclass
class Beside(SyntheticDevice):
    """Measures in a thread of its own. `told` is what the study knew as each candidate was drafted, `printed` what was
    printed beside measuring; with `settles` a draft waits until all that was begun has been measured. Building takes
    `build_s`, measuring one `measure_s` of real time; measurement `hang_at` waits until it is given up, the first one
    for `first_awaits`."""

    takes_s: float = 0.0
    build_s: float = 0.0
    measure_s: float = 0.0
    hang_at: int | None = None
    first_awaits: Gate | None = None
    broken: int | None = None
    fails: str = ""
    study: Any = None
    settles: bool = False
    told: list[int] = field(default_factory=list)
    begun: list[Future[Any]] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    ends: Gate = field(default_factory=Gate)
    hangs: Gate = field(default_factory=Gate)
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    aside: bool = True

    def begin(self, work: Callable[[], T]) -> Future[T]:
        found = self.pool.submit(work)
        self.begun.append(found)
        return found

    def draft(self, candidate: Candidate) -> ClaimableBuild[Candidate]:
        self.told.append(len(self.study.searched))
        if len(self.told) == self.broken:
            raise ValueError("a mistake")
        if self.settles:
            wait(self.begun)

        def here() -> Candidate:
            self.printed.append(candidate.key)
            return candidate

        return ClaimableBuild(here, self.build, lambda: self.build(candidate))

    def build(self, candidate: Candidate) -> Build:
        time.sleep(self.build_s)
        if self.fails and candidate.key.endswith(self.fails):
            raise ValueError("a mistake, later")
        return super().build(candidate)

    def measure(self, build: Build, repeats: str = "search") -> Measurement:
        time.sleep(self.measure_s)
        if self.first_awaits and not self.measured:
            assert self.first_awaits.wait(20)
        if self.hang_at == len(self.measured):
            self.hangs.set()
            assert self.ends.wait(20)
        return super().measure(build, repeats)

    def warm(self) -> None: ...

    def give_up(self) -> None:
        self.ends.set()
        self.pool.shutdown(cancel_futures=True)


def tune(device: Beside, trials: int = 20, strategy: str = "random", **options: Any) -> tuple[Result, Study]:
    store = options.pop("store", None)
    study = open_study(record(), SPACE, store, strategy_name=strategy, watch=Stopwatch(device.clock))
    device.study = study
    return run(study, device, trials, **options), study


@pytest.mark.sampled(1)
@pytest.mark.parametrize("strategy", ["random", "auto", "evolutionary"])
def test_what_is_proposed_does_not_depend_on_how_long_anything_takes(strategy: str) -> None:
    devices = [Beside(), Beside(measure_s=0.004), Beside(build_s=0.004)]
    studies = [tune(device, 24, strategy, final_rounds=0)[1] for device in devices]
    assert len({tuple(t.key for t in study.searched) for study in studies}) == 1
    assert len({tuple(t.measurement.time_s for t in study.searched) for study in studies}) == 1
    assert len({tuple(device.told) for device in devices}) == 1


def test_a_batch_is_proposed_while_the_one_before_is_measured() -> None:
    device = Beside()
    result, study = tune(device, final_rounds=0)
    assert (result.reason, result.done) == ("trials", 20)
    assert device.told == [0] * 16 + [8] * 4
    assert [t.number for t in study.searched] == list(range(1, 21))


def test_what_else_there_is_to_do_is_done_meanwhile() -> None:
    """All of it, once, and while something is measured: the first measurement takes until a piece is done."""
    for awaited in (0, 1):
        device, done = Beside(first_awaits=Gate() if awaited else None), list[int]()

        def pieces(done: list[int] = done, device: Beside = device) -> Iterator[None]:
            for _ in range(40):
                done.append(len(device.study.searched))
                if device.first_awaits:
                    device.first_awaits.set()
                yield

        result, _ = tune(device, 12, final_rounds=0, meanwhile=pieces())
        assert (result.done, len(done)) == (12, 40)
        assert not awaited or done[0] == 0


def test_who_learns_from_one_trial_at_a_time_knows_them_all() -> None:
    device = Beside()
    result, _ = tune(device, 6, "annealing", final_rounds=0)
    assert result.done == 6
    assert device.told == list(range(6))


def test_ctrl_c_keeps_what_is_measured_and_ends_what_is_not(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")
    device = Beside(hang_at=11)
    told: list[int] = []

    def interrupt(event: object) -> None:
        if type(event).__name__ == "TrialDone":
            told.append(1)
            if len(told) == 8:
                assert device.hangs.wait(20)
                raise KeyboardInterrupt

    result, study = tune(device, store=store, listener=interrupt)
    assert (result.reason, result.exit_code, result.done) == ("interrupted", 130, 11)
    assert device.ends.is_set()
    assert len(store.trials("gemm")) == len(study.trials) == 11


def test_short_of_time_nothing_is_begun_in_advance() -> None:
    device = Beside(takes_s=0.01)
    result, _ = tune(device, 1000, timeout_s=1.0)
    assert result.reason == "timeout"
    assert result.seconds["total"] < 1.0 + 2 * 8 * 2 * device.takes_s


def test_a_mistake_while_building_costs_one_candidate() -> None:
    _, usual = tune(Beside(), final_rounds=0)
    _, study = tune(Beside(broken=4), final_rounds=0)
    assert [t.key for t in study.searched] == [t.key for t in usual.searched]
    assert [t.measurement.status for t in study.searched] == ["ok"] * 3 + ["build"] + ["ok"] * 16
    _, study = tune(Beside(fails=usual.searched[7].key), final_rounds=0)
    assert study.searched[7].measurement.message == "ValueError: a mistake, later"
    assert study.failed == {"build": 1}


@pytest.mark.slow
def test_a_space_is_exhausted_with_all_of_it_measured() -> None:
    device = Beside()
    space = SearchSpace([make_plan("small", tiles=1)], clock)
    study = open_study(record(), space, strategy_name="random", watch=Stopwatch(device.clock))
    device.study = study
    result = run(study, device, 10**6, batch=200, final_rounds=0)
    assert result.reason == "exhausted"
    assert result.done == space.rows


def test_nothing_is_printed_ahead_where_the_other_side_waits_for_more() -> None:
    device = Beside(settles=True)
    result, study = tune(device, final_rounds=0)
    assert result.done == 20
    assert set(device.printed) <= {t.key for t in study.searched[:8]}  # the first batch, with nothing under way before
