"""Random spaces with times, to hold searches for the best rows against a full sort."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from autosched.logic import Var
from autosched.tiling.space.bounded import Timed
from autosched.tiling.space.space import Space
from autosched.tiling.step import Decision, Rule, Step

NAMES = ("a", "b", "silent", "c", "d", "free", "one")


def total_of(space: Space, timed: list[Timed]) -> Callable[[Any], Any]:
    """Seconds of rows, all parts together."""
    return lambda ids: np.asarray(sum(p.exact(space.values(ids)) for p in timed), np.float32)


@st.composite
def timed_spaces(draw: st.DrawFn, tied: bool = False, shared: bool = False) -> tuple[Space, list[Timed]]:
    """Two parts with decisions of their own in any order; one that some rows of both read, one that nothing reads. Some
    parts have a bound between floor and time. `tied`: a rule reads decisions of both. `shared`: a decision that both
    parts read has several values, and may change nothing in some rows."""
    sizes = {"one": 3 if tied or shared else 1}
    values = {n: st.lists(st.integers(1, 9), min_size=1, max_size=sizes.get(n, 4), unique=True) for n in NAMES}
    decisions = tuple(Decision(n, tuple(draw(values[n]))) for n in draw(st.permutations(NAMES)))
    rules = [
        Rule("first", Var("a") * Var("b") <= draw(st.integers(2, 80)) * Var("one"), "too much"),
        Rule("second", (Var("c") + Var("d")) % draw(st.integers(1, 3)) <= 1, "odd"),
    ]
    if tied:
        rules.append(Rule("both", Var("a") * Var("c") + Var("one") <= draw(st.integers(2, 90)), "too much"))
    weights = draw(st.lists(st.integers(0, 5), min_size=6, max_size=6))

    def part(own: tuple[str, str], w: list[int]) -> Timed:
        def floor(v: Mapping[str, Any]) -> Any:
            return 1.0 * w[0] * v[own[0]]

        def rest(v: Mapping[str, Any]) -> Any:
            return w[1] * np.abs(v[own[1]] - 4.0) * v["one"]

        def exact(v: Mapping[str, Any]) -> Any:
            some = w[2] * (v[own[0]] > 5)
            return floor(v) + rest(v) + (some / v["silent"] if some.any() else some)

        def least(v: Mapping[str, Any], known: Any) -> Any:
            return known + share * rest(v)

        share = draw(st.sampled_from([0.3, 1.0]))
        return Timed(exact, floor, draw(st.sampled_from([None, least])))

    inert = draw(st.sampled_from([{}, {"one": Var("a") > 5}])) if shared else {}
    steps = [Step("s", decisions, tuple(rules), inert=inert)]
    return Space("two", steps), [part(("a", "b"), weights[:3]), part(("c", "d"), weights[3:])]
