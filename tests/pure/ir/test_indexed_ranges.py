"""Random data that are subscripts stay inside what they index, as far as that can be told."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from autosched.errors import AutoschedError
from autosched.ir import parse, random_inputs, run, split_inputs
from autosched.ir.oracle.indexed import indexed_range

GATHER = """
def gather(E: f32[100, 8], I: {dtype}[32], Y: f32[32, 8]):
    for i, j in grid(32, 8):
        Y[i, j] = E[{index}, j] * 2
"""


@pytest.mark.parametrize(
    ("index", "dtype", "inside"),
    [
        ("I[i]", "s32", (0, 99)),
        ("I[i] + 5", "s32", (-5, 94)),
        ("5 + I[i]", "s32", (-5, 94)),
        ("I[i] - 3", "s32", (3, 102)),
        ("I[i] * 3 + 1", "s32", (0, 32)),
        ("I[i] + s32(i)", "s32", (0, 68)),
        ("s32(I[i])", "u8", (0, 99)),
        ("s32(I[i])", "s8", (0, 99)),
        ("I[i] // 2", "s32", (0, 199)),
        ("I[i] + I[0]", "s32", (0, 49)),
        ("I[i] * I[i]", "s32", (0, 9)),
        ("I[i] * I[i] * 2 + s32(i)", "s32", (0, 5)),
        ("min(I[i], 90) + abs(I[i])", "s32", (0, 49)),
        ("I[i] % 7 + I[i]", "s32", (0, 93)),
        ("I[i] & 63", "s32", None),
        ("(I[i] ^ 1)", "s32", None),
        ("s32(I[i]) * s32(I[i])", "s8", (0, 9)),
    ],
)
def test_what_a_subscript_says_of_its_data(index: str, dtype: str, inside: tuple[int, int] | None) -> None:
    program = parse(GATHER.format(index=index, dtype=dtype))
    assert indexed_range(program, "I") == inside
    assert indexed_range(program, "E") is None
    if inside is not None:
        for seed in range(3):
            drawn = random_inputs(program, np.random.default_rng(seed))
            assert inside[0] <= drawn["I"].min() <= drawn["I"].max() <= inside[1]
            run(program, *split_inputs(program, drawn))


def test_several_tensors_in_one_subscript_stay_inside_together() -> None:
    text = """
def f(E: f32[100], I: s32[32], J: s32[32], K: s32[32], Y: f32[32]):
    assume(0 <= K <= 3)
    assume(2 <= J)
    for i in range(32):
        Y[i] = E[I[i] * J[i] + K[i]]
"""
    program = parse(text)
    assert [indexed_range(program, name) for name in "IJK"] == [(0, 8), (2, 10), (0, 3)]
    run(program, *split_inputs(program, random_inputs(program, np.random.default_rng(0))))


NUMBERS = st.integers(-6, 6).map(lambda n: f"({n})")
INDICES = st.recursive(
    st.sampled_from(["I[i]", "J[i]", "s32(i)"]) | NUMBERS,
    lambda of: st.tuples(of, st.sampled_from(["+", "-", "*"]), of).map(lambda x: f"({x[0]} {x[1]} {x[2]})")
    | st.tuples(of, st.sampled_from(["//", "%"]), st.integers(1, 9)).map(lambda x: f"({x[0]} {x[1]} {x[2]})")
    | st.tuples(st.sampled_from(["min", "max"]), of, of).map(lambda x: f"{x[0]}({x[1]}, {x[2]})"),
    max_leaves=6,
)


@given(INDICES)
def test_data_within_the_ranges_found_keep_any_subscript_inside(index: str) -> None:
    head = "def f(E: f32[50], I: s32[9], J: s32[9], Y: f32[9]):\n    for i in range(9):"
    text = f"{head}\n        Y[i] = E[s32({index})]"
    try:
        program = parse(text)
    except AutoschedError:  # an index that is no data leaves the tensor
        assume(False)
    used = [name for name in "IJ" if f"{name}[" in index]
    if used and all(indexed_range(program, name) for name in used):
        run(program, *split_inputs(program, random_inputs(program, np.random.default_rng(0))))


def test_the_narrowest_use_and_what_is_assumed_count() -> None:
    text = """
def two(E: f32[100], F: f32[40], I: s32[32], Y: f32[32]):
    assume(10 <= I <= 500)
    for i in range(32):
        Y[i] = E[I[i]] + F[I[i] + 2]
"""
    program = parse(text)
    assert indexed_range(program, "I") == (0, 37)
    drawn = random_inputs(program, np.random.default_rng(0))["I"]
    assert 10 <= drawn.min() <= drawn.max() <= 37


def test_a_float_has_no_range_of_subscripts() -> None:
    """Whoever draws it says what to assume, and does not fail on the way."""
    text = "def f(X: f32[4], A: f32[9], Y: f32[4]):\n    for i in range(4):\n        Y[i] = A[s32(X[i] * 99.0)]\n"
    assert indexed_range(parse(text), "X") is None


def test_assumptions_that_leave_nothing_are_refused_together() -> None:
    text = "def f(X: s32[4], Y: s32[4]):\n    assume(X >= 5)\n    assume(X <= 3)\n"
    text += "    for i in range(4):\n        Y[i] = X[i]\n"
    with pytest.raises(AutoschedError, match="leave nothing: at least 5, at most 3") as raised:
        parse(text)
    assert raised.value.location is not None
    assert raised.value.location.line == 3
