"""`assume(distinct(E, n))`: read, printed, drawn; what it may not say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.examples import examples

from autosched.errors import ProgramError
from autosched.ir import parse
from autosched.ir.nodes import Assume
from autosched.ir.oracle.distinct import is_distinct, with_distinct
from autosched.ir.oracle.inputs import random_inputs
from autosched.ir.oracle.sets.ends import end_inputs
from autosched.ir.program import Program

TEXT = """
def f(E: u8[3, 8], X: f32[32], Y: f32[3, 8]):
    assume(E <= {most})
    assume(distinct(E, {n}))
    for i, k in grid(3, 8):
        Y[i, k] = X[s32(E[i, k])] if E[i, k] & 1 == 0 else 0.0
"""


def program(n: int = 2, most: int = 3) -> Program:
    return parse(TEXT.format(n=n, most=most))


def test_it_is_read_and_printed() -> None:
    made = program()
    assert Assume("E", distinct=2) in made.assumptions
    assert "assume(distinct(E, 2))" in str(made)
    assert parse(str(made)).assumptions == made.assumptions


@pytest.mark.parametrize("said", ["distinct(E, 3)", "distinct(X, 2)", "distinct(E, 1)", "distinct(Q, 2)"])
def test_what_it_may_not_say(said: str) -> None:
    with pytest.raises(ProgramError):
        parse(TEXT.format(n=2, most=3).replace("distinct(E, 2)", said))


@pytest.mark.parametrize(("n", "most"), [(2, 1), (2, 3), (4, 3), (8, 200)])
def test_data_are_drawn_so(n: int, most: int) -> None:
    made = program(n, most)
    for seed in range(4):
        drawn = random_inputs(made, np.random.default_rng(seed))
        assert is_distinct(drawn["E"], n)
        assert drawn["E"].max() <= most
        sets = [data.at(strength) for data in end_inputs(made, drawn) for strength in (1.0, 0.5)]
        assert any("E" in arrays for arrays in sets)
        assert all(is_distinct(arrays["E"], n) for arrays in sets if "E" in arrays)


def test_a_range_of_too_few_numbers_has_no_data() -> None:
    with pytest.raises(ProgramError, match="no 4 of these differ"):
        random_inputs(program(4, 2), np.random.default_rng(0))


@examples(20)
@given(st.lists(st.integers(0, 7), min_size=24, max_size=24), st.sampled_from([2, 4, 8]))
def test_what_differs_stays(numbers: list[int], n: int) -> None:
    made, given_ = program(n, 7), np.asarray(numbers, np.uint8).reshape(3, 8)
    found = with_distinct(made, {"E": given_})["E"]
    assert is_distinct(found, n)
    groups = list(zip(given_.reshape(-1, n), found.reshape(-1, n), strict=True))
    assert all((a == b).all() for a, b in groups if len(set(a.tolist())) == n)
    assert all(a[0] == b[0] for a, b in groups)


@pytest.mark.parametrize("n", [2, 3])
def test_numbers_in_turn_differ_over_the_end_too(n: int) -> None:
    """The test that `export --self-test` writes draws 61 numbers in turn, whatever the tensor's size is."""
    text = f"def f(E: u8[4, 12], C: u8[4, 12]):\n    assume(E <= 5)\n    assume(distinct(E, {n}))\n"
    program = parse(text + "    for i, j in grid(4, 12):\n        C[i, j] = E[i, j]\n")
    numbers = np.zeros(61, np.uint8)
    made = with_distinct(program, {"E": numbers})["E"]
    assert made.shape == (61,)
    assert made.max() <= 5
    assert all(len({int(made[(i + d) % 61]) for d in range(n)}) == n for i in range(61))
