"""Panels with the same contents become one: the same numbers, less packing, less memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest
from support.compiled.kernel_check import check_kernel
from support.compiled.llvm_kernels import program as stub
from support.compiled.llvm_kernels import tensor
from support.match.agreement import expect
from support.plans import machine, plans_of

from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.codegen.passes.shared_panels import share_panels
from autosched.codegen.tree.kernel import Assign, Buffer, For, Function, Kernel, Lane, Stmt
from autosched.ir import parse
from autosched.ir.dtypes import DTYPES
from autosched.ir.value import Arith, Cast, Literal, Read
from autosched.logic import Const, Var
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


@pytest.mark.sampled("rows-300", "broadcast-300")
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


@pytest.mark.parametrize("same", [True, False])
def test_copies_that_convert_alike_are_one(same: bool) -> None:
    """Copies of a tensor in blocks of two sizes, in other types."""
    lane = Lane("e", 16)
    source = Buffer("V", DTYPES["bf16"], (64, 32), "global", "V")
    names, kinds = ("A", "B"), ("f32", "f32" if same else "f64")
    shapes = ((3, 16, 32), (8, 8, 32))
    filled = [
        Buffer(n, DTYPES[t], s, "workspace", "V") for n, t, s in zip(names, kinds, shapes, strict=True)
    ]
    output = Buffer("Y", DTYPES["f32"], (64, 32), "global", "Y")
    body: list[Stmt] = []
    for panel in filled:
        block, row, column = (Var(f"{x}{panel.name}") for x in "bjc")
        size = panel.shape[1]
        value = Cast(Read("V", (block * size + row, column + Var("e")), source.dtype), panel.dtype)
        copy: Stmt = Assign(panel.name, (block, row, column + Var("e")), value, lane)
        for var, extent, step in ((column, 32, 16), (row, size, 1), (block, panel.shape[0], 1)):
            copy = For(var.name, Const(0), Const(extent), (copy,), step=step)
        body.append(copy)
    for panel in filled:
        size, end = panel.shape[1], panel.shape[0] * panel.shape[1]
        i, j = Var(f"i{panel.name}"), Var(f"k{panel.name}")
        value = Cast(Read(panel.name, (i // size, i % size, j), panel.dtype), output.dtype)
        added = Arith("+", value, Read("Y", (i, j), output.dtype), output.dtype)
        inner = For(j.name, Const(0), Const(32), (Assign("Y", (i, j), added),))
        body.append(For(i.name, Const(0), Const(end), (inner,)))
    zero = Assign("Y", (Var("i"), Var("j")), Literal(0.0, output.dtype))
    first = For("i", Const(0), Const(64), (For("j", Const(0), Const(32), (zero,)),))
    tensors = [tensor(source), tensor(output)]
    buffers = {b.name: b for b in (source, *filled, output)}
    main = Function("main", tuple(buffers), (first, *body))
    kernel = Kernel("p", stub(tensors, ["Y"]), buffers, (), main)
    shared = share_panels(kernel)
    assert sum(b.scope == "workspace" for b in shared.buffers.values()) == (1 if same else 2)
    arrays = {"V": np.random.default_rng(0).normal(size=(64, 32)).astype(source.dtype.numpy)}
    np.testing.assert_array_equal(run_kernel(shared, arrays)["Y"], run_kernel(kernel, arrays)["Y"])
