"""Panels with the same contents become one: the same numbers, less packing, less memory."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiled.kernel_check import check_kernel
from support.match.agreement import expect
from support.plans import machine, plans_of

from autosched.codegen import lower as lowering
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import parse
from autosched.tiling.plans.plan import Plan

TWO = """
def two(X: f32[m, k], Z: f32[m, k], W: {w}, U: {w}, G: f32[m, n], Y: f32[m, n], *, m=32, n=64, k=20):
    for i, j in grid(m, n):
        G[i, j] = 0
        for p in range(k):
            G[i, j] += X[i, p] * W[{at}]
    for i, j in grid(m, n):
        Y[i, j] = 0
        for p in range(k):
            Y[i, j] += {x}[i, p] * {u}[{at}]
"""
WAYS = {
    "columns": ({"w": "f32[n, k]", "at": "j, p", "x": "X", "u": "U"}, "X", "pack_b"),
    "rows": ({"w": "f32[k, n]", "at": "p, j", "x": "Z", "u": "W"}, "W", "pack_b"),
    "broadcast": ({"w": "f32[k, n]", "at": "p, j", "x": "X", "u": "U"}, "X", "pack_a"),
}


def kernels(plan: Plan, operand: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Kernel, Kernel]]:
    """Kernels of which both nests pack an operand, with the passes and without."""
    ids = plan.space.sample(3000, np.random.default_rng(0))
    values = plan.space.values(ids)
    packs = [n for n in values if n.endswith(operand)]
    chosen = ids[np.all([values[n] == values[packs[0]] for n in packs], axis=0)]
    found = []
    for row in chosen[:40]:
        schedule = plan.space.schedule(int(row))
        with monkeypatch.context() as patch:
            patch.setattr(lowering, "share_panels", lambda kernel: kernel)
            plain = lower(plan, schedule)
        found.append((plain, lower(plan, schedule)))
    return found


def panels(kernel: Kernel, tensor: str) -> int:
    return sum(b.scope == "workspace" and b.origin == tensor for b in kernel.buffers.values())


@pytest.mark.parametrize("way", WAYS)
def test_two_nests_pack_what_both_read_once(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fields, tensor, pack = WAYS[way]
    program = parse(TWO.format(**fields))
    expected = expect(program)
    plan = next(p for p in plans_of(program, machine()) if len(p.tensor_parts) == 2)
    counts = []
    for plain, shared in kernels(plan, pack, monkeypatch):
        if panels(plain, tensor) == 2:
            counts.append(panels(shared, tensor))
            check_kernel(shared)
            assert expected.difference(run_kernel(shared, expected.arrays)) is None
    assert 1 in counts
    assert 2 in counts  # of other shapes
