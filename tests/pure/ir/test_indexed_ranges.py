"""Random data that are subscripts stay inside what they index, as far as that can be told."""

from __future__ import annotations

import numpy as np
import pytest

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
        ("I[i] // 2", "s32", None),
        ("I[i] + I[0]", "s32", None),
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
