"""The final round: the best few measured again, in turn."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from conformance.synthetic import SyntheticDevice, record
from hypothesis import given
from hypothesis import strategies as st
from support.studies import SPACE, kinds, tune

from autosched.device.protocol import Build
from autosched.search import open_study
from autosched.search.events import FinalFailed, FinalRound, NoFinal, RaceLost
from autosched.search.tuning.deadline import Deadline
from autosched.search.tuning.final import distinguishable, finalists, pooled, race, rounds_of
from autosched.search.tuning.noise import joined
from autosched.store import Measurement, SqliteStore, Trial


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


class ChecksLate(SyntheticDevice):
    """Checks results in the final round alone, which takes ten times as long."""

    def measure(self, build: Build, repeats: str = "search") -> Measurement:
        found = super().measure(build, repeats)
        if repeats == "search":
            return replace(found, max_abs_error=None, tolerance=None, extra={"verified_by": "not verified yet: later"})
        self.now += 9 * self.takes_s
        return found


def test_a_round_for_which_no_time_is_left_is_told() -> None:
    """A candidate takes all of it; where the round is held, nothing is said."""

    class Stuck(SyntheticDevice):
        begun = 0

        def measure(self, build: Build, repeats: str = "search") -> Measurement:
            self.begun += 1
            time.sleep(5.0 * (self.begun > 1))
            return super().measure(build, repeats)

    with Deadline(1.0) as deadline:
        result, study, events = tune(10_000, Stuck(), deadline=deadline)
    assert result.reason == "timeout"
    assert (len(study.searched), study.finals) == (1, [])
    assert sum(isinstance(e, NoFinal) for e in events) == 1
    result, study, events = tune(10_000, SyntheticDevice(takes_s=0.05), timeout_s=8.0)
    assert study.finals
    assert not any(isinstance(e, NoFinal) for e in events)


def test_time_is_kept_for_a_round_that_checks() -> None:
    device = ChecksLate(takes_s=0.05)
    result, study, _ = tune(10_000, device, timeout_s=8.0)
    assert result.reason == "timeout"
    assert 50 < result.done <= 60  # 0.1 s each, and a quarter of the time is for the final round
    assert len(study.finals) == 5
    assert result.best is not None
    assert result.best.trial.measurement.verified
    assert result.seconds["total"] < 8.0 + 5.0


def test_a_round_with_little_time_has_few_candidates() -> None:
    class SlowAtLast(SyntheticDevice):
        def measure(self, build: Build, repeats: str = "search") -> Measurement:
            if len(self.measured) == 7:
                self.now += 1.15
            return super().measure(build, repeats)

    result, study, events = tune(10_000, SlowAtLast(takes_s=0.05), timeout_s=2.5, batch=1)
    assert result.reason == "timeout"
    assert [e.candidates for e in events if isinstance(e, FinalRound)] == [2]
    assert len(study.finals) == 2


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
            assert rounds == 30  # 0.3 s of five kernels, each called twice, for a millisecond at least
            samples = [tuple([1.0 - 0.1 * i] * rounds) for i in range(len(builds))]
            return [Measurement("ok", s[0], s) for s in samples[:-1]] + [Measurement("timeout", message="late")]

    result, study, _ = tune(60, Interleaving())
    assert result.best is not None
    assert result.distinguishable is True
    assert result.best.trial == study.finals[-2]
    assert study.finals[-1].measurement.status == "timeout"
    assert {t.round for t in study.finals} == {"final"}


@pytest.mark.parametrize("others", ["timeout", "crash"])
def test_a_race_that_nobody_finishes_for_want_of_time_loses_nothing(others: str) -> None:
    """What the search measured stands; a kernel that crashed there is out, and the next run holds the race again."""

    class Late(SyntheticDevice):
        def measure_interleaved(self, builds: list[Build], rounds: int) -> list[Measurement]:
            found = [Measurement("timeout", message="no end after 20 s")] * len(builds)
            found[-1] = Measurement(others, message="no")
            return found

    store = SqliteStore(":memory:")
    result, study, events = tune(30, Late(), store=store)
    assert result.best is not None
    assert result.best.trial == study.favourites[0]
    assert result.distinguishable is None
    assert [e.message for e in events if isinstance(e, RaceLost)] == ["no end after 20 s"]
    assert [t.measurement.status for t in study.finals] == ([] if others == "timeout" else ["crash"])
    result, study, _ = tune(30, store=store)
    assert result.best is not None
    assert result.best.trial in study.finals


def test_a_race_that_comes_out_wrong_is_told() -> None:
    class Wrong(SyntheticDevice):
        def measure_interleaved(self, builds: list[Build], rounds: int) -> list[Measurement]:
            return [Measurement("wrong", message="no")] * len(builds)

    result, study, events = tune(30, Wrong())
    (said,) = (e for e in events if isinstance(e, FinalFailed))
    assert said.failed == {"wrong": said.of}
    assert result.best is None or result.best.trial not in study.finals
    assert not any(isinstance(e, FinalFailed) for e in tune(30)[2])


def test_a_second_race_that_had_no_time_does_not_undo_the_first() -> None:
    first = pooled(measured(1.0, 1.1, 1.0))
    again, slow, wrong = pooled(measured(1.0, 1.0, 1.2)), Measurement("timeout"), Measurement("wrong")
    assert joined([first] * 3, [again, slow, wrong])[1:] == [first, wrong]
    assert len(joined([first], [again])[0].extra["rounds_s"]) == 6


def test_short_kernels_race_more_often() -> None:
    assert rounds_of([1e-6] * 5, 5) == rounds_of([1e-3] * 5, 5) == 30
    assert rounds_of([5e-6], 5) == 60, "no more than twelve times as often"
    assert rounds_of([1.5e-3] * 5, 5) == 20
    assert rounds_of([0.02] * 5, 5) == 15
    assert rounds_of([0.04] * 3, 5) == 12
    assert rounds_of([0.1, 0.5], 5) == rounds_of([3.0], 5) == 5, "as often as where nothing interleaves"


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


def test_a_continued_study_races_again() -> None:
    store = SqliteStore(":memory:")
    tune(10, store=store)
    result, study, events = tune(30, store=store)
    assert kinds(events)["FinalRound"] == 1
    assert result.best is not None
    assert result.best.trial in study.finals
