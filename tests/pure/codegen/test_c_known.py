"""Conditions in exported C: what the loops around them say is left out."""

from __future__ import annotations

from autosched.codegen.analysis.known import known
from autosched.codegen.analysis.lane_conditions import lower_bound, split_valid
from autosched.logic import FALSE, TRUE, Not, Var, all_of, any_of

X, E = Var("x"), Var("e")
RANGES = {"x": (0, 6), "e": (0, 7)}


def test_what_ranges_decide_is_left_out() -> None:
    assert known(X >= 0, RANGES) == TRUE
    assert known(X > 6, RANGES) == FALSE
    assert known(Not(X > 6), RANGES) == TRUE
    assert known(all_of(X * 8 + E >= 0, X * 8 + E < 55), RANGES) == (X * 8 + E < 55)
    assert known(any_of(X > 6, E < 3), RANGES) == (E < 3)


def test_what_they_do_not_decide_stays() -> None:
    for condition in (X < 6, X > 0, Var("unknown") >= 0, Not(X < 6)):
        assert known(condition, RANGES) == condition


def test_bounds_of_the_lane() -> None:
    valid = split_valid(all_of(X * 8 + E - 1 >= 0, X * 8 + E - 1 < 56), "e")
    least = lower_bound(valid.rest, "e")
    assert least is not None
    assert known(all_of(least >= 1, least <= 1), {"x": (0, 0)}) == TRUE
    assert lower_bound(X * 8 + E * 2 >= 0, "e") is None
    assert lower_bound(all_of(E >= 1, E >= X), "e") is None
    assert lower_bound(TRUE, "e") is None
