"""The study and the tuning loop: budgets, Ctrl-C, resuming, asking and telling by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from conformance.synthetic import SyntheticDevice, clock, record, tiny_plan
from hypothesis import given
from hypothesis import strategies as st
from support.studies import SPACE, kinds, tune

from autosched.device.protocol import Build
from autosched.errors import NoScheduleError, StoreError, UsageError
from autosched.search import Result, SearchSpace, Stopwatch, open_study
from autosched.search.events import NewBest, Stopped, StudyOpened, TrialDone
from autosched.store import Measurement, SqliteStore
from autosched.tiling.candidate import Candidate


def test_a_run_and_its_events() -> None:
    result, study, events = tune(20, operations=2e6)
    assert (result.reason, result.done, result.failed, result.exit_code) == ("trials", 20, {}, 0)
    assert result.best is not None
    assert len(study.searched) == 20
    assert isinstance(events[0], StudyOpened)
    assert events[0].created
    assert isinstance(events[-1], Stopped)
    done = [e for e in events if isinstance(e, TrialDone)]
    assert [e.done for e in done] == list(range(1, 21))
    assert [e.trial.number for e in done] == list(range(1, 21))
    best = [e.best_s or 0.0 for e in done]
    assert best == sorted(best, reverse=True)
    news = [e for e in events if isinstance(e, NewBest)]
    assert news[-1].gflops == pytest.approx(2e6 / min(best) / 1e9)
    assert kinds(events)["FinalRound"] == 1


def test_seconds_are_accounted_for() -> None:
    result, _, _ = tune(20)
    seconds = result.seconds
    assert set(seconds) == {"total", "match", "search", "build", "check", "measure", "model", "other"}
    assert seconds["total"] == pytest.approx(sum(v for k, v in seconds.items() if k != "total"))
    assert seconds["build"] == pytest.approx(0.01 * (20 + len(finalists_of(result))))
    assert seconds["check"] == pytest.approx(seconds["measure"] / 3)


def finalists_of(result: Result) -> set[int]:
    assert result.best is not None
    return set(range(round(result.seconds["build"] / 0.01) - 20))


def test_the_total_counts_over_runs_and_the_seed_is_the_first(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "a.db") as store:
        tune(12, store=store, seed=5)
    with SqliteStore(tmp_path / "a.db") as store:
        result, study, events = tune(20, store=store, seed=6)
        assert study.seed == 5
        assert result.done == 20
        opened = events[0]
        assert isinstance(opened, StudyOpened)
        assert (opened.done, opened.total, opened.created, opened.seed) == (12, 20, False, 5)
        assert kinds(events)["TrialDone"] == 8
        assert len({t.key for t in study.searched}) == 20
        assert [t.number for t in study.searched] == list(range(1, 21))
        assert store.trials("gemm") == study.trials


def test_a_finished_study_answers_without_measuring(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")
    first, _, _ = tune(12, store=store)
    device = SyntheticDevice()
    again, _, events = tune(12, device, store=store)
    assert device.measured == []
    assert "FinalRound" not in kinds(events)
    assert (again.best, again.distinguishable) == (first.best, first.distinguishable)


def test_resuming_proposes_what_an_uninterrupted_run_would(tmp_path: Path) -> None:
    whole = tune(16, final_rounds=0, strategy="auto")[1]
    store = SqliteStore(tmp_path / "a.db")
    for total in (8, 16):
        device = SyntheticDevice(measured=["already"] * (total - 8))  # its noise goes by the count
        parts = tune(total, device, store=store, final_rounds=0, strategy="auto")[1]
    assert [t.key for t in parts.searched] == [t.key for t in whole.searched]


def test_ctrl_c_keeps_everything(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")
    result, study, events = tune(20, SyntheticDevice(interrupt_after=7), store=store)
    assert (result.reason, result.exit_code, result.done) == ("interrupted", 130, 7)
    assert len(store.trials("gemm")) == 7
    assert isinstance(events[-1], Stopped)
    assert events[-1].reason == "interrupted"
    assert result.best is not None
    assert result.best.time_s == study.best_s
    again, study, _ = tune(20, store=store)
    assert again.done == 20
    assert len({t.key for t in study.searched}) == 20


def test_ctrl_c_before_the_first_trial() -> None:
    result, _, _ = tune(20, SyntheticDevice(interrupt_after=0))
    assert (result.reason, result.best, result.exit_code) == ("interrupted", None, 130)


def test_ctrl_c_in_the_final_round_keeps_the_search() -> None:
    result, study, _ = tune(20, SyntheticDevice(interrupt_after=22))
    assert (result.reason, result.done) == ("interrupted", 20)
    assert result.best is not None
    assert study.finals == []


def test_time_runs_out() -> None:
    result, _, _ = tune(10_000, timeout_s=2.0)
    assert result.reason == "timeout"
    assert 30 < result.done < 100  # 0.02 s each, and some of the time is for the final round
    assert result.seconds["total"] <= 2.0 + 0.1
    assert result.distinguishable is not None


def test_one_candidate_is_measured_however_short_the_time() -> None:
    result, _, _ = tune(10, SyntheticDevice(takes_s=5.0), timeout_s=1.0)
    assert (result.reason, result.done) == ("timeout", 1)


def test_a_hung_candidate_does_not_end_the_run_early() -> None:
    class Hanging(SyntheticDevice):
        def measure(self, build: Build, repeats: str = "search") -> Measurement:
            if len(self.measured) == 2:
                self.now += 10.0
                self.measured.append("hung")
                return Measurement("timeout", message="10 s are over")
            return super().measure(build, repeats)

    result, _, events = tune(10_000, Hanging(), timeout_s=20.0)
    assert result.done > 200
    assert result.failed == {"timeout": 1}
    assert kinds(events)["WorkerDied"] == 1


def test_a_small_space_is_exhausted() -> None:
    result, _, _ = tune(100, space=SearchSpace([tiny_plan()], clock))
    assert (result.reason, result.done) == ("exhausted", 7)
    assert result.runner_up is not None


@pytest.mark.parametrize(("trials", "timeout_s"), [(0, None), (-3, None), (5, 0.0)])
def test_a_budget_of_nothing(trials: int, timeout_s: float | None) -> None:
    with pytest.raises(UsageError, match="must be"):
        tune(trials, timeout_s=timeout_s)


def test_ask_and_tell_by_hand() -> None:
    built: list[Candidate] = []
    study = open_study(record(), SPACE, strategy_name="auto", builder=built.append)
    device = SyntheticDevice()
    with pytest.raises(NoScheduleError, match="no trials yet"):
        _ = study.best
    for candidate in study.ask(16):
        study.tell(candidate, device.measure(device.build(candidate)))
    assert len(study.trials) == 16
    best = study.best
    assert best.time_s == min(t.measurement.time_s or 9 for t in study.trials)
    assert best.schedule.named == best.trial.schedule
    best.build()
    assert built == [best.candidate]


def test_a_study_without_a_builder_says_so() -> None:
    _, study, _ = tune(5)
    with pytest.raises(NoScheduleError, match="without a device"):
        study.best.build()


def test_another_key_is_another_study() -> None:
    store = SqliteStore(":memory:")
    open_study(record(), SPACE, store)
    with pytest.raises(StoreError, match="toolchain"):
        open_study(record(toolchain="2"), SPACE, store)
    assert open_study(record(toolchain="2"), SPACE, store, fresh=True).trials == []


def test_a_trial_of_a_plan_that_is_gone() -> None:
    _, study, _ = tune(5)
    with pytest.raises(StoreError, match="does not have"):
        study.candidate(replace(study.trials[0], plan="gone"))



@given(steps=st.lists(st.tuples(st.sampled_from(["build", "model", "search", "end"]), st.integers(1, 9)), max_size=30))
def test_nested_phases_add_up(steps: list[tuple[str, int]]) -> None:
    now = [0.0]
    watch = Stopwatch(lambda: now[0])
    own: Counter[str] = Counter()
    with ExitStack() as stack:
        inside: list[str] = []
        for name, seconds in steps:
            now[0] += seconds
            own[inside[-1] if inside else "other"] += seconds
            if name != "end":
                stack.enter_context(watch.phase(name))
                inside.append(name)
    found = watch.seconds()
    assert found.pop("total") == sum(found.values()) == sum(own.values())
    assert {k: v for k, v in found.items() if v} == dict(own)


@dataclass
class Together(SyntheticDevice):
    """Builds a batch before any of it is measured; `broken` fails on one candidate as no candidate may."""

    broken: str = ""
    lots: list[int] = field(default_factory=list)
    built: list[str] = field(default_factory=list)

    def build(self, candidate: Candidate) -> Build:
        self.built.append(candidate.key)
        if candidate.key == self.broken:
            raise ValueError("a mistake")
        return super().build(candidate)

    def build_all(self, candidates: Sequence[Candidate]) -> list[Build]:
        self.lots.append(len(candidates))
        return [self.build(c) for c in candidates]


def test_a_batch_is_built_before_it_is_measured() -> None:
    device = Together()
    result, study, _ = tune(20, device)
    assert device.lots == [8, 8, 4]
    assert device.built == [t.key for t in study.searched], "finalists are not built again"
    _, alone, _ = tune(20)
    assert device.built == [t.key for t in alone.searched]
    assert result.seconds["build"] == pytest.approx(0.2)


def test_a_mistake_in_a_batch_costs_one_candidate() -> None:
    _, usual, _ = tune(8)
    _, study, _ = tune(8, Together(broken=usual.searched[3].key))
    assert [t.measurement.status for t in study.searched] == ["ok"] * 3 + ["build"] + ["ok"] * 4


def test_what_is_short_of_time_is_built_one_by_one() -> None:
    device = Together()
    result, _, _ = tune(1000, device, timeout_s=1.0)
    assert result.reason == "timeout"
    assert result.seconds["total"] < 1.0 + device.takes_s
    assert device.lots[0] == 8
