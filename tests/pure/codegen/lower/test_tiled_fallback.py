"""What runs where a kernel's check refuses the data may have its parts in tile loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from support.match.agreement import disagreement, expect
from support.plans import machine
from support.tiles import plans_in_tiles

from autosched.codegen.lower import lower
from autosched.ir import parse
from autosched.search.tuning.fallbacks import fastest_row
from autosched.search.tuning.tune import usable
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.fallback import exchangeable
from autosched.tiling.plans.plan import Otherwise

ONLY = "x86/vpmadd*.ymm", "portable/mac.s8.s8.s32.v16"
TEXT = """
def two(X: s8[m, k], W: const[s8[k, n]], S: f32[n], U: const[s8[n, o]], Y: s32[m, o], *, m=127, k=64, n=33, o=16):
    C: s32[m, n]
    P: s8[m, n]
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += s32(X[i, p]) * s32(W[p, j])
    for i, j in grid(m, n):
        P[i, j] = sat_s8(f32(C[i, j]) * S[j])
    for i, j in grid(m, o):
        Y[i, j] = 0
        for p in range(n):
            Y[i, j] += s32(P[i, p]) * s32(U[p, j])
"""


def test_tile_loops_may_stand_by() -> None:
    program, catalogue = parse(TEXT, filename="two.py"), Catalogue.builtin()
    target = machine(frozenset(["avx2", "fma"]), 16, 32)
    every = plan_program(program, target, catalogue, usable(catalogue, target, "cpu", ONLY)).every
    (tiled, *_) = plans_in_tiles(program, 1, target)
    found = fastest_row(tiled)
    assert found is not None
    guarded = next(p for p in every if p.guards and exchangeable(p, tiled))
    guarded = replace(guarded, otherwise=Otherwise(tiled, found[1]))
    rows = guarded.space.sample(2, np.random.default_rng(0)).tolist()
    assert disagreement(guarded, rows, expect(program)) is None
    assert len(lower(guarded, guarded.space.schedule(rows[0])).main.body) > 0
