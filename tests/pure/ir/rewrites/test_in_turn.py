"""Sums of finished sums in tiles, each part added up as soon as it is finished."""

from __future__ import annotations

import numpy as np
import pytest

from autosched import ir
from autosched.ir.rewrites.tiles.in_turn import in_turn

SUMS = """
def f(A: f32[2, 4, 8], B: f32[8, 6], D: f32[2, 6], Y: f32[4, 6], Z: f32[2]):
    G: f32[2, 4, 6]
    for g, i, j in grid(2, 4, 6):
        G[g, i, j] = 0
        for p in range(8):
            G[g, i, j] += A[g, i, p] * B[p, j]
    for k, l in grid(4, 6):
        Y[k, l] = 1
        for h in range(2):
            Y[k, l] += G[h, k, l] * D[h, l]
"""
TILED = """\
    G_tile: f32[2, 2, 2, 3]
    Y_tile: f32[2, 2, 2, 3]
    for k_tile, l_tile in grid(2, 2):
        for k, l in grid(2, 3):
            Y_tile[k_tile, l_tile, k, l] = 1.0
        for h in range(2):
            for k_2, l_2 in grid(2, 3):
                G_tile[k_tile, l_tile, k_2, l_2] = 0.0
                for p in range(8):
                    G_tile[k_tile, l_tile, k_2, l_2] += A[h, k_tile * 2 + k_2, p] * B[p, l_tile * 3 + l_2]
            for k_3, l_3 in grid(2, 3):
                Y_tile[k_tile, l_tile, k_3, l_3] += G_tile[k_tile, l_tile, k_3, l_3] * D[h, l_tile * 3 + l_3]
        for k_4, l_4 in grid(2, 3):
            Y[k_tile * 2 + k_4, l_tile * 3 + l_4] = Y_tile[k_tile, l_tile, k_4, l_4]
"""


def test_the_program_in_tiles() -> None:
    before = ir.parse(SUMS)
    after = in_turn(before, "G", (2, 3))
    assert after is not None
    assert str(after).endswith(TILED)
    assert ir.parse(str(after)) == after
    rng = np.random.default_rng(0)
    data = {n: rng.normal(size=before.tensors[n].extents).astype(np.float32) for n in before.inputs}
    assert np.array_equal(ir.run(before, data)["Y"], ir.run(after, data)["Y"])


@pytest.mark.parametrize("tile", [(3, 3), (2, 4), (1, 2, 3)])
def test_tiles_divide_the_results(tile: tuple[int, ...]) -> None:
    assert in_turn(ir.parse(SUMS), "G", tile) is None


def test_tiles_of_the_last_axis_alone() -> None:
    after = in_turn(ir.parse(SUMS), "G", (3,))
    assert after is not None
    assert after.tensors["G_tile"].extents == (4, 2, 3)


@pytest.mark.parametrize(
    "change",
    [("G[h, k, l] * D", "G[h, l % 4, l] * D"), ("G[h, k, l] * D", "G[0, k, l] * D"),
     ("range(2)", "range(1)"), ("D[h, l]\n", "D[h, l] * Y[0, l]\n"),
     ("D[h, l]\n", "D[h, l]\n    for g2 in range(2):\n        Z[g2] = G[g2, 0, 0]\n"),
     ("    for k, l in", "    for g3 in range(2):\n        Z[g3] = 1\n    for k, l in"),
     ("Y[k, l] = 1\n", "Y[k, l] = G[0, k, l]\n"), ("A[g, i, p] * B", "A[g, i, p] * Y[i, j] * B")],
)  # fmt: skip
def test_what_is_left_as_it_is(change: tuple[str, str]) -> None:
    """Parts that others read, that are read at other places or not all, and nests that need each other's results."""
    assert change[0] in SUMS
    assert in_turn(ir.parse(SUMS.replace(*change)), "G", (2, 3)) is None
