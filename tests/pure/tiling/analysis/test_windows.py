"""Windows: the body of loops is a program that computes one iteration of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from autosched.ir import parse, random_inputs, run
from autosched.ir.program import Program
from autosched.logic import Int, evaluate
from autosched.tiling.analysis.windows import Windowed, nested, windowed


def body_of(program: Program) -> Windowed | None:
    loops, body = nested(program.body[:1])
    return windowed(program, loops, body)


def of(text: str) -> Windowed | None:
    head = "def f(X: f32[m, k], W: f32[k, n], Y: f32[m, n], I: s32[m], *, m=24, k=12, n=16):\n"
    return body_of(parse(head + text, filename="f.py"))


TILES = """
    H: f32[m, k]
    for t in range(6):
        for i, p in grid(4, k):
            H[t * 4 + i, p] = X[t * 4 + i, p] * 2.0
        for i, j in grid(4, n):
            Y[t * 4 + i, j] = 0
            for p in range(k):
                Y[t * 4 + i, j] += H[t * 4 + i, p] * W[p, j]
"""


def test_a_tile_is_a_program_of_its_own() -> None:
    made = of(TILES)
    assert made is not None
    shapes = {n: (t.extents, t.intermediate, t.const) for n, t in made.program.tensors.items()}
    assert shapes == {
        "H": ((4, 12), True, False),
        "X": ((4, 12), False, False),
        "Y": ((4, 16), False, False),
        "W": ((12, 16), False, True),  # the same in every iteration
    }
    assert "H" not in made.windows
    own = replace(made.program, names_around=frozenset())
    assert parse(str(own), filename="f.py") == own


def test_iterations_of_the_body_are_the_program() -> None:
    head = "def f(X: f32[m, k], W: f32[k, n], Y: f32[m, n], *, m=24, k=12, n=16):\n"
    program = parse(head + TILES.strip("\n") + "\n", filename="f.py")
    made = body_of(program)
    assert made is not None
    data = random_inputs(program, np.random.default_rng(0))
    want = run(program, data)["Y"]
    found = np.zeros_like(want)
    for t in range(6):
        at = {n: tuple(slice(int(_at(i, t)), None) for i in w.start) for n, w in made.windows.items()}
        inputs = {n: data[made.windows[n].tensor][at[n]] for n in made.program.inputs}
        cut = {n: a[tuple(slice(0, e) for e in made.program.tensors[n].extents)].copy() for n, a in inputs.items()}
        found[t * 4 : t * 4 + 4] = run(made.program, cut)["Y"]
    assert np.array_equal(found, want)


def _at(index: Int, t: int) -> int:
    return int(evaluate(index, {"t": t}))


@pytest.mark.parametrize(
    "body",
    [
        "Y[t * 4 + i, j] = Y[t * 4 + i, j] + 1.0\n            Y[(5 - t) * 4 + i, j] = 2.0",  # what is written, twice
        "Y[t * 4 + i, j] = X[(t * 4 + i) // 3, 0]\n            Y[t * 4 + i, j] += 1.0",  # of no one size
    ],
)
def test_bodies_without_windows(body: str) -> None:
    loops = f"    for t in range(6):\n        for i, j in grid(4, n):\n            {body}\n"
    assert of(loops + "        for i in range(4):\n            Y[t * 4 + i, 0] = 0.0\n") is None


def test_groups_of_a_tile_are_one_window() -> None:
    made = of("""
    for t in range(6):
        for i, j in grid(4, n):
            Y[t * 4 + i, j] = X[(t * 4 + i) // 4, 0] + X[(t * 4 + i) % 4, 1]
        for i in range(4):
            Y[t * 4 + i, 0] = 0.0
""")
    assert made is not None
    assert {n: (w.tensor, str(w.start[0])) for n, w in made.windows.items() if w.tensor == "X"} == {
        "X": ("X", "t"),
        "X_2": ("X", "0"),
    }


def test_subscripts_by_data_are_of_whole_dimensions() -> None:
    made = of("""
    for t in range(6):
        for i, j in grid(4, n):
            Y[t * 4 + i, j] = W[I[t * 4 + i], j]
        for i in range(4):
            Y[t * 4 + i, 0] = 0.0
""")
    assert made is not None
    assert made.program.tensors["W"].extents == (12, 16)
    assert made.program.tensors["I"].extents == (4,)


def test_axes_around_are_sizes_that_are_not_known() -> None:
    made = of("""
    for t in range(6):
        for i, j in grid(4, n):
            Y[t * 4 + i, j] = X[t * 4 + i, 0] if j <= t * 4 + i else 0.0
        for i in range(t + 1):
            Y[t * 4, 0] += 1.0
""")
    assert made is not None
    assert made.program.symbolic == {"t": (0, 5)}
