"""Decisions that share nothing are counted and ranked apart: what comes out is what the whole space has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.match.examples import examples
from support.timed_spaces import NAMES, timed_spaces, total_of

from autosched.logic import Var
from autosched.tiling.space import independent_groups as apart
from autosched.tiling.space.alike import Alike
from autosched.tiling.space.bounded import Timed
from autosched.tiling.space.counting import counted
from autosched.tiling.space.independent_groups import IndependentGroups
from autosched.tiling.space.space import Space
from autosched.tiling.space.subspace import groups_of
from autosched.tiling.step import Decision, Rule, Step


@pytest.mark.slow
@examples(80)
@given(
    timed_spaces(),
    st.integers(1, 60),
    st.sampled_from([1, 16, 1 << 12]),
    st.sampled_from([1, 256]),
    st.sampled_from([1, 4, 2048]),
    st.sampled_from([0, 8, 1024]),
)
def test_the_best_rows_are_those_of_a_full_sort(
    case: tuple[Space, list[Timed]], k: int, block: int, seen: int, at_once: int, few: int
) -> None:
    """Also where what few rows read is not known beforehand, and where the first rows of each group are not enough."""
    space, timed = case
    total = total_of(space, timed)

    every = np.sort(total(space.enumerate().ids))
    rows = space.thinned(seen, np.random.default_rng(0))
    found = IndependentGroups(space, timed, total, block, seen=rows, at_once=at_once, few=few).best(k)
    search = IndependentGroups(space, timed, total, block, seen=rows, at_once=at_once, few=few)
    near = search.best(k, near=(3, 1.5))
    again = search.best(k)
    assert found.proved
    assert np.allclose(found.seconds, every[:k])
    assert space.legal(found.ids).all()
    assert len(np.unique(found.ids)) == len(found.ids)
    assert np.array_equal(again.seconds, found.seconds)
    close = every[:k][every[:k] <= 1.5 * every[min(2, len(every) - 1)]] if len(every) else every
    assert len(near.seconds) >= len(close)
    assert np.allclose(near.seconds, every[: len(near.seconds)])  # no faster one is missing
    if k < len(every):
        fewer = IndependentGroups(space, timed, total, block).best(k, float(every[k // 2]))
        assert np.allclose(fewer.seconds, every[:k][every[:k] <= every[k // 2]])


@pytest.mark.slow
@examples(60)
@given(timed_spaces(), st.permutations(NAMES))
def test_counts_and_samples_are_the_same_in_any_order_of_decisions(
    case: tuple[Space, list[Timed]], order: list[str]
) -> None:
    space = case[0]
    other = Space("other", [Step("s", tuple(space.decision(n) for n in order), space.rules)])
    rows = []
    for which in (space, other):
        for huge in (0, which.size):  # one group after the other, or in the order that rules ask for
            found = counted(which, huge=huge)
            assert found is not None
            values = which.values(found.rows(np.arange(found.legal)))
            rows.append(sorted(zip(*(values[n].tolist() for n in NAMES), strict=True)))
            assert found.legal + sum(found.rejected.values()) == which.size
        drawn = which.values(which.sample(which.size, np.random.default_rng(0)))
        rows.append(sorted(zip(*(drawn[n].tolist() for n in NAMES), strict=True)))
    assert all(r == rows[0] for r in rows)
    assert len(rows[0]) == len(space.enumerate())


def test_groups_are_what_rules_and_other_readers_tie() -> None:
    decisions = (*(Decision(n, (1, 2)) for n in "abcde"), Decision("one", (1,)))
    tied = Rule("r", Var("c") + Var("a") * Var("one") <= 3, "no")
    space = Space("s", [Step("s", decisions, (tied, Rule("o", Var("e") <= Var("one"), "no")))])
    assert [set(g) for g in groups_of(space)] == [{0, 2}, {1}, {3}, {4}]
    assert [set(g) for g in groups_of(space, [{1, 2}, {3, 5}, {4, 5}])] == [{0, 1, 2}, {3}, {4}]


@pytest.mark.slow
@examples(60)
@given(timed_spaces(), st.integers(1, 60), st.sampled_from([1.0, 2.0]), st.sampled_from([1, 512]), st.booleans())
def test_a_group_that_another_space_has_too_is_searched_once(
    case: tuple[Space, list[Timed]], k: int, weight: float, some: int, rarely: bool
) -> None:
    """The second space may differ in the time of one group, everywhere or (`rarely`) where few rows show it."""
    space, timed = case
    other = Space("other", space.steps)

    def differs(v: Mapping[str, Any]) -> Any:
        return timed[1].exact(v) * np.where((v["c"] > 7) | (not rarely), weight, 1.0)

    alike = Alike(some)
    for where, parts in ((space, timed), (other, [timed[0], Timed(differs, lambda v: 0.0 * v["c"])])):
        total = total_of(where, parts)

        ids = where.enumerate().ids
        found = IndependentGroups(where, parts, total, alike=alike).best(k)
        assert where.legal(found.ids).all()
        assert np.array_equal(found.seconds, total(found.ids))
        if some > 1 or weight == 1.0:  # one row may not show that they differ: only a good row is left out then
            assert np.allclose(found.seconds, np.sort(total(ids))[:k])


@pytest.mark.slow
@examples(80)
@given(
    timed_spaces(shared=True), st.integers(1, 60), st.sampled_from([1, 4, 2048]), st.sampled_from([0, 8, 1024]),
    st.booleans(),
)  # fmt: skip
def test_what_a_few_decisions_tie_is_searched_for_each_of_their_values(
    case: tuple[Space, list[Timed]], k: int, at_once: int, few: int, alike: bool
) -> None:
    space, timed = case
    total = total_of(space, timed)
    ids = space.enumerate().ids
    every = np.sort(total(ids))
    limits = [np.inf, *(1e-3 + 1.001 * float(every[n]) for n in (0, len(every) // 2) if len(every))]
    for limit_s in limits:
        known = Alike(512) if alike else None
        search = IndependentGroups(space, timed, total, alike=known, at_once=at_once, few=few)
        found = search.best(k, limit_s)
        event(f"tied: {search.tied}")
        assert found.proved
        assert np.allclose(found.seconds, every[:k][every[:k] <= limit_s])
        assert np.array_equal(np.asarray(total(found.ids), np.float32), np.asarray(found.seconds, np.float32))
        assert np.isin(found.ids, ids).all()
        assert len(np.unique(found.ids)) == len(found.ids)
        near = search.best(k, limit_s, near=(3, 1.5))
        assert np.allclose(near.seconds, every[: len(near.seconds)])
        wanted = every[:k][every[:k] < min(limit_s, 1.5 * every[min(2, len(every) - 1)])] if len(every) else every
        assert len(near.seconds) >= len(wanted)  # ties at the end may be left out


def test_one_decision_ties_two_parts() -> None:
    decisions = (Decision("rows", (4, 2, 8)), *(Decision(n, tuple(range(1, 41))) for n in "abcd"))
    rules = (Rule("r", Var("rows") % Var("a") <= 2, "no"), Rule("s", Var("c") <= Var("rows") * 5, "no"))
    space = Space("s", [Step("s", decisions, rules)])
    timed = [Timed(lambda v, x=x, y=y: np.abs(v["rows"] * v[x] - 11.0 * v[y]) + v["rows"], lambda v, x=x: 0.0 * v[x])
             for x, y in ("ab", "cd")]  # fmt: skip
    total = total_of(space, timed)
    search = IndependentGroups(space, timed, total)
    assert search.tied
    assert not search.several
    best = search.best(300)
    assert np.allclose(best.seconds, np.sort(total(space.enumerate().ids))[:300])
    assert search.looked_at < 200_000  # of 7.7 million rows


@pytest.mark.parametrize("few", [0, 1024])
@pytest.mark.parametrize("reads", [("one",), ("a", "one"), ("one", "other")])
def test_a_part_that_reads_a_single_value_counts_once(few: int, reads: tuple[str, ...]) -> None:
    """Else sums of groups are slower than any row, and rows within a limit are missing."""
    decisions = (*(Decision(n, (1, 2, 3)) for n in "abcd"), Decision("one", (4,)), Decision("other", (5,)))
    space = Space("s", [Step("s", decisions, (Rule("r", Var("c") <= Var("one") - 2, "no"),))])
    timed = [Timed(lambda v, n=n: v[n] * 1.0, lambda v, n=n: v[n] * 1.0) for n in "abcd"]
    timed.append(Timed(lambda v: 10.0 * sum(v[n] for n in reads), lambda v: 0.0 * v["one"]))
    total = total_of(space, timed)
    every = np.sort(total(space.enumerate().ids))
    for limit_s in (np.inf, float(every[0]), float(every[20])):
        found = IndependentGroups(space, timed, total, few=few).best(50, limit_s)
        assert np.allclose(found.seconds, every[:50][every[:50] <= limit_s])
        assert found.proved


@pytest.mark.slow
def test_the_best_sums_are_made_of_few_rows_of_each_group() -> None:
    decisions = tuple(Decision(n, tuple(range(1, 65))) for n in "abcd")
    space = Space("s", [Step("s", decisions)])
    timed = [Timed(lambda v: v["a"] + 3.0 * v["b"], lambda v: v["a"] * 1.0),
             Timed(lambda v: v["c"] + 5.0 * v["d"], lambda v: v["c"] * 1.0)]  # fmt: skip
    search = IndependentGroups(space, timed, lambda ids: np.asarray(sum(t.exact(space.values(ids)) for t in timed)))
    every = np.sort(
        np.add.outer(*(np.sort((np.arange(1, 65)[:, None] + w * np.arange(1, 65)).ravel()) for w in (3.0, 5.0))).ravel()
    )
    assert np.array_equal(search.best(3000).seconds, every[:3000])
    assert all(len(s._known.last.ids) <= apart.AT_ONCE for s in search._searches)


@examples(60)
@given(timed_spaces(), st.integers(0, 9))
def test_samples_are_of_legal_rows_with_their_times(case: tuple[Space, list[Timed]], seed: int) -> None:
    space, timed = case
    total = total_of(space, timed)

    legal, alike = space.enumerate().ids, Alike()
    for where in (space, Space("again", space.steps)):
        search = IndependentGroups(where, timed, total, alike=alike)
        drawn = search.sampled(4000, np.random.default_rng(seed))
        if drawn is None:
            continue  # nothing is legal, or groups are tied
        ids, seconds = drawn
        assert np.array_equal(ids, np.unique(ids))
        assert np.isin(ids, legal).all()
        assert np.allclose(seconds, total(ids))
        assert len(ids) > 0.8 * min(len(legal), 400)


def test_what_is_the_same_is_not_looked_at_again() -> None:
    decisions = tuple(Decision(n, tuple(range(1, 9))) for n in "abcd")
    timed = [Timed(lambda v: v["a"] * v["b"] * 1.0, lambda v: v["a"] * 1.0),
             Timed(lambda v: v["c"] + v["d"] * 1.0, lambda v: v["c"] * 1.0)]  # fmt: skip
    alike, looked = Alike(), []
    for name in ("one", "two"):
        space = Space(name, [Step("s", decisions)])
        total = total_of(space, timed)

        search = IndependentGroups(space, timed, total, alike=alike)
        assert search.best(5).seconds[0] == 3.0
        looked.append(search.looked_at)
    assert looked[0] > 0
    assert looked[1] == 0


def test_groups_that_differ_by_a_number_and_by_what_no_time_reads_are_searched_once() -> None:
    """Gate and up projections of one size: one has an epilogue, the other a decision that the clock ignores."""
    decisions = (*(Decision(n, tuple(range(1, 9))) for n in "abcd"), Decision("silent", (0, 1)))
    space = Space("s", [Step("s", decisions)])
    timed = [Timed(lambda v: v["a"] * v["b"] * 1.0, lambda v: v["a"] * 1.0),
             Timed(lambda v: v["c"] * v["d"] + 7.0, lambda v: v["c"] * 1.0)]  # fmt: skip

    total = total_of(space, timed)

    search = IndependentGroups(space, timed, total, alike=Alike())
    found = search.best(300)
    ids = space.enumerate().ids
    assert np.array_equal(found.seconds, np.sort(total(ids))[:300])
    assert np.array_equal(found.seconds, total(found.ids))
    assert len(np.unique(found.ids)) == 300
    assert [s.looked_at > 0 for s in search._searches] == [True, False, True]
