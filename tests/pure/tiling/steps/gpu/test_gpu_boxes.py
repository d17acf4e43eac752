"""What Hopper's own units do with slices: boxes land where single copies would, descriptors find their operands."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from support.cards.gpu_plans import H200, covering, plans
from support.compiled.kernel_check import check_kernel

from autosched.codegen.interpret.boxes import swizzled
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import (
    AsyncCalls,
    AsyncCopies,
    For,
    If,
    IntrinsicCall,
    Kernel,
    RegisterRef,
    Stmt,
    WaitCopies,
    WarpSpecialize,
    statements,
)
from autosched.device.correctness.oracle import compute
from autosched.device.simulator.verify.verify import check
from autosched.ir.program import Program
from autosched.logic import evaluate, free_vars
from autosched.machine.target import Target
from autosched.tiling.plans.plan import Plan
from autosched.tiling.space.request import request

BF16 = {"a": "bf16", "b": "bf16", "acc": "f32"}
ENGINE: dict[str, int | str] = {"copy": "TMA", "stages": 2, "reg_i": 1, "groups_i": 1, "roles": "producer"}
FEW = dataclasses.replace(H200, cores=2)
SIZES = {"m": 128, "n": 64, "k": 96, **BF16}


def plan_of(name: str, target: Target, **sizes: Any) -> tuple[Program, Plan]:
    """The plan that keeps operands in their roles."""
    program, found = plans(name, "cuda/wgmma.m64n32k16.bf16.f32", target, **sizes)
    return program, next(p for p in found if "(i←i, j←j" in p.name)


def without_boxes(kernel: Kernel) -> Kernel:
    """The kernel whose copy engine goes element by element."""

    def plain(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        kept: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, AsyncCopies):
                stmt = dataclasses.replace(stmt, boxes=())
            elif isinstance(stmt, WaitCopies):
                stmt = dataclasses.replace(stmt, engine=False)
            elif isinstance(stmt, For | If | AsyncCalls):
                stmt = dataclasses.replace(stmt, body=plain(stmt.body))
            elif isinstance(stmt, WarpSpecialize):
                stmt = dataclasses.replace(stmt, bodies=tuple(map(plain, stmt.bodies)))
            kept.append(stmt)
        return tuple(kept)

    return dataclasses.replace(kernel, main=dataclasses.replace(kernel.main, body=plain(kernel.main.body)))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "wish",
    [
        {"swizzle": "128 B", "cluster": "2 along i", "reg_j": 2, "groups_j": 1, "block_p": 4},  # b is shared in rows
        {"swizzle": "64 B", "cluster": "2 along j", "reg_j": 1, "groups_j": 1, "block_p": 2},  # a
        {"swizzle": "none", "cluster": "none", "reg_j": 1, "groups_j": 1, "block_p": 2},
        {"swizzle": "64 B", "cluster": "2 x 2", "reg_j": 1, "groups_j": 1, "block_p": 2},  # a in rows, b in columns
        {"swizzle": "none", "cluster": "2 x 2", "reg_j": 1, "groups_j": 1, "block_p": 1, "stages": 3},
        {"swizzle": "none", "cluster": "none", "reg_j": 2, "groups_j": 1, "block_p": 2, "epilogue": "TMA by span"},
    ],
)
def test_boxes_move_what_single_copies_would(wish: dict[str, int | str]) -> None:
    program, plan = plan_of("matmul", FEW, **SIZES)
    answer = request(plan.space, ENGINE | {"epilogue": "TMA"} | wish)
    assert answer.row is not None, str(answer)
    kernel = lower(plan, plan.space.schedule(answer.row))
    check_kernel(kernel)
    oracle = compute(program, 0)
    assert check(kernel, oracle).ok
    assert check(without_boxes(kernel), oracle).ok


def byte_addresses(ref: RegisterRef, shape: tuple[int, ...], bits: int, env: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Where an operand's elements lie by the descriptor, as PTX says it: rows (along its own axis) by k."""
    found = ref.descriptor
    assert found is not None
    along, deep = np.meshgrid(np.arange(shape[0]), np.arange(shape[1]), indexing="ij")
    chunk = 128 // bits
    span = max(1, found.swizzle // 16) * chunk  # elements of a span
    if found.across:
        row, line = deep, along
        steps = (found.leading, found.stride) if found.swizzle else (found.stride, found.leading)
        at = line // span * steps[0] + row // 8 * steps[1]
        at = at + row % 8 * (span * bits // 8) + line % span * bits // 8
    else:
        at = along // 8 * found.stride + along % 8 * (span * bits // 8)
        at = at + (deep * bits // 8 if found.swizzle else deep // chunk * found.leading + deep % chunk * bits // 8)
    start = int(evaluate(found.start, env))
    return np.asarray(swizzled(start + at * 8 // bits, found.swizzle, bits))


@pytest.mark.parametrize("name", ["matmul", "matmul_nt", "matmul_tn", "matmul_tt"])
def test_descriptors_find_their_operands(name: str) -> None:
    _, plan = plan_of(name, H200, **SIZES)
    swizzles = set()
    for row in covering(plan):
        kernel, swizzle = lower(plan, plan.space.schedule(row)), plan.space.schedule(row).values["swizzle"]
        if swizzle in swizzles:
            continue
        call = next(s for s in statements(kernel.main.body) if isinstance(s, IntrinsicCall))
        for operand in ("a", "b"):
            ref = call.operands[operand]
            if ref.descriptor is None or ref.lane is None:
                continue
            buffer, size = kernel.buffers[ref.buffer], call.intrinsic.operands[operand].shape
            env: dict[str, Any] = {n: 0 for i in ref.index for n in free_vars(i)}
            env |= {n: 1 for n in ("jr", "ir") if n in env and plan.space.schedule(row).values[f"reg_{n[0]}"] > 1}
            env |= {"pu": 1} if "pu" in env and plan.space.schedule(row).values["block_p"] > 1 else {}
            lanes = np.arange(ref.lane.width)
            index = [np.broadcast_to(evaluate(i, env | {"e": lanes}), lanes.shape) for i in ref.index]
            expected = np.ravel_multi_index(tuple(index), buffer.shape).reshape(size)
            expected = expected if operand == "a" else expected.T
            shape = size if operand == "a" else size[::-1]
            assert np.array_equal(byte_addresses(ref, shape, buffer.dtype.bits, env), expected), (row, operand)
            swizzles.add(swizzle)
    assert len(swizzles) > 1


BOXES = ("direct", "shared", "TMA", "TMA by span")


@pytest.mark.parametrize(("images", "kinds"), [(1, BOXES), (2, BOXES[:2])])
def test_boxes_are_stored_where_pixels_are_evenly_apart(images: int, kinds: tuple[str, ...]) -> None:
    """With channels first, an axis of images and pixels jumps from one image to the next."""
    sizes = {"n": images, "h": 4, "w": 6, "ci": 8, "co": 16, "t": "s8", "acc": "s32"}
    _, (plan, *_) = plans("conv2d_nchw", "cuda/wgmma.m64n32k32.s8.s8.s32", **sizes)
    assert plan.space.decision("epilogue").labels == kinds
