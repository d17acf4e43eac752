"""Stages that stay in their loops: dependences say so, or the loops are named."""

from __future__ import annotations

import pytest

from autosched.ir import parse
from autosched.ir.program import Program
from autosched.tiling.analysis.dependence import analyse
from autosched.tiling.planner.held_together import held_together

TILES = """
def tiles(X: f32[64, 32], W: const[f32[32, 32]], Y: f32[64, 32], *, rows=16):
    T: f32[64, 32]
    for t in range(64 // rows):
        for i, j in grid(rows, 32):
            T[t * rows + i, j] = 0
            for p in range(32):
                T[t * rows + i, j] += X[t * rows + i, p] * W[p, j]
        for i, j in grid(rows, 32):
            Y[t * rows + i, j] = max(T[t * rows + i, j], 0)
"""
RUNNING = """
def running(X: f32[8, 32], Y: f32[8], Z: f32[8]):
    M: f32[8]
    for i in range(8):
        M[i] = 0
    for b in range(4):
        for i in range(8):
            Y[i] = M[i]
        for i, j in grid(8, 8):
            M[i] = max(M[i], X[i, b * 8 + j])
    for i in range(8):
        Z[i] = Y[i] + M[i]
"""


def tiles() -> Program:
    return parse(TILES)


def test_tiles_may_be_taken_apart_and_stay_where_their_loops_are_named() -> None:
    assert held_together(tiles()).parts == {}
    held = held_together(tiles(), ["t"])
    assert list(held.parts) == ["T", "Y"]
    assert held.parts["T"] is held.parts["Y"]
    assert held.parts["T"].stages == ("T", "Y")
    assert held_together(tiles(), []).parts == {}


def test_what_is_handed_back_holds_its_loops_together() -> None:
    held = held_together(parse(RUNNING))
    assert [p.stages for p in {id(p): p for p in held.parts.values()}.values()] == [("Y", "M.2")]
    assert held.dependences.groups == (("M",), ("Y", "M.2"), ("Z",))


@pytest.mark.parametrize("whole", [(), (("Y", "M.2"),), (("M", "Y"),), (("M.2", "Z"),), (("M", "Y", "M.2", "Z"),)])
def test_stages_that_are_named_whole_are_one_group(whole: tuple[tuple[str, ...], ...]) -> None:
    """Beside those that dependences hold together anyway."""
    found = analyse(parse(RUNNING), whole)
    first, last = any("M" in run for run in whole), any("Z" in run for run in whole)
    middle = (*(["M"] if first else []), "Y", "M.2", *(["Z"] if last else []))
    assert found.groups == (*([] if first else [("M",)]), middle, *([] if last else [("Z",)]))
    assert found.stages == analyse(parse(RUNNING)).stages
