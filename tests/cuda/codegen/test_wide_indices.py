"""Index arithmetic beyond 32 bits: printed in 64 where ranges say so, also in guards and in floor division."""

from __future__ import annotations

import numpy as np
import pytest
from support.cards.gpu_plans import H200
from support.cards.hand_kernels import needs_compiler

from autosched.codegen.cuda import print_cuda
from autosched.codegen.cuda.emulation import run_printed
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import parse
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of


def kernel_of(text: str) -> Kernel:
    """The first row of the program's first plan."""
    _, (plan, *_) = plans_of(TuneRequest(parse(text), H200, device="simulator"))
    return lower(plan, plan.space.schedule(0))


@needs_compiler
@pytest.mark.compiler
def test_numbers_between_small_ones() -> None:
    """Subscripts and arrays are small, and what they are computed from is not."""
    kernel = kernel_of("""
def far(x: f32[97], y: f32[64]):
    for i in range(64):
        y[i] = x[min((i - 32) * 4900070001, 100000000007) // 70001 % 97]
""")
    x, i = np.arange(97, dtype=np.float32), np.arange(64)
    expected = x[np.minimum((i - 32) * 4900070001, 100000000007) // 70001 % 97]
    assert np.array_equal(run_printed(kernel, H200, {"x": x})["y"], expected)


def test_guards_of_large_arrays() -> None:
    kernel = kernel_of("""
def doubled(x: f32[70000, 70001], y: f32[70000, 70001]):
    for i, j in grid(70000, 70001):
        y[i, j] = x[i, j] + x[i, j]
""")
    guards = [line for line in print_cuda(kernel, H200).text.splitlines() if "< 49000" in line]
    assert guards
    assert all("(int64_t)block" in line.partition("<")[0] for line in guards)
