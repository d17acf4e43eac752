"""Reductions of a warp's lanes (`redux.sync`): kernels of rows of any length, in the interpreter."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from support.match.agreement import disagreement, expect
from support.match.computes import CATALOGUE

from autosched.ir import parse
from autosched.ir.program import Program
from autosched.machine.catalogue import load_target
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.space.request import request

H200 = load_target("nvidia-h200")
JOIN = {"add": "S[i] += A[i, k]", "max": "S[i] = max(S[i], A[i, k])"}


def rows(op: str, dtype: str, m: int, k: int, guard: str = "") -> Program:
    return parse(
        f"def rows(A: {dtype}[{m}, {k}], S: {dtype}[{m}]):\n    for i in range({m}):\n"
        f"        S[i] = 0\n        for k in range({k}):\n            {guard}{JOIN[op]}\n"
    )


def agrees(program: Program, name: str, seed: int) -> int:
    """The number of kernels that were looked at."""
    plans = plan_program(program, H200, CATALOGUE, [CATALOGUE[name]]).plans
    found = [p for p in plans if p.tensor_parts]
    expected, rng = expect(program, seed), np.random.default_rng(seed)
    for plan in found:
        assert disagreement(plan, map(int, plan.space.sample(3, rng)), expected) is None
    return len(found)


@pytest.mark.parametrize(("op", "dtype"), [("add", "s32"), ("add", "u32"), ("max", "u32")])
def test_rows_of_whole_warps(op: str, dtype: str) -> None:
    assert agrees(rows(op, dtype, 6, 96), f"cuda/redux.sync.{op}.{dtype}", 1)


def test_rows_of_any_length() -> None:
    rng, seen = Random(5), 0
    for seed in range(6):
        op, m, k = rng.choice(("add", "max")), rng.randint(1, 9), rng.randint(1, 150)
        guard = rng.choice(("", "", "if k <= i + 40: "))
        seen += agrees(rows(op, "u32", m, k, guard), f"cuda/redux.sync.{op}.u32", seed)
    assert seen >= 4


def test_boxes_of_small_tiles_begin_at_whole_lines() -> None:
    """Rows of 16 bytes, one a warp: TMA takes none of the second warp's."""
    program = rows("add", "s32", 6, 96)
    plans = plan_program(program, H200, CATALOGUE, [CATALOGUE["cuda/redux.sync.add.s32"]]).plans
    space = next(p for p in plans if p.tensor_parts).space
    asked = {"epilogue": "TMA", "reg_i": 4, "warps_i": 2}
    assert request(space, asked).row is None
    assert request(space, asked | {"warps_i": 1}).row is not None
