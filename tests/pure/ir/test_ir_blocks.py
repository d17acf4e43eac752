"""A box of an output, computed alone, is the same box of the whole output: values bit by bit, tolerances too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.match.examples import examples
from support.programs.ir_programs import program_texts, reduction_texts

import autosched.ir as ir
from autosched.ir.oracle import blas_sums
from autosched.ir.oracle.blocks import run_blocks
from autosched.ir.oracle.inputs import split_inputs
from autosched.ir.oracle.nests import along_rows
from autosched.ir.oracle.slicing import Box, Slice, narrowed, slice_of
from autosched.ir.program import Program

TEXTS = st.one_of(program_texts(), program_texts(), reduction_texts())


def agreed(program: Program, wanted: dict[str, Box], seed: int) -> Slice:
    """Compares the wanted boxes with those of a run of everything."""
    arrays, scalars = split_inputs(program, ir.random_inputs(program, np.random.default_rng(seed)))
    fused = {s.name for s in program.stages}
    outputs, tolerances = ir.run_with_error(program, arrays, scalars, fused_stages=fused)
    part = slice_of(program, wanted)
    values, bounds = run_blocks(program, part, wanted, arrays, scalars, fused)
    assert set(values) == set(wanted)
    for name, box in wanted.items():
        here = tuple(slice(low, low + n) for low, n in box)
        whole = np.broadcast_to(tolerances[name], np.shape(outputs[name]))
        np.testing.assert_array_equal(values[name].astype(np.float64), outputs[name][here].astype(np.float64))
        # Of triangular sums, the longest of the rows that are computed counts, and rounding errors of an empty one.
        assert (bounds[name] <= whole[here] * 1.25 + 1e-300).all()
        np.testing.assert_array_equal(bounds[name] > 1e-300, whole[here] > 1e-300)
    turned = ir.run(replace(program, body=along_rows(program.body)), arrays, scalars)
    for name, values in outputs.items():
        np.testing.assert_array_equal(turned[name].astype(np.float64), values.astype(np.float64))
    less = replace(program, body=narrowed(program, wanted))
    zeros = {n: np.zeros(program.tensors[n].extents, program.tensors[n].dtype.numpy) for n in less.inputs}
    cut = ir.run(less, zeros | {n: a for n, a in arrays.items() if n in less.inputs}, scalars)
    for name, box in ((n, b) for n, b in wanted.items() if n in cut):  # some write nothing there
        here = tuple(slice(low, low + n) for low, n in box)
        np.testing.assert_array_equal(cut[name][here].astype(np.float64), outputs[name][here].astype(np.float64))
    return part


@pytest.mark.slow
@examples(300)
@given(TEXTS, st.integers(0, 3), st.data())
def test_a_box_of_a_random_program_is_that_of_the_whole(text: str, seed: int, data: st.DataObject) -> None:
    program = ir.parse(text)
    if not program.outputs:
        return
    wanted: dict[str, Box] = {}
    for name in data.draw(st.lists(st.sampled_from(program.outputs), min_size=1, unique=True)):
        box = []
        for extent in program.tensors[name].extents:
            low = data.draw(st.integers(0, extent - 1))
            box.append((low, data.draw(st.integers(1, extent - low))))
        wanted[name] = tuple(box)
    whole = {n: tuple((0, e) for e in program.tensors[n].extents) for n in program.outputs}
    event(f"smaller: {agreed(program, wanted, seed).points < slice_of(program, whole).points}")


ATTENTION = """
def attention(Q: f32[h, n, d], K: f32[h, n, d], V: f32[h, n, d], O: f32[h, n, d], *, h=3, n=12, d=4):
    S: f32[h, n, n]
    M: f32[h, n]
    Z: f32[h, n]
    for b, i in grid(h, n):
        for j in range(i + 1):
            S[b, i, j] = 0
            for e in range(d):
                S[b, i, j] += Q[b, i, e] * K[b, j, e]
    for b, i in grid(h, n):
        M[b, i] = -3.0e38
        for j in range(i + 1):
            M[b, i] = max(M[b, i], S[b, i, j])
    for b, i in grid(h, n):
        Z[b, i] = 0
        for j in range(i + 1):
            Z[b, i] += exp(S[b, i, j] - M[b, i])
    for b, i, e in grid(h, n, d):
        O[b, i, e] = 0
        for j in range(i + 1):
            O[b, i, e] += exp(S[b, i, j] - M[b, i]) / Z[b, i] * V[b, j, e]
"""
CARRIED = """
def carried(S: f32[h, n, n], O: f32[h, n], *, h=4, n=6):
    M: f32[h, n]
    P: f32[h, n]
    for b, i in grid(h, n):
        M[b, i] = -3.0e38
        O[b, i] = 0
        for j in range(n):
            P[b, i] = M[b, i]
            M[b, i] = max(M[b, i], S[b, i, j])
            O[b, i] = O[b, i] * exp(P[b, i] - M[b, i]) + exp(S[b, i, j] - M[b, i])
"""
SCAN = """
def scan(X: s32[m, n], C: s32[m, n], *, m=5, n=9):
    for i in range(m):
        C[i, 0] = X[i, 0]
        for j in range(1, n):
            C[i, j] = C[i, j - 1] + X[i, j]
"""
WINDOWS = """
def windows(X: s16[c, n], W: s16[c, 3], Y: s32[c, n], *, c=4, n=16):
    T: s32[c, n]
    for k, x in grid(c, n):
        T[k, x] = 0
        for r in range(3):
            if 0 <= x + r - 1 < n:
                T[k, x] += s32(X[k, x + r - 1]) * s32(W[k, r])
    for k, x in grid(c, n):
        Y[k, x] = T[k, x] if x == 0 else T[k, x] - T[k, x - 1]
"""
GATHERED = """
def gathered(X: f16[v, n], I: s32[m], Y: f32[m, n], *, v=20, m=8, n=6):
    assume(0 <= I < 20)
    T: f32[v, n]
    for r, j in grid(v, n):
        T[r, j] = f32(X[r, j]) * 2.0
    for i, j in grid(m, n):
        Y[i, j] = T[I[i], j] + 1.0
"""


@pytest.mark.parametrize(
    ("text", "box", "share"),
    [
        (ATTENTION, ((1, 1), (5, 2), (1, 2)), 0.2),
        (ATTENTION, ((2, 1), (11, 1), (3, 1)), 0.2),
        (CARRIED, ((1, 2), (2, 1)), 0.2),
        (SCAN, ((3, 1), (4, 2)), 0.3),
        (WINDOWS, ((2, 1), (7, 3)), 0.15),
        (WINDOWS, ((0, 1), (0, 1)), 0.15),
        (GATHERED, ((3, 2), (2, 2)), 0.5),
    ],
)
def test_a_box_needs_a_part_of_the_program(text: str, box: Box, share: float) -> None:
    program = ir.parse(text)
    (name,) = program.outputs
    part = agreed(program, {name: box}, 1)
    everything: Any = {name: tuple((0, e) for e in program.tensors[name].extents)}
    assert part.points < share * slice_of(program, everything).points


def test_a_row_longer_than_what_is_computed_at_once() -> None:
    """It was cut along an axis of one element, without end."""
    n = blas_sums.LARGEST + 5
    text = "def f(X: u8[m, l], Y: s32[m], *, m=1, l=9):\n    for i in range(m):\n        Y[i] = 0\n"
    program = ir.parse(text + "        for k in range(l):\n            Y[i] += s32(X[i, k])\n", sizes={"l": n})
    assert ir.run(program, {"X": np.ones((1, n), np.uint8)})["Y"].tolist() == [n]
