"""Panels with the same contents become one: the same numbers, less packing, less memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from support.compiled.kernel_check import check_kernel
from support.match.agreement import expect
from support.plans import machine, plans_of

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


def kernels(plan: Plan, operand: str, count: int) -> Iterator[tuple[Kernel, bool]]:
    """Kernels of which both nests pack an operand whole, and whether they do in registers of the same shape."""
    ids = plan.space.sample(count, np.random.default_rng(0))
    for row in ids:
        schedule = plan.space.schedule(int(row))
        values = schedule.named
        packs = {v for n, v in values.items() if n.endswith(operand)}
        sizes = [v for n, v in values.items() if ".reg_" in n]
        if packs == {"panel"} and all(v == 1 for n, v in values.items() if n.endswith("threads")):
            yield lower(plan, schedule), sizes[:2] == sizes[2:]


@pytest.mark.parametrize("count", [300, pytest.param(3000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("way", WAYS)
def test_two_nests_pack_what_both_read_once(way: str, count: int) -> None:
    fields, tensor, pack = WAYS[way]
    program = parse(TWO.format(**fields))
    expected = expect(program)
    plan = next(p for p in plans_of(program, machine()) if len(p.tensor_parts) == 2)
    seen: Counter[tuple[bool, int]] = Counter()
    for kernel, alike in kernels(plan, pack, count):
        panels = sum(b.scope == "workspace" and b.origin == tensor for b in kernel.buffers.values())
        if panels == 1 and seen[alike, 1] < 6:
            check_kernel(kernel)
            assert expected.difference(run_kernel(kernel, expected.arrays)) is None
        seen[alike, panels] += 1
    assert seen[True, 1]
    assert seen[False, 2]
