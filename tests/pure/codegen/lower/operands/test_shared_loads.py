"""Loads that neighbouring outputs share: how many a tile has, that each is there once, and tiles without guards."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from support.match.agreement import disagreement, expect
from support.plans import machine, plans_of

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Assign, IntrinsicCall, Stmt, bodies
from autosched.ir import parse, workload
from autosched.logic import Var, evaluate
from autosched.tiling.plans.plan import Plan
from autosched.tiling.steps.cpu.shared_loads import _distinct, saves, window

IMAGE = {"h": 6, "w": 9, "c": 32}


def depthwise(**sizes: int) -> Plan:
    return plans_of(workload("depthwise_conv2d", **(IMAGE | sizes)))[0]


def row_of(plan: Plan, **wanted: int) -> int:
    """A legal row with these values, all others at their first that goes with them."""
    ids = plan.space.enumerate().ids
    values = plan.space.values(ids)
    fits = np.logical_and.reduce([values[n] == v for n, v in wanted.items()])
    assert fits.any(), wanted
    return int(ids[fits][0])


def statements(body: tuple[Stmt, ...]) -> list[Stmt]:
    return [s for stmt in body for s in (stmt, *(i for b in bodies(stmt) for i in statements(b)))]


@pytest.mark.parametrize(
    ("stride", "dilation", "taps"), [(1, 1, 3), (2, 1, 3), (2, 1, 5), (1, 2, 3), (4, 2, 4), (3, 1, 3)]
)
def test_distinct_addresses_are_counted(stride: int, dilation: int, taps: int) -> None:
    for tiles in range(1, 7):
        places = {stride * x + dilation * s for x, s in product(range(tiles), range(taps))}
        assert evaluate(_distinct(Var("x"), taps, stride, dilation), {"x": tiles}) == len(places)
    assert saves(taps, stride, dilation) == (
        len({stride * x + dilation * s for x in range(6) for s in range(taps)}) < 6 * taps
    )


def test_each_register_is_loaded_once() -> None:
    plan = depthwise(h=8, pad=0)  # 6 x 7 outputs
    row = row_of(plan, reg_y=2, reg_x=7, reg_o=1, loads=2, pack_a=0)
    kernel = lower(plan, plan.space.schedule(row))
    found = statements(kernel.main.body)
    loads = Counter(s.buffer for s in found if isinstance(s, Assign) and s.buffer.endswith("_reg"))
    calls = sum(isinstance(s, IntrinsicCall) for s in found)
    assert calls == 2 * 7 * 9
    assert loads == {"a_reg": 4 * 9, "b_reg": 9}
    nest, names = plan.tensor_parts[0].nest, plan.tensor_parts[0].names
    counted = window(nest, 2)
    assert counted is not None
    values = plan.space.schedule(row).values
    assert [evaluate(counted.loads(nest, o, names), values) for o in ("a", "b")] == [36, 9]


def test_no_decision_where_nothing_coincides() -> None:
    for program in (workload("matmul", m=16, n=32, k=8), workload("conv2d", h=6, w=6, ci=40, co=16)):
        for plan in plans_of(program):
            assert "loads" not in {d.name for d in plan.space.decisions}


def test_registers_of_a_window_are_limited() -> None:
    plan = plans_of(
        workload("depthwise_conv2d", **IMAGE), machine(frozenset(["avx2", "fma"]), registers=16, vector_bytes=32)
    )[0]
    ids = plan.space.enumerate().ids
    values = plan.space.values(ids)
    whole = values["loads"] == 2
    assert whole.any()
    assert (values["accumulators"][whole] + 9 + 1 <= 16).all()


SKEWED = """
def skewed(X: u8[n, c], W: u8[k, c], Y: s32[m, c], *, m=7, k=4, n=10, c=16):
    for x, o in grid(m, c):
        Y[x, o] = 0
        for s in range(k):
            if x + 2 * s < 9:
                Y[x, o] += s32(X[x + s, o]) * s32(W[s, o])
"""
PROGRAMS = {
    "nhwc": workload("depthwise_conv2d", h=5, w=6, c=19),
    "strided": workload("depthwise_conv2d", h=7, w=8, c=17, stride=2, kh=3, kw=4),
    "dilated": workload("depthwise_conv2d", h=6, w=7, c=16, dilation=2, pad=2),
    "bytes": workload("depthwise_conv2d", h=5, w=6, c=18, a="u8", b="s8", acc="s32"),
    "nchw": workload("depthwise_conv2d", h=4, w=18, c=3, layout="nchw"),
    "guard_of_another_kind": parse(SKEWED),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_compute_the_program(name: str) -> None:
    program = PROGRAMS[name]
    expected = expect(program)
    plans = [p for p in plans_of(program) if {"loads", "edges"} & {d.name for d in p.space.decisions}]
    assert plans
    plan = plans[0]
    ids = plan.space.enumerate().ids
    values = plan.space.values(ids)
    kinds = [values[n] for n in ("loads", "edges") if n in values]
    for kind in np.unique(np.stack(kinds), axis=1).T:
        same = np.logical_and.reduce([c == v for c, v in zip(kinds, kind, strict=True)])
        row = int(np.random.default_rng(len(name)).choice(ids[same]))
        assert disagreement(plan, [row], expected) is None
