"""What certificates claim of float sums, on random inputs: bounds hold, integers are exact, blocks have no order."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.examples import examples

from autosched.errors import UsageError
from autosched.ir import parse
from autosched.tensorize import match
from autosched.tensorize.explanation.discriminating import tell_apart
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.numerics.bound import bound
from autosched.tensorize.numerics.discriminate import discriminate
from autosched.tensorize.numerics.dot import Dot, IntrinsicDot, ProgramDot
from autosched.tensorize.numerics.exact_sums import exact_range
from autosched.tensorize.spec.catalogue import Catalogue

CATALOGUE = Catalogue.builtin()
HOPPER = "sm_75 sm_80 sm_89 sm_90"
UNITS = {
    "wgmma e4m3": ("cuda/wgmma.m64n8k32.e4m3.e4m3.f32", ""),
    "wgmma f16": ("cuda/wgmma.m64n8k16.f16.f32", ""),
    "wgmma f16 in f16": ("cuda/wgmma.m64n8k16.f16.f16", ""),
    "wmma on Volta": ("cuda/wmma.m16n16k16.f16.f32", ""),
    "wmma on Ampere": ("cuda/wmma.m16n16k16.f16.f32", "sm_75 sm_80"),
    "wmma bf16 on Hopper": ("cuda/wmma.m16n16k16.bf16.f32", HOPPER),
    "mma tf32": ("cuda/mma.m16n8k8.tf32.tf32.f32", ""),
    "mma e4m3 on Ada": ("cuda/mma.m16n8k32.e4m3.e4m3.f32", ""),
    "mma e5m2 on Hopper": ("cuda/mma.m16n8k32.e5m2.e5m2.f32", HOPPER),
    "CDNA1": ("hip/mfma.f32.16x16x16.f16", "gfx908"),
    "CDNA3": ("hip/mfma.f32.16x16x16.f16", "gfx942"),
    "CDNA3 on bytes": ("hip/mfma.f32.16x16x32.e4m3fnuz.e4m3fnuz", ""),
    "bfdot": ("arm/bfdot", ""),
    "bfmmla": ("arm/bfmmla", ""),
    "vdpbf16ps": ("x86/vdpbf16ps.zmm", ""),
    "fma f32": ("x86/vfmadd.f32.zmm", ""),
    "fma f64": ("x86/vfmadd.f64.zmm", ""),
    "tdpbf16ps": ("x86/tdpbf16ps", ""),
    "fma f16": ("x86/vfmadd.f16.zmm", ""),
}
DOTS: dict[str, IntrinsicDot] = {}


def made(unit: str) -> Intrinsic:
    name, features = UNITS[unit]
    return CATALOGUE[name].on(frozenset(features.split()))


def dot(unit: str) -> IntrinsicDot:
    if unit not in DOTS:
        DOTS[unit] = IntrinsicDot(made(unit))
    return DOTS[unit]


def numbers(rng: np.random.Generator, unit: Dot, length: int, spread: int) -> tuple[Any, Any, Any]:
    """Normal numbers of the unit's types, exponents within `spread`."""

    def draw(shape: tuple[int, ...], dtype: Any, most: int) -> Any:
        values = (
            rng.choice([-1.0, 1.0], shape) * rng.integers(16, 32, shape) / 16 * 2.0 ** rng.integers(-most, 1, shape)
        )
        return values.astype(np.float32).astype(dtype.numpy).astype(np.float64)

    fits = [min(spread, 5 if d.name == "e4m3" else 9) for d in unit.factors]
    a = draw((8, length), unit.factors[0], fits[0])
    return a, draw((8, length), unit.factors[1], fits[1]), draw((8,), unit.accumulator, min(spread, 8))


def exact(a: Any, b: Any, c: Any) -> list[Fraction]:
    rows = zip(a, b, c, strict=True)
    return [Fraction(z) + sum(Fraction(p) * Fraction(q) for p, q in zip(x, y, strict=True)) for x, y, z in rows]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("unit", UNITS)
@examples(12)
@given(seed=st.integers(0, 2**32), issues=st.sampled_from([1, 2, 5]), spread=st.sampled_from([1, 4, 9]))
def test_the_error_stays_within_the_bound(unit: str, seed: int, issues: int, spread: int) -> None:
    sums, intrinsic = dot(unit), made(unit)
    length = issues * sums.step
    a, b, c = numbers(np.random.default_rng(seed), sums, length, spread)
    known = bound(intrinsic.numerics, sums.accumulator, length, issue=sums.step)
    magnitudes = [
        Fraction(abs(z)) + sum(abs(Fraction(p) * Fraction(q)) for p, q in zip(x, y, strict=True))
        for x, y, z in zip(a, b, c, strict=True)
    ]
    for got, true, size in zip(sums.run(a, b, c), exact(a, b, c), magnitudes, strict=True):
        # A product that the accumulator's type cannot hold rounds once more.
        assert abs(Fraction(got) - true) <= Fraction(known.factor * 1.0000001) * size, (got, float(true))


@pytest.mark.sampled(7)
@pytest.mark.parametrize("unit", UNITS)
@examples(12)
@given(seed=st.integers(0, 2**32), issues=st.sampled_from([1, 3, 8]), extreme=st.booleans())
def test_claimed_integers_are_exact(unit: str, seed: int, issues: int, extreme: bool) -> None:
    sums, intrinsic = dot(unit), made(unit)
    length = issues * sums.step
    dtype = sums.accumulator
    named = tuple(zip("AB", sums.factors, strict=True))
    known = exact_range(intrinsic.numerics, dtype, dtype, named, length)
    rng = np.random.default_rng(seed)
    p, q = known.factors
    if extreme:
        a, b = (rng.choice([-n, n], (8, length)).astype(np.float64) for n in (p, q))
    else:
        a, b = (rng.integers(-n, n + 1, (8, length)).astype(np.float64) for n in (p, q))
    zero = np.zeros(8)
    wanted = (a * b).sum(axis=1)
    np.testing.assert_array_equal(sums.run(a, b, zero), wanted)
    np.testing.assert_array_equal(ProgramDot(sums.factors, dtype).run(a, b, zero), wanted)


def test_sums_that_begin_with_an_element_are_bounded_alone() -> None:
    """45 * 45 + 100 is no number of f16, though factors up to 45 were said to be exact."""
    sums = dot("wgmma f16")
    named = tuple(zip("AB", sums.factors, strict=True))
    known = exact_range(made("wgmma f16").numerics, sums.accumulator, sums.accumulator, named, 16, "C[i]")
    assert str(known) == "integers whose partial sums, begun with C[i], in any order, stay below 2^24"


@pytest.mark.parametrize(
    ("unit", "bits"), [("wgmma e4m3", 14), ("mma e4m3 on Ada", 14), ("wgmma f16", 24), ("wmma on Volta", 24)]
)
def test_one_past_the_exact_range_is_not_exact(unit: str, bits: int) -> None:
    """Odd sums from 2^bits on are lost: there the claim ends."""
    sums = dot(unit)
    a, b = (np.zeros((1, sums.step)) for _ in range(2))
    a[0, 0] = b[0, 0] = 1.0
    assert (
        exact_range(made(unit).numerics, sums.accumulator, sums.accumulator, (("A", sums.factors[0]),), 8).bits == bits
    )
    assert sums.run(a, b, np.array([2.0**bits - 2]))[0] == 2.0**bits - 1
    assert sums.run(a, b, np.array([2.0**bits]))[0] == 2.0**bits


ALIGNED = [u for u in UNITS if made(u).numerics.sum == "aligned"]


@pytest.mark.parametrize("unit", ALIGNED)
@examples(10)
@given(seed=st.integers(0, 2**32))
def test_a_block_has_no_order(unit: str, seed: int) -> None:
    sums, numerics = dot(unit), made(unit).numerics
    rng = np.random.default_rng(seed)
    a, b, c = numbers(rng, sums, sums.step, 9)
    size = numerics.terms or sums.step
    order = np.array(numerics.order or range(sums.step))
    shuffled = order.copy()
    for first in range(0, sums.step, size):
        shuffled[first : first + size] = rng.permutation(order[first : first + size])
    moved = np.empty(sums.step, np.int64)
    moved[order] = shuffled
    np.testing.assert_array_equal(sums.run(a, b, c), sums.run(a[:, moved], b[:, moved], c))


APART = [
    ("wgmma e4m3", "mma e4m3 on Ada"),
    ("mma e4m3 on Ada", "program"),
    ("wmma on Volta", "wmma on Ampere"),
    ("wmma on Ampere", "wgmma f16"),
    ("wgmma f16", "program"),
    ("bfdot", "vdpbf16ps"),
    ("vdpbf16ps", "tdpbf16ps"),
    ("bfmmla", "program"),
    ("CDNA1", "CDNA3"),
    ("fma f32", "program"),
    ("fma f64", "program"),
]


@pytest.mark.parametrize(("left", "right"), APART)
def test_discriminating_inputs_discriminate(left: str, right: str) -> None:
    first = dot(left)
    second: Dot = ProgramDot(first.factors, first.accumulator) if right == "program" else dot(right)
    found = discriminate(first, second, np.random.default_rng(0))
    assert found is not None
    a, b, c = np.array([found.a]), np.array([found.b]), np.array([found.c])
    again = float(first.run(a, b, c)[0]), float(second.run(a, b, c)[0])
    assert again == found.results
    assert again[0] != again[1]
    assert Fraction(found.exact) == exact(a, b, c)[0]
    assert len(found.terms()) <= 8, "what does not matter is left out"


def test_a_sum_is_not_told_from_itself() -> None:
    unit = dot("wmma on Ampere")
    assert discriminate(unit, IntrinsicDot(made("wmma on Ampere")), np.random.default_rng(0)) is None


def test_questions_without_an_answer() -> None:
    program = parse(
        "def f(A: u8[4, 8], B: s8[8, 16], C: s32[4, 16]):\n"
        " for i, j, p in grid(4, 16, 8):\n  C[i, j] += s32(A[i, p]) * s32(B[p, j])"
    )
    (stage,) = program.stages
    with pytest.raises(UsageError, match=r"vpdpbusd.zmm sums no products of two floats"):
        tell_apart(program, stage, CATALOGUE["x86/vpdpbusd.zmm"], "program", CATALOGUE)
    with pytest.raises(UsageError, match="stage C of f sums no products of two floats"):
        tell_apart(program, stage, made("wgmma f16"), "program", CATALOGUE)


def test_a_contract_is_chosen_by_the_target() -> None:
    name = "cuda/mma.m16n8k32.e4m3.e4m3.f32"
    text = (
        "def f(A: e4m3[16, 256], B: e4m3[256, 8], C: f32[16, 8]):\n"
        " for i, j, p in grid(16, 8, 256):\n  C[i, j] += f32(A[i, p]) * f32(B[p, j])"
    )
    verdicts = {}
    for features in ("", "sm_89", "sm_89 sm_90", "sm_120"):
        chosen = CATALOGUE[name].on(frozenset(features.split()))
        (found,) = match(parse(text), [chosen], adapt=False)
        verdicts[features] = found.verdict
    assert verdicts == {"": "no", "sm_89": "no", "sm_89 sm_90": "match", "sm_120": "match"}
