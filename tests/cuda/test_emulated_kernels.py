"""Printed kernels on the emulated card: no mistake is found, and the numbers are the oracle's.

Every run takes some rows of a covering sample (every value of every decision) of each case; `-m slow_cuda` takes the
whole sample of several plans of each.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from cuda.emulated_cases import CASES, F16, S8, Case, emulation, wished
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


AHEAD: dict[str, int | str] = {"fragments": "ahead", "stage_a": "shared", "stage_b": "shared", "block_p": 2}
STARTED: dict[str, int | str] = {"copy": "cp.async", "vector": "16 B", "stages": 2}
LOADED_AHEAD: dict[str, tuple[Case, list[Mapping[str, int | str]]]] = {
    "mma": (
        Case("matmul", "cuda/mma.m16n8k16.f16.f16.f32", {"m": 48, "n": 32, "k": 128, "out": "f16", **F16}),
        [
            AHEAD | STARTED | {"stages": 3},
            AHEAD | STARTED | {"block_p": 4, "warps_i": 2},  # a slice's copies in three groups
            AHEAD | STARTED | {"split": 2},
            AHEAD | STARTED | {"persistent": "yes"},
            AHEAD | {"copy": "TMA", "stages": 2, "warps_i": 2},
            AHEAD | {"copy": "TMA", "stages": 2, "persistent": "yes"},
        ],
    ),
    "wmma": (
        Case("matmul", "cuda/wmma.m16n16k16.f16.f32", {"m": 40, "n": 48, "k": 64, **F16}),
        [AHEAD | STARTED | {"padding": "16 B", "warps_i": 2}],
    ),
    "dp4a": (
        Case("matmul_nt", "cuda/dp4a*", {"m": 12, "n": 12, "k": 128, **S8}),
        [AHEAD | STARTED | {"block_p": 4, "threads_i": 2, "threads_j": 2}],
    ),
}


@pytest.mark.parametrize("name", LOADED_AHEAD)
def test_fragments_loaded_ahead(name: str) -> None:
    case, wishes = LOADED_AHEAD[name]
    made = wished(case, wishes)
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
