"""Numbers as sums of narrower ones: which types have such summands, that they sum up, and plans with them."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz.digits import plans_of_summands, search, summed
from support.programs.matrices import target

from autosched import ir
from autosched.ir.dtypes import DTYPES
from autosched.ir.program import Program
from autosched.ir.value import Cast, Read
from autosched.tensorize.adapters.summands import count, summand
from autosched.tensorize.body.arrays import evaluate
from autosched.tiling.plans.plan import TileLoopsPart

F32, BF16 = DTYPES["f32"], DTYPES["bf16"]


def product(a: str, b: str, guard: str = "") -> Program:
    inner = f"            if {guard}:\n    " if guard else ""
    text = f"""
def product(A: {a}[m, k], B: {b}[k, n], C: f32[m, n], *, m=64, n=64, k=64):
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
{inner}            C[i, j] += f32(A[i, p]) * f32(B[p, j])
"""
    return ir.parse(text)


@pytest.mark.parametrize(
    ("of", "into", "needed"),
    [("f32", "bf16", 3), ("f16", "e5m2", 4), ("f32", "f16", 0), ("f64", "f32", 0), ("bf16", "f32", 0)],
)
def test_types_with_the_same_exponents_have_summands(of: str, into: str, needed: int) -> None:
    assert count(DTYPES[of], DTYPES[into]) == needed


def test_summands_are_the_number_whatever_it_is() -> None:
    """Of all exponents, the greatest and subnormal numbers, infinities and every kind of NaN."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 32, size=1 << 16, dtype=np.uint64).astype(np.uint32)
    bits[:8] = 0x7F800000, 0xFF800000, 0x7F800001, 0xFFC00000, 0x7F7FFFFF, 0x00000001, 0x80000000, 0x007FFFFF
    element = Read("x", (), F32)
    numbers = {element: bits.view(np.float32)}
    parts = [evaluate(Cast(summand(element, BF16, k), F32), numbers) for k in range(3)]
    with np.errstate(all="ignore"):
        total = np.sum([np.asarray(p, np.float64) for p in parts], axis=0)
        wanted = numbers[element].astype(np.float64)
        small = np.abs(wanted) < 2.0**-110
    np.testing.assert_array_equal(total[~small], wanted[~small])
    assert np.abs(total[small] - wanted[small]).max() < 2.0**-133  # below bf16's least number


@pytest.mark.parametrize(("a", "b"), [("f32", "bf16"), ("bf16", "f32")])
def test_a_product_of_a_wide_factor_is_on_registers_of_matrices(a: str, b: str) -> None:
    found = [p for p in plans_of_summands(product(a, b)) if summed(p.parts)]
    assert found
    (nest,) = (t.nest for t in found[0].tensor_parts)
    assert nest.intrinsic.name == "x86/tdpbf16ps"
    narrow = "B" if a == "f32" else "A"
    assert nest.mapping.finite == (narrow,)
    assert any("is finite where it meets a zero" in said for said in nest.mapping.certificate.assumptions)


def test_a_product_alone_has_plans_without_summands_too() -> None:
    """Summands of a whole matrix go through memory, which the ranking of plans does not count."""
    program = ir.workload("batch_matmul", batch=8, m=512, n=64, k=512, a="f32", b="bf16", acc="f32")
    found = [summed(p.parts) for p in plans_of_summands(program)]
    assert any(found)
    assert not all(found)


def test_no_summands_where_both_factors_are_wide_or_a_guard_says_what_is_read() -> None:
    assert not any(summed(p.parts) for p in plans_of_summands(product("f32", "f32")))
    assert not any(summed(p.parts) for p in plans_of_summands(product("f32", "bf16", "p <= i")))
    assert not any(summed(p.parts) for p in plans_of_summands(product("f32", "bf16"), "special"))


def test_blocks_that_a_mask_cuts_are_on_registers_of_matrices() -> None:
    """No lane of such a register can be left out: with guards on their sums they ran on vectors."""
    program = ir.workload("attention", mask="causal", h=2, n=128, l=128, d=64, t="bf16")
    best = plans_of_summands(program)[0]
    products = []
    parts = list(best.parts)
    while parts:
        part = parts.pop()
        parts += part.member.parts if isinstance(part, TileLoopsPart) else ()
        products += [part.nest.intrinsic.name] if hasattr(part, "nest") else []
    assert target().features >= {"amx_bf16"}
    assert products
    assert set(products) == {"x86/tdpbf16ps"}


@pytest.mark.parametrize(("programs", "least"), [(4, 2), pytest.param(30, 30, marks=pytest.mark.slow)])
def test_random_products_and_passes_on_summands(programs: int, least: int) -> None:
    """`python -m tests.fuzz.digits --programs 500` looks at more of them."""
    count, wrong = search(0, programs)
    assert not wrong, wrong
    assert count["kernels"] >= least
