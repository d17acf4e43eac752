"""Masks of lanes under bounds that loops move, and what is the same for all lanes beside them."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiled.llvm_kernels import run
from support.plans import machine

from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import parse
from autosched.tiling.planner.make_plans import make_plans

MASKED = """
def masked(X: f32[{n}, {l}], M: f32[{n}], Y: f32[{n}, {l}]):
    for i, j in grid({n}, {l}):
        Y[i, j] = X[i, j] * M[i] if {mask} else 2.0
"""
MASKS = {
    "j <= i": lambda i, j: j <= i,
    "j > i - 3": lambda i, j: j > i - 3,
    "j <= 3 * i - 50": lambda i, j: j <= 3 * i - 50,
    "i + j < 40": lambda i, j: i + j < 40,
    "i >= 5 and j >= i": lambda i, j: (i >= 5) & (j >= i),
}
N, L = 37, 64


def kernel_of(mask: str) -> Kernel:
    """In vectors of 16."""
    program = parse(MASKED.format(n=N, l=L, mask=mask))
    (plan,) = make_plans(program, machine(), {}, threads=1)
    ids = plan.space.enumerate().ids
    values = plan.space.values(ids)
    row = int(ids[(values["vector"] == 16) & (values["unroll"] == 4)][0])
    return lower(plan, plan.space.schedule(row))


@pytest.mark.parametrize("mask", MASKS)
def test_lanes_under_a_moving_bound(mask: str) -> None:
    rng = np.random.default_rng(0)
    x, m = rng.normal(size=(N, L)).astype(np.float32), rng.normal(size=N).astype(np.float32)
    i, j = np.indices((N, L))
    wanted = np.where(MASKS[mask](i, j), x * m[:, None], np.float32(2.0))
    np.testing.assert_array_equal(run(kernel_of(mask), {"X": x, "M": m})["Y"], wanted)


def test_bounds_in_reach_are_compared_as_they_are() -> None:
    """Without a clamp; vectors of one row share what moves."""
    text = print_llvm(kernel_of("j <= i"))
    assert "llvm.smin" not in text
    assert "llvm.smax" not in text
    assert text.count("shufflevector <16 x i32>") == 1


def test_what_lies_in_a_tensor_is_read_without_asking_whether_a_lane_wants_it() -> None:
    assert "llvm.vector.reduce.or" not in print_llvm(kernel_of("j <= i"))
