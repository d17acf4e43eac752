"""What a space was asked is kept with its study: a study that continues lays out and scores nothing again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from conformance.synthetic import make_plan

from autosched.ir.resolve import resolve
from autosched.machine.catalogue import load_target
from autosched.search.request import TuneRequest
from autosched.search.space import plan_rows as laid_out
from autosched.search.space import space
from autosched.search.space.answer_cache import Answer, AnswerCache
from autosched.search.space.answer_checks import fitting
from autosched.search.space.scores import Scores
from autosched.search.space.space import SearchSpace
from autosched.search.tuning.tune import tune
from autosched.store import SqliteStore
from autosched.tiling.space.independent_groups import IndependentGroups

NUMBERS = np.arange(5, dtype=np.int64)


def seconds(plan: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    return {"total": plan.speed * np.asarray(values["trips"] * values["bytes"], np.float64)}


def made(kept: AnswerCache, clock: Callable[..., Any] = seconds) -> SearchSpace:
    plans: list[Any] = [make_plan("a"), make_plan("b", speed=2.0)]
    return SearchSpace(plans, clock, limit=2_000, kept=kept)


class KnowsAll(AnswerCache):
    """Answers that must be there already."""

    def __init__(self, known: AnswerCache) -> None:
        super().__init__({name: known.find(name) or () for name in known.names})

    def put(self, name: str, answer: Answer) -> Answer:
        raise AssertionError(f"{name} was worked out again")


def asked(found: SearchSpace) -> list[Any]:
    for _ in found.prepared():
        pass
    rows, times = found.best(100)
    some = found.locate(np.arange(0, found.rows, 7))
    said: list[Any] = [found.legal, found.rejected, found.rows_in_all, found.plausible, found.lower_bound_s]
    return [*said, *(a.tolist() for a in (rows.plan, rows.ids, times, some.ids, *found.sampled(1)))]


def test_a_space_of_the_same_plans_is_answered_from_what_was_kept() -> None:
    first = AnswerCache()
    expected = asked(made(first))
    assert first.changed
    again = KnowsAll(AnswerCache.loads(first.dumps()))
    assert asked(made(again, lambda *_: pytest.fail("scored again"))) == expected
    assert not again.changed


@pytest.mark.parametrize("at", [0, 31, 32, 40, -1])
def test_what_is_damaged_is_not_there(at: int) -> None:
    written = AnswerCache()
    written.put("a", (NUMBERS,))
    text = bytearray(written.dumps())
    assert AnswerCache.loads(bytes(text)).find("a") is not None
    text[at] ^= 1
    assert AnswerCache.loads(bytes(text)).find("a") is None
    assert AnswerCache.loads(bytes(text[:at])).find("a") is None


def test_answers_that_cannot_be_of_these_plans_are_not_there() -> None:
    """A store that others wrote: numbers of no plan and no row, columns cut or of another type, answers to nothing."""
    first = AnswerCache()
    known = made(first)
    plans = [entry.plan for entry in known.plans]
    asked(known)
    whole = {name: first.find(name) for name in first.names}
    assert fitting(AnswerCache(whole), plans).names == first.names
    assert {name.split()[0] for name in whole} >= {"plan", "some", "best", "plausible", "bound"}
    for name, answer in whole.items():
        for n, column in enumerate(answer):
            beyond = column + (1 << 30) if column.dtype.kind == "i" else column * np.nan
            others = [beyond, -column - 2, column.astype(np.float32 if column.dtype.kind == "i" else np.int32)]
            if len(answer) > 1 or name.startswith("plan"):
                others.append(np.append(column, column[-1:]))
            for other in others:
                if other is beyond and (name.endswith("laid out") or (name.startswith("best") and n == 0)):
                    continue  # how many there are, and how many were asked for
                altered = {**whole, name: (*answer[:n], other, *answer[n + 1 :])}
                assert not fitting(AnswerCache(altered), plans).names, (name, n, other)
    assert not fitting(AnswerCache({**whole, "anything": (NUMBERS,)}), plans).names
    assert not fitting(AnswerCache({**whole, "some of plan 7": whole["some of plan 0"]}), plans).names


def test_no_more_is_kept_than_there_is_room_for() -> None:
    kept = AnswerCache(most_bytes=2 * NUMBERS.nbytes)
    for name in "aba":  # the second `a` takes the first one's place
        kept.put(name, (NUMBERS,))
    assert kept.put("c", (NUMBERS,))[0].tolist() == NUMBERS.tolist()
    assert [kept.find(name) is not None for name in "abc"] == [True, True, False]


def request(store: SqliteStore, trials: int, **options: Any) -> TuneRequest:
    program = resolve("matmul", {"m": 24, "n": 48, "k": 16})
    return TuneRequest(program, load_target("x86-avx2"), device="simulator", trials=trials, store=store, **options)


class Counted:
    """How often plans were laid out, searched and scored; what a few rows take that are proposed is no matter."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times = 0
        watched: tuple[tuple[Any, str], ...] = (
            (laid_out, "lay_out"), (IndependentGroups, "__init__"), (Scores, "__init__"), (space, "tabulate"),
        )  # fmt: skip
        for where, name in watched:
            monkeypatch.setattr(where, name, self._counting(getattr(where, name)))

    def _counting(self, work: Any) -> Any:
        def counted(*given: Any, **named: Any) -> Any:
            self.times += 1
            return work(*given, **named)

        return counted


@pytest.mark.slow
def test_a_study_that_continues_repeats_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(monkeypatch)
    store, without = SqliteStore(":memory:"), SqliteStore(":memory:")
    for each in (store, without):
        assert tune(request(each, 8))[0].lower_bound_s
    assert counted.times
    without._db.execute("UPDATE kept SET body = zeroblob(100)")
    counted.times = 0
    tuning, _ = tune(request(store, 16))
    assert tuning.lower_bound_s
    once = counted.times
    other, _ = tune(request(without, 16))
    assert once == 0 < counted.times
    assert [t.key for t in tuning.study.trials] == [t.key for t in other.study.trials]
    body = without._db.execute("SELECT body FROM kept").fetchone()[0]
    assert AnswerCache.loads(body).find("plausible") is not None  # what was damaged is written anew


@pytest.mark.sampled(1)
@pytest.mark.parametrize("options", [{"fresh": True}, {"numerics": "bitwise"}, {"seed": 1}])
def test_other_options_are_laid_out_for_themselves(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]) -> None:
    counted = Counted(monkeypatch)
    store = SqliteStore(":memory:")
    tune(request(store, 1))
    counted.times = 0
    tune(request(store, 2, **options))
    assert counted.times
