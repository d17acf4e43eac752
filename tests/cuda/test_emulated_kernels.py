"""Printed kernels on the emulated card: no mistake is found, and the numbers are the oracle's.

Every run takes some rows of a covering sample (every value of every decision) of each case; `-m slow_cuda` takes the
whole sample of several plans of each.
"""

from __future__ import annotations

import pytest
from cuda.emulated_cases import CASES, Case, emulation, wished
from cuda.hand_kernels import needs_compiler

from autosched.codegen.cuda import print_cuda
from autosched.codegen.lower import lower

pytestmark = [needs_compiler, pytest.mark.compiler]
MOST, PLANS = 3, 3


@pytest.mark.parametrize("name", CASES)
def test_kernels_of_every_tier(name: str) -> None:
    made = emulation(CASES[name], MOST)
    assert made is not None
    for n, row in enumerate(made.rows):
        difference = made.check(n, seed=row)
        assert difference.ok, (made.plan.space.schedule(row), difference)


PADDED = {"padding": "16 B", "vector": "16 B"}


@pytest.mark.parametrize("name", ["wmma f16", "wmma bf16 by columns", "mma f16 k16", "dp4a"])
def test_padded_slices(name: str) -> None:
    copies = ("sync",) if name == "dp4a" else ("sync", "cp.async")  # whose depth is one slice of two chunks
    made = wished(CASES[name], [PADDED | {"copy": copy} for copy in copies])
    for n, row in enumerate(made.rows):
        difference = made.check(n, seed=row)
        assert difference.ok, (made.plan.space.schedule(row), difference)


def test_elements_of_a_word_are_loaded_as_matrices() -> None:
    tf32 = {"a": "tf32", "b": "tf32", "acc": "f32"}
    case = Case("matmul_nt", "cuda/mma.m16n8k8.tf32*", {"m": 32, "n": 24, "k": 32, **tf32})
    made = wished(case, [{"stage_a": "shared", "stage_b": "shared", "swizzle": "64 B", "block_p": 2, "vector": "16 B"}])
    text = print_cuda(lower(made.plan, made.plan.space.schedule(made.rows[0])), case.chosen()).text
    assert "ldmatrix_x4(words(a_reg), " in text
    assert made.check(0, seed=1).ok


@pytest.mark.slow_cuda
@pytest.mark.parametrize("number", range(PLANS))
@pytest.mark.parametrize("name", CASES)
def test_every_decision_of_several_plans(name: str, number: int) -> None:
    made = emulation(CASES[name], None, number)
    if made is None:
        pytest.skip("so many plans there are not")
    for n, row in enumerate(made.rows):
        difference = made.check(n, seed=row + 1)
        assert difference.ok, (made.plan.space.schedule(row), difference)
