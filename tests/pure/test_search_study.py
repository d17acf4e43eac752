"""The study and the tuning loop: budgets, failures, Ctrl-C, resuming, the final round."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from conformance.synthetic import SyntheticDevice, clock, make_plan, record, tiny_plan
from hypothesis import given
from hypothesis import strategies as st

from autosched.device.protocol import Build
from autosched.errors import MissingError, NoScheduleError, StoreError, UsageError, WrongResultError
from autosched.search import Event, Result, SearchSpace, Stopwatch, Study, open_study, run
from autosched.search.events import FinalRound, NewBest, Stopped, StudyOpened, TrialDone, WorkerDied
from autosched.search.final import distinguishable, finalists, pooled, race
from autosched.store import Measurement, SqliteStore, Trial
from autosched.tiling.schedule import Candidate

PLANS = [make_plan("a", tiles=4), make_plan("b", 1.3, tiles=4)]
SPACE = SearchSpace(PLANS, clock)


def tune(
    trials: int = 20,
    device: SyntheticDevice | None = None,
    store: Any = None,
    timeout_s: float | None = None,
    strategy: str = "random",
    space: SearchSpace = SPACE,
    seed: int = 0,
    **options: Any,
) -> tuple[Result, Study, list[Event]]:
    device = device or SyntheticDevice()
    events: list[Event] = []
    watch = Stopwatch(device.clock)
    study = open_study(record(seed=seed), space, store, strategy_name=strategy, watch=watch)
    return run(study, device, trials, timeout_s, listener=events.append, **options), study, events


def kinds(events: list[Event]) -> dict[str, int]:
    return dict(Counter(type(e).__name__ for e in events))


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


# Failures


def test_failures_are_trials_of_their_kind() -> None:
    ways = {0: None, 1: "build", 2: "crash", 3: "timeout", 4: "raise"}
    result, study, events = tune(40, SyntheticDevice(fail=lambda c: ways[c.row % 5]))
    assert result.done == 40
    assert sum(result.failed.values()) == sum(t.row % 5 != 0 for t in study.searched)
    assert set(result.failed) == {"build", "crash", "timeout"}
    assert study.failures["build"][0].measurement.message == "no such instruction\nin line 3"
    assert any(t.measurement.message == "RuntimeError: the device broke" for t in study.failures["crash"])
    died = [e for e in events if isinstance(e, WorkerDied)]
    assert len(died) == result.failed["crash"] + result.failed["timeout"]
    assert (result.wrong, result.exit_code) == (False, 0)


def test_a_wrong_answer_never_wins_and_is_said() -> None:
    result, study, _ = tune(30, SyntheticDevice(fail=lambda c: "wrong" if c.row % 2 else None))
    assert (result.wrong, result.exit_code) == (True, 4)
    assert result.best is not None
    assert result.best.candidate.row % 2 == 0
    assert study.failed == {"wrong": sum(t.row % 2 for t in study.searched)}


def test_a_wrong_answer_in_the_final_round_disqualifies() -> None:
    class Flaky(SyntheticDevice):
        def measure(self, build: Build, repeats: str = "search") -> Measurement:
            found = super().measure(build, repeats)
            return found if repeats == "search" or build.candidate.key != first else replace(found, status="wrong")

    study = tune(20, final_rounds=0)[1]
    first = study.ranking[0].key
    result, study, _ = tune(20, Flaky())
    assert result.wrong
    assert result.best is not None
    assert result.best.trial.key != first
    assert study.failed == {}  # of the search


def test_nothing_survives() -> None:
    says = r"none of 20 candidates survived; 20 failed with 'build'.*no such instr"
    with pytest.raises(NoScheduleError, match=says) as e:
        tune(20, SyntheticDevice(fail=lambda c: "build"))
    assert e.value.exit_code == 1


def test_nothing_survives_and_some_were_wrong() -> None:
    with pytest.raises(WrongResultError) as e:
        tune(20, SyntheticDevice(fail=lambda c: "wrong" if c.row % 4 == 0 else "crash"))
    assert e.value.exit_code == 4


def test_an_empty_space_is_no_schedule() -> None:
    with pytest.raises(NoScheduleError, match="no trials"):
        tune(5, space=SearchSpace([], clock))


def test_a_missing_device_ends_the_run() -> None:
    class Gone(SyntheticDevice):
        def build(self, candidate: Candidate) -> Build:
            raise MissingError("no compiler")

    with pytest.raises(MissingError):
        tune(5, Gone())


def test_a_store_that_fails_says_what_is_safe(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")

    class Full:
        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        def append(self, study: str, trial: Trial) -> None:
            if trial.number > 6:
                raise StoreError("cannot keep it: disk is full", hint="free some space")
            store.append(study, trial)

    device = SyntheticDevice()
    says = r"disk is full \(6 trials are safe in the store, 1 could not be kept\)"
    with pytest.raises(StoreError, match=says) as error:
        tune(20, device, store=Full())
    assert error.value.hint == "free some space"
    assert error.value.exit_code == 2
    assert len(device.measured) == 7
    result, _, _ = tune(20, store=store)
    assert result.done == 20


# By hand


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


# The final round


def measured(*medians: float) -> list[Measurement]:
    return [Measurement("ok", m, (m, m), 0.0, 1e-4, 1e-3, extra={"k": 1}) for m in medians]


def test_races_are_interleaved_and_turn_around() -> None:
    builds = [Build(c) for c in open_study(record(), SPACE, strategy_name="random").ask(3)]
    order: list[int] = []

    def measure(build: Build) -> Measurement:
        order.append(builds.index(build))
        return Measurement("crash") if build is builds[1] else Measurement("ok", 1.0)

    found = race(builds, measure, rounds=3)
    assert order == [0, 1, 2, 2, 0, 0, 2]
    assert [len(f) for f in found] == [3, 1, 3]
    assert [len(f) for f in race(builds, measure, rounds=3, late=lambda: True)] == [1, 1, 1]


def test_pooling_takes_medians_and_the_worst_error() -> None:
    parts = measured(3.0, 1.0, 2.0)
    parts[1] = replace(parts[1], max_abs_error=5e-4)
    found = pooled(parts)
    assert (found.time_s, found.max_abs_error, found.samples_s) == (2.0, 5e-4, (3.0, 3.0, 1.0, 1.0, 2.0, 2.0))
    assert found.extra == {"k": 1, "rounds_s": [3.0, 1.0, 2.0]}
    assert found.spread == pytest.approx(0.5)
    assert pooled([*parts, Measurement("wrong")]).status == "wrong"


@given(times=st.lists(st.floats(0.5, 2.0), min_size=1, max_size=7))
def test_a_candidate_is_never_distinguishable_from_itself(times: list[float]) -> None:
    assert not distinguishable(pooled(measured(*times)), pooled(measured(*times)))


def test_five_rounds_of_one_opinion_distinguish() -> None:
    fast, slow = pooled(measured(1, 1.1, 1, 1.2, 1)), pooled(measured(1.1, 1.2, 1.1, 1.3, 1.1))
    assert distinguishable(fast, slow)
    assert not distinguishable(slow, fast)
    assert not distinguishable(pooled(measured(1, 1, 1, 1)), pooled(measured(2, 2, 2, 2)))
    assert not distinguishable(pooled(measured(1, 1, 1, 1, 3)), pooled(measured(2, 2, 2, 2, 2)))


def test_fifteen_rounds_may_disagree_three_times() -> None:
    def rounds(*times: float) -> Measurement:
        return Measurement("ok", 1.0, extra={"rounds_s": list(times)})

    slow = rounds(*[2.0] * 15)
    assert distinguishable(rounds(*[1.0] * 12, *[3.0] * 3), slow)
    assert not distinguishable(rounds(*[1.0] * 11, *[3.0] * 4), slow)
    assert not distinguishable(slow, slow)
    assert not distinguishable(Measurement("ok", 1.0), slow)


def test_a_device_that_interleaves_races_by_itself() -> None:
    class Interleaving(SyntheticDevice):
        def measure_interleaved(self, builds: list[Build], rounds: int) -> list[Measurement]:
            assert rounds == 15
            samples = [tuple([1.0 - 0.1 * i] * rounds) for i in range(len(builds))]
            return [Measurement("ok", s[0], s) for s in samples[:-1]] + [Measurement("timeout", message="late")]

    result, study, _ = tune(60, Interleaving())
    assert result.best is not None
    assert result.distinguishable is True
    assert result.best.trial == study.finals[-2]
    assert study.finals[-1].measurement.status == "timeout"
    assert {t.round for t in study.finals} == {"final"}


def test_only_candidates_that_can_win_race() -> None:
    def trial(number: int, time_s: float) -> Trial:
        return Trial(number, "p", number, {}, Measurement("ok", time_s))

    ranking = [trial(1, 1.0), trial(2, 1.2), trial(3, 1.25), trial(4, 1.4)]
    assert [t.number for t in finalists(ranking)] == [1, 2, 3]
    assert [t.number for t in finalists(ranking, 2)] == [1, 2]
    assert finalists([]) == []


def test_the_final_round_decides_and_is_not_counted() -> None:
    """The luckiest of many noisy trials is not taken at its word."""
    result, study, events = tune(60, SyntheticDevice(noise=0.2, seed=1))
    final = next(e for e in events if isinstance(e, FinalRound))
    assert result.done == len(study.searched) == 60
    assert len(study.finals) == final.candidates
    assert {t.round for t in study.finals} == {"final"}
    assert result.best is not None
    assert result.best.trial in study.finals
    assert result.best.trial.measurement.time_s == min(t.measurement.time_s or 9 for t in study.finals)
    by_number = {t.number: t.key for t in study.searched}
    assert all(by_number[t.number] == t.key for t in study.finals)


def test_a_final_round_cut_short_is_held_again() -> None:
    store = SqliteStore(":memory:")
    _, study, _ = tune(30, store=store)
    whole = len(study.finals)
    assert whole > 1
    store._db.execute("DELETE FROM trial WHERE id = (SELECT MAX(id) FROM trial)")
    device = SyntheticDevice()
    result, study, _ = tune(30, device, store=store)
    assert device.measured
    assert len({t.key for t in study.finals}) == whole
    assert result.best is not None
    assert result.best.trial in study.finals


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


def test_a_continued_study_races_again() -> None:
    store = SqliteStore(":memory:")
    tune(10, store=store)
    result, study, events = tune(30, store=store)
    assert kinds(events)["FinalRound"] == 1
    assert result.best is not None
    assert result.best.trial in study.finals


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
