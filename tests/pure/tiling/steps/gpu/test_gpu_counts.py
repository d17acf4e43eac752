"""On every GPU target: what a space counts of a row (threads, chunks, registers, bytes) is what its kernel has."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from support.cards.gpu_plans import CATALOGUE, covering

from autosched.codegen.cuda import print_cuda
from autosched.codegen.cuda.shared_memory.layout import SharedMemory
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Assign, For, Kernel, Stmt, statements
from autosched.device.correctness.oracle import compute
from autosched.device.simulator.verify.verify import check
from autosched.ir import parse, resolve
from autosched.ir.program import Program
from autosched.machine.catalogue import load_target, target_names
from autosched.machine.target import Target
from autosched.search.tuning.tune import usable
from autosched.tensorize.matcher.match import match
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.plans.plan import Plan, TensorPart, WarpCooperativePart
from autosched.tiling.steps.gpu.block_tile import gpu_pair, worker_threads
from autosched.tiling.steps.gpu.thread_registers import thread_registers
from autosched.tiling.variants.conditional import candidates_of

GPUS = [t for t in map(load_target, target_names()) if "warp_threads" in t.limits]
TURNED = """
def turned(A: f32[m, n], B: f32[n, m], *, m=40, n=67):
    for j, i in grid(n, m):
        B[j, i] = A[i, j] + 1
"""
TEAMS: dict[str, Program] = {
    "softmax": resolve("softmax", {"m": 5, "n": 300}),
    "long sum": resolve("reduce", {"op": "sum", "over": "rows", "m": 1, "n": 3000}),
    "sum of columns": resolve("reduce", {"op": "sum", "over": "columns", "m": 150, "n": 37}),
    "bias": resolve("elementwise", {"op": "bias", "m": 5, "n": 144}),
    "turned": parse(TURNED),
}
ROWS = 6


def _loops(kernel: Kernel, kind: str) -> list[int]:
    return [int(s.upper.value) for s in statements(kernel.main.body) if isinstance(s, For) and s.kind == kind]  # type: ignore[union-attr]


def _some(plan: Plan) -> list[int]:
    rows = covering(plan)
    return rows[:: max(1, len(rows) // ROWS)]


def _number(plan: Plan, row: int, name: str) -> int:
    return int(np.ravel(plan.space.values([row])[name])[0])


def _shared_bytes(kernel: Kernel, target: Target) -> int:
    """Of the launch that takes most; CUDA's printer adds pieces for opaque fragments, and divides by a cluster."""
    if target.isa == "cuda":
        return max(launch.shared_bytes for launch in print_cuda(kernel, target).plan.launches)
    return max(SharedMemory.of(kernel, (s,)).bytes for s in kernel.main.body)


def _lanes(body: list[Stmt]) -> set[int]:
    return {s.lane.width for s in body if isinstance(s, Assign) and s.lane is not None}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", TEAMS)
@pytest.mark.parametrize("target", GPUS, ids=lambda t: t.name)
def test_teams(target: Target, name: str) -> None:
    program = TEAMS[name]
    plan = make_plans(program, target, {}, 1)[0]
    (part,) = plan.parts
    assert isinstance(part, WarpCooperativePart)
    lanes = target.limits["warp_threads"]
    oracle = compute(program, 0)
    for row in _some(plan):
        decided = plan.space.schedule(row).named
        kernel = lower(plan, plan.space.schedule(row))
        first = next(s for s in kernel.main.body if isinstance(s, For))
        inner = list(statements((first,)))
        warps = max((int(s.upper.value) for s in inner if isinstance(s, For) and s.kind == "warp"), default=1)  # type: ignore[union-attr]
        assert _number(plan, row, part.names("threads_in_block")) == warps * lanes, decided
        tile = int(plan.space.schedule(row).values.get(part.names("tile"), 0))
        shared = sum(b.elements * b.dtype.bytes for b in kernel.buffers.values() if b.scope == "shared")
        if part.names("tile_bytes") in plan.space.derived:
            assert _number(plan, row, part.names("tile_bytes")) == (shared if tile else 0), decided
        widths = {w for w in _lanes(inner) if w > 1}
        vector = 1 if tile else int(plan.space.schedule(row).values[part.names("vector")])
        assert (tile or vector * lanes) in widths, decided
        registers = [b for b in kernel.buffers.values() if b.scope == "register" and b.shape[-1] > 1]
        assert all(b.shape[-1] % lanes == 0 for b in registers), decided
        if part.across:
            chunk = warps // int(plan.space.schedule(row).values[part.names("rows")]) * vector * lanes
            assert _number(plan, row, part.names("chunk")) == chunk, decided
        assert check(kernel, oracle).ok, decided


def _product(target: Target) -> Program:
    sizes: dict[str, Any] = {"m": 64, "n": 64, "k": 64, "a": "f16", "b": "f16"}
    return resolve("matmul", sizes)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", GPUS, ids=lambda t: t.name)
def test_products(target: Target) -> None:
    program = _product(target)
    found = match(program, usable(CATALOGUE, target, "simulator"))
    plans = make_plans(program, target, candidates_of(found), 1)
    lanes, seen = target.limits["warp_threads"], 0
    for plan in [p for p in plans if p.tensor_parts][:2]:
        (part, *_) = plan.tensor_parts
        for row in _some(plan)[:3]:
            kernel = lower(plan, plan.space.schedule(row))
            groups = max([*(4 * n for n in _loops(kernel, "warpgroup")), *_loops(kernel, "warp")], default=0)
            threads = groups * lanes or max(_loops(kernel, "thread"), default=1)
            counted = part.names("threads")
            said = _number(plan, row, counted if counted in plan.space.derived else part.names("threads_in_block"))
            assert said == threads, plan.space.schedule(row).named
            shared = _shared_bytes(kernel, target)
            if part.names("shared_bytes") in plan.space.derived:
                counted_bytes = _number(plan, row, part.names("shared_bytes"))
                opaque = any(o.opaque is not None for o in part.nest.intrinsic.operands.values())  # counted at most
                assert shared == counted_bytes or (opaque and shared < counted_bytes), plan.space.schedule(row).named
            _registers_agree(plan, part, row, kernel, target)
            seen += 1
    assert seen


def _registers_agree(plan: Plan, part: TensorPart, row: int, kernel: Kernel, target: Target) -> None:
    """The limit that the kernel's grid states is the space's; its accumulators are as many, and fit into what the space
    says that a thread takes."""
    decided, intrinsic = plan.space.schedule(row).named, part.nest.intrinsic
    grids = [s for s in kernel.main.body if isinstance(s, For)]
    limit = part.names("register_limit")
    assert max(s.registers for s in grids) == (_number(plan, row, limit) if limit in plan.space.derived else 0), decided
    tile = len(gpu_pair(part.nest))
    acc = next(b for b in kernel.buffers.values() if b.scope == "register" and b.name.startswith("acc"))
    count = prod(acc.shape[len(acc.shape) - 1 - tile : -1])
    assert _number(plan, row, part.names("accumulators")) == count, decided
    assert acc.shape[-1] == intrinsic.accumulator.elements
    words = thread_registers(intrinsic.accumulator, worker_threads(intrinsic, target))
    assert _number(plan, row, part.names("registers")) > count * words, decided
