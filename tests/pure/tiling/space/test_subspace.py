"""Decisions that share no rule with others are a space of their own; equal ones are counted once."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from autosched.logic import Var
from autosched.tiling.space import subspace
from autosched.tiling.space.base import Values
from autosched.tiling.space.counting import counted
from autosched.tiling.space.enumerate import ROOT, Prefixes
from autosched.tiling.space.sample import joined_up_to, thinned
from autosched.tiling.space.space import Space
from autosched.tiling.step import Decision, Rule, Step


def product(name: str, values: Sequence[int] = (1, 2, 4), most: int = 12) -> Step:
    """Two decisions that a rule ties through a derived quantity, and one that none reads."""
    decisions = (Decision(f"{name}.tile", tuple(values)), Decision(f"{name}.block", (1, 2, 3, 4)))
    rule = Rule(f"{name}.fits", Var(f"{name}.bytes") <= Var("most"), "{most} bytes are too few")
    both = {f"{name}.bytes": Var(f"{name}.tile") * Var(f"{name}.block") * Var(f"{name}.one")}
    free = Decision(f"{name}.free", (0, 1)), Decision(f"{name}.one", (1,))
    return Step(name, (*decisions, *free), (rule,), both)


def two(first: Step, second: Step, most: int = 12) -> Space:
    return Space("two", [first, second], {"most": most})


def test_equal_parts_are_one_space_whatever_their_names() -> None:
    space = two(product("A"), product("B"))
    first, second = space.subspaces
    assert first.space is second.space
    assert (first.positions, second.positions) == ((0, 1, 3), (4, 5, 7))
    assert (first.rules, second.rules) == ((0,), (1,))
    assert two(product("B"), product("C")).subspaces[1].space is first.space


def test_other_values_or_rules_are_another_space() -> None:
    same = two(product("A"), product("B")).subspaces[0].space
    space = two(product("A", values=(1, 2, 8)), product("B"))
    assert space.subspaces[0].space is not same
    assert space.subspaces[1].space is same
    assert two(product("A"), product("B"), most=11).subspaces[0].space is not same


def test_rows_and_rejections_are_those_of_the_whole() -> None:
    space = two(product("A", values=(1, 5, 7)), product("B"))
    apart, listed = counted(space, huge=0), space.enumerate()
    assert apart is not None
    assert apart.legal == len(listed)
    assert apart.legal + sum(apart.rejected.values()) == space.size
    assert np.array_equal(np.sort(apart.rows(np.arange(apart.legal))), listed.ids)
    few = counted(space, most=3, huge=0)
    assert few is None


def test_thinned_rows_are_different_legal_ones_and_all_where_they_are_few() -> None:
    for values, most in (((1, 5, 7), 12), ((13,), 12)):
        space = two(product("A", values=values), product("B"), most)
        listed = space.enumerate().ids
        for n in (1, len(listed) // 2, len(listed), len(listed) + 5):
            rows = np.sort(thinned(space, n, np.random.default_rng(n), huge=0))
            assert len(rows) == min(n, len(listed))
            assert np.all(np.diff(rows) > 0)
            assert np.isin(rows, listed).all()


def test_no_more_prefixes_are_held_than_there_is_room_for() -> None:
    """A last rule that leaves few of very many."""
    wide = [Decision(name, tuple(range(64))) for name in "abc"]
    rules = (Rule("ab", Var("a") + Var("b") > 3, "no"), Rule("few", Var("a") * Var("b") % 61 < Var("c") % 2, "no"))
    space = Space("wide", [Step("wide", tuple(wide), rules)])
    legal = space.enumerate().ids
    rows = thinned(space, 400, np.random.default_rng(0), held=1500)
    assert len(legal) > 1500
    assert len(set(rows.tolist())) == len(rows) == 400
    assert np.isin(rows, legal).all()
    places = np.searchsorted(legal, rows) / len(legal)
    assert 0.4 < places.mean() < 0.6  # from everywhere
    usual = thinned(space, 400, np.random.default_rng(0))
    assert np.array_equal(thinned(space, 400, np.random.default_rng(0), held=len(legal) * 8), usual)


def test_pairs_that_no_rule_prunes_are_drawn_and_not_listed() -> None:
    """Six free decisions of 64 values: their pairs with the others' prefixes would take hours to list."""
    wide = [Decision(name, tuple(range(64))) for name in "abcdefgh"]
    rules = (Rule("ab", Var("a") + Var("b") > 63, "no"),)
    space = Space("wide", [Step("wide", tuple(wide), rules)])
    rows = thinned(space, 400, np.random.default_rng(0), held=1 << 12)
    assert len(set(rows.tolist())) == len(rows) == 400
    values = space.values(rows)
    assert np.all(values["a"] + values["b"] > 63)
    assert all(24 < values[name].mean() < 40 for name in "cdefgh")  # from everywhere


def test_what_is_joined_takes_bounded_memory() -> None:
    """Four million prefixes of 8 bytes and a column, of which twenty thousand have room."""
    blocks = (Prefixes(np.arange(k, k + 4096), {0: np.zeros(4096, np.uint8)}) for k in range(0, 1 << 22, 4096))
    tracemalloc.start()
    made, every = joined_up_to(20_000, blocks, ROOT, np.random.default_rng(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 << 20
    assert 5_000 < len(made.ids) <= 20_000
    assert not every
    assert len(made.columns[0]) == len(made.ids)
    assert np.all(np.diff(made.ids) > 0)
    assert abs(made.ids.mean() / (1 << 21) - 1) < 0.05


def test_what_nothing_is_left_to_decide_of_forbids_all_or_nothing() -> None:
    for most, several in ((0, 0), (1, 2)):
        fixed = Step("fixed", (Decision("fixed", (1,)),), (Rule("fixed", Var("fixed") <= most, "no"),))
        space = Space("three", [product("A"), fixed, product("B")], {"most": 12})
        assert len(space.subspaces) == several
        found = counted(space, huge=0)
        assert found is not None
        assert found.legal == len(space.enumerate())


def test_what_no_space_has_is_forgotten() -> None:
    space = two(product("A", values=(1, 77)), product("B", values=(1, 78)))
    assert len(space.subspaces) == 2
    known = len(subspace._KNOWN)
    del space
    gc.collect()
    assert len(subspace._KNOWN) <= known - 2


def test_rules_that_nothing_is_left_to_decide_of_share_one_row() -> None:
    """A chain on a GPU has hundreds of them once a few decisions are settled, and a row has as many quantities."""

    class Counting(Space):
        asked = 0

        def values(self, ids: npt.ArrayLike) -> Values:
            self.asked += 1
            return super().values(ids)

    def fixed(name: str, tile: int) -> Step:
        step = product(name, values=(tile,))
        return replace(step, decisions=tuple(replace(d, domain=d.domain[:1]) for d in step.decisions))

    settled = [fixed(f"S{n}", 4) for n in range(20)]
    space = Counting("many", [*settled, product("A"), product("B")], {"most": 12})
    assert len(space.subspaces) == 2
    assert space.asked == 1
    assert Counting("none", [fixed("C", 99), product("A"), product("B")], {"most": 12}).subspaces == ()
