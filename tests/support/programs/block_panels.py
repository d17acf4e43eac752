"""Programs and machines for panels of one cache block: operands that outgrow a small second level of cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from support.plans import CONV, machine

from autosched.ir import parse, workload
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.tiling.plans.plan import Plan
from autosched.tiling.steps import BLOCK

BATCH = """
def batch(A: f32[3, 2, 9, 7], B: f32[3, 7, 37], C: f32[3, 2, 9, 37]):
    for z, h, i, j in grid(3, 2, 9, 37):
        C[z, h, i, j] = 0
        for p in range(7):
            C[z, h, i, j] += A[z, h, i, p] * B[z, p, j]
"""


def small(target: Target | None = None) -> Target:
    """A machine whose second level of cache the operands of small programs outgrow."""
    target = target or machine()
    return replace(target, memories=tuple(replace(m, bytes=4096) if m.name == "L2" else m for m in target.memories))


def nothing_const(program: Program) -> Program:
    return replace(program, tensors={n: replace(t, const=False) for n, t in program.tensors.items()})


WINDOWS = """
def lines(X: bf16[2, 7, 7, 4], P: const[bf16[3, 1, 4, 16]], Y: f32[2, 4, 7, 16]):
    for b, y, x, u in grid(2, 4, 7, 16):
        Y[b, y, x, u] = 0
        for r, s, q in grid(3, 1, 4):
            if 0 <= y * 2 + r - 1 < 7:
                Y[b, y, x, u] += f32(X[b, y * 2 + r - 1, x, q]) * f32(P[r, s, q, u])
"""
"""Few lines: a register tile may hold all of them, and has no loop over them then."""


PROGRAMS = {
    "f32": nothing_const(workload("matmul", m=23, n=37, k=24)),
    "u8s8": nothing_const(workload("matmul", m=5, n=70, k=35, a="u8", b="s8")),
    "bf16": nothing_const(workload("matmul", m=5, n=40, k=33, a="bf16", b="bf16")),
    "batch": parse(BATCH, filename="batch.py"),
    "conv": nothing_const(parse(CONV, filename="conv.py", sizes={"h": 4, "co": 35})),
}


def blocked(plan: Plan) -> npt.NDArray[Any]:
    """The legal rows that pack some operand a block at a time."""
    ids = plan.space.enumerate().ids
    values = plan.space.values(ids)
    packs = [c for c in values if c.startswith("pack_")]
    return ids[np.any([values[c] == BLOCK for c in packs], axis=0)]
