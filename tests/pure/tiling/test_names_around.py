"""Loops that a plan adds inside a body have names of their own: none has the name of a loop around it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autosched import ir
from autosched.ir.rewrites.names import FreeNames
from autosched.machine.catalogue import load_target
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of
from autosched.tiling.analysis.windows import nested, windowed
from autosched.tiling.plans.plan import TileLoopsPart

TILES = """
def tiles(Q: bf16[24, 32], K: bf16[6, 128, 32], V: bf16[6, 128, 32], O: bf16[24, 32]):
    S: f32[2, 12, 128]
    M: f32[2, 12]
    Z: f32[2, 12]
    A: f32[2, 12, 32]
    for b_tile in range(2):
        for b, j in grid(12, 128):
            S[b_tile, b, j] = 0.0
            for p in range(32):
                S[b_tile, b, j] += f32(Q[b_tile * 12 + b, p]) * f32(K[(b_tile * 12 + b) // 4, j, p])
        for b in range(12):
            M[b_tile, b] = -inf
            for j in range(128):
                M[b_tile, b] = max(M[b_tile, b], S[b_tile, b, j])
        for b in range(12):
            Z[b_tile, b] = 0.0
            for j in range(128):
                Z[b_tile, b] += exp(S[b_tile, b, j] - M[b_tile, b])
        for b, e in grid(12, 32):
            A[b_tile, b, e] = 0.0
            for j in range(128):
                x = exp(S[b_tile, b, j] - M[b_tile, b])
                A[b_tile, b, e] += f32(bf16(x)) * f32(V[(b_tile * 12 + b) // 4, j, e])
        for b, e in grid(12, 32):
            O[b_tile * 12 + b, e] = bf16(A[b_tile, b, e] / Z[b_tile, b])
"""


def test_a_body_knows_the_names_around_it() -> None:
    program = ir.parse(TILES)
    loops, body = nested(program.body)
    made = windowed(program, loops, body)
    assert made is not None
    assert "b_tile" not in made.program.symbolic
    assert FreeNames(made.program)("b_tile") == "b_tile_2"


def test_a_part_refuses_a_loop_inside_with_the_name_of_one_around() -> None:
    """Its index would be read where the other's was meant: `b_tile * 12 + b_tile * 4`."""
    program = ir.parse(TILES)
    _, plans = plans_of(TuneRequest(program, load_target("nvidia-h200"), device="cuda", numerics="real"))
    part = next(p for plan in plans for p in plan.parts if isinstance(p, TileLoopsPart))
    inner = part.member.program.stages[0].axes[0].name
    clash = replace(part.loops[0], axis=replace(part.loops[0].axis, name=inner))
    with pytest.raises(ValueError, match=f"a loop inside is called {inner}, too"):
        replace(part, loops=(clash, *part.loops[1:]))
