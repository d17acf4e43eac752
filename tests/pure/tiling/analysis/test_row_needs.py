"""Runs of stages in tiles of rows: which rows a tile needs, what keeps stages out; tiles compute the program."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from fuzz.row_chains import random_row_chain
from hypothesis import event, given
from hypothesis import strategies as st
from support.match.examples import examples

from autosched.ir import parse, random_inputs, run
from autosched.ir.program import Program
from autosched.ir.rewrites.tiles.rows import HeldRows, RowRange, RowStage
from autosched.ir.rewrites.tiles.tiled_rows import tiled_rows
from autosched.tiling.variants.shared_runs import SharedRun, runs, shared_runs

WINDOWS = """
def f(X: f32[20], W: const[f32[3]], Y: f32[{n}]{outputs}):
    {inner}
    for y in range(20):
        H[y] = X[y] * 2
    for y in range({n}):
        Y[y] = 0
        for r in range(3):
            Y[y] += {read} * W[r]
"""


def windows(read: str, n: int = 9, outputs: str = "", inner: str = "H: f32[20]") -> Program:
    return parse(WINDOWS.format(read=read, n=n, outputs=outputs, inner=inner).lstrip(), filename="f.py")


def only(program: Program) -> SharedRun:
    (found,) = shared_runs(program, 0)
    return found


def test_a_window_needs_rows_around_its_own() -> None:
    found = only(windows("H[2 * y + r]"))
    assert found.run.members == (RowStage("y", RowRange(2, 0, 2)), RowStage("y_2"))
    assert found.run.buffers == {"H": HeldRows(0, RowRange(2, 0, 2))}
    assert found.keeping is not None
    assert found.keeping.members == (RowStage("y", RowRange(2, 1, 2)), RowStage("y_2"))
    assert found.keeping.buffers == {"H": HeldRows(0, RowRange(2, 0, 2), kept=True)}


def test_needs_add_up_over_stages() -> None:
    step, wide = RowRange(2, -1, 1), RowRange(1, 0, 0).through(3, -2, 5)
    assert step.through(2, -3, 3) == RowRange(4, -5, 5)
    assert (wide.count(4), wide.of(2, 6), wide.again) == (17, (4, 21), 5)
    assert wide.new.count(4) == 3 * 4
    assert step.joined(RowRange(2, 0, 4)) == RowRange(2, -1, 4)
    assert step.joined(wide) is None


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (windows("H[19 - 2 * y - r]"), "backwards"),
        (windows("H[y // 2 + r]"), "at no pace"),
        (windows("H[(y + r) % 20]"), "no sum"),
        (windows("(H[y + r] + H[2 * y])"), "at two paces"),
        (windows("(H[y + r] + H[0])"), "one row of all"),
        (windows("H[y + r]", outputs=", H: f32[20]", inner=""), "a result"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_what_keeps_stages_apart(program: Program, why: str) -> None:
    assert not shared_runs(program, 0), why


def test_what_another_stage_writes_is_not_computed_twice() -> None:
    """A stage that reads what the last one overwrites would read some rows of it too late."""
    text = """
def f(Y: f32[20], W: const[f32[3]]):
    H: f32[20]
    for y in range(20):
        H[y] = Y[y] * 2
    for y in range(18):
        Y[y] = 0
        for r in range(3):
            Y[y] += H[y + r] * W[r]
"""
    assert not shared_runs(parse(text.lstrip(), filename="f.py"), 0)


def test_rows_are_kept_by_copies_of_them() -> None:
    found = only(windows("H[y + r]", n=18))
    after = tiled_rows(found.program, found.run, 4, found.keeping)
    assert after is not None
    text = str(after)
    assert "        for y_5 in range(4):\n            H_3[y_5 + 2] = X[y_tile * 4 + 6 + y_5] * 2.0\n" in text
    assert "    for k_2 in range(2):\n        H_3[k_2] = H_2[k_2 + 4]\n    for y_tile in range(3):" in text
    assert "        for k in range(2):\n            H_3[k] = H_3[k + 4]\n" in text


@examples(15)
@given(st.integers(0, 10**6), st.integers(0, 99))
def test_tiles_of_random_chains_compute_the_program(seed: int, numbers: int) -> None:
    tiles_compute_a_chain(seed, numbers)


@pytest.mark.slow
@examples(120)
@given(st.integers(0, 10**6), st.integers(0, 99))
def test_tiles_of_more_random_chains_compute_the_program(seed: int, numbers: int) -> None:
    tiles_compute_a_chain(seed, numbers)


def tiles_compute_a_chain(seed: int, numbers: int) -> None:
    program = random_row_chain(seed)
    inputs = random_inputs(program, np.random.default_rng(numbers))
    expected = run(program, inputs)
    for found in runs(program, 0):
        ways = (None,) if found.keeping is None else (None, found.keeping)
        for tile, inside in product(range(1, found.extent + 1), ways):
            after = tiled_rows(program, found.run, tile, inside)
            if after is None:
                continue
            assert parse(str(after), filename="f.py") == after
            got = run(after, inputs)
            assert all(np.array_equal(got[name], expected[name]) for name in expected), str(after)
            event(f"{'kept' if inside else 'twice' if found.again else 'apart'}")
