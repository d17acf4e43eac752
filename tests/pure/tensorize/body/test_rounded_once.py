"""Sums, products and quotients of narrow floats in a wider type: rounded there, and then again, is rounded once."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from random import Random

import pytest

from autosched.ir import parse
from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.value import Value
from autosched.tensorize.body.canonical import canonical
from autosched.tensorize.body.exact import rounds_once

PAIRS = [("f16", "f32"), ("bf16", "f32"), ("f32", "f64"), ("f16", "f64")]


def rounded(exact: Fraction, dtype: DType) -> Fraction | str:
    """To nearest even, in whole numbers; past the greatest, an infinity's name."""
    low, high = dtype.exponents
    if exact == 0:
        return exact
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** (max(exponent, low + dtype.mantissa) - dtype.mantissa)
    count = size / unit
    whole, rest = divmod(count.numerator, count.denominator)
    whole += 2 * rest > count.denominator or (2 * rest == count.denominator and whole % 2 == 1)
    found = whole * unit
    if found >= Fraction(2) ** (high + 1):
        return "inf" if exact > 0 else "-inf"
    return found if exact > 0 else -found


def numbers(rng: Random, dtype: DType, count: int) -> list[Fraction]:
    """Of all sizes, each with a sign: whole significands times the least subnormal."""
    low, high = dtype.exponents
    found = []
    for _ in range(count):
        whole = 2 << dtype.mantissa
        significand = rng.choice((rng.randrange(whole), 1, whole - 1, whole // 2))
        exponent = rng.choice((low, low, low + 1, rng.randint(low, high - dtype.mantissa), high - dtype.mantissa, 0))
        found.append(rng.choice((1, -1)) * significand * Fraction(2) ** exponent)
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("narrow", "wide"), PAIRS)
def test_twice_is_once(narrow: str, wide: str) -> None:
    dtype, through, rng = DTYPES[narrow], DTYPES[wide], Random(narrow)
    for a, b in product(numbers(rng, dtype, 60), repeat=2):
        for op, exact in {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else None}.items():
            assert rounds_once(op, through, dtype)
            if exact is not None:
                first = rounded(exact, through)
                assert (first if isinstance(first, str) else rounded(first, dtype)) == rounded(exact, dtype), (a, op, b)


def test_a_type_of_too_few_bits_rounds_twice() -> None:
    assert not rounds_once("+", DTYPES["f16"], DTYPES["e4m3"])
    assert not rounds_once("+", DTYPES["f16"], DTYPES["bf16"])
    assert not rounds_once("+", DTYPES["f32"], DTYPES["f32"])
    assert rounds_once("max", DTYPES["f32"], DTYPES["bf16"])


def value(term: str, dtype: str) -> Value:
    text = f"def f(A: {dtype}[9], B: {dtype}[9], s: {dtype}, C: {dtype}[9]):\n for i in range(9):\n  C[i] = {term}\n"
    return parse(text).stages[0].assign.value


@pytest.mark.parametrize(("narrow", "wide"), PAIRS)
@pytest.mark.parametrize("op", ["{} + {}", "{} - {}", "{} * {}", "{} / {}", "max({}, {})", "-{} - {}"])
def test_the_normal_forms(narrow: str, wide: str, op: str) -> None:
    once = op.format("A[i]", "B[i]")
    twice = f"{narrow}({op.format(f'{wide}(A[i])', f'{wide}(B[i])')})"
    if narrow == "f32":
        twice, once = (t.replace("A[i]", "s") for t in (twice, once))
    assert canonical(value(twice, narrow)) == canonical(value(once, narrow))


def test_numbers_that_are_some_of_the_narrow_type() -> None:
    for number in ("1.5", "0", "-0.25", "2048"):
        assert canonical(value(f"f16(f32(A[i]) + {number})", "f16")) == canonical(value(f"A[i] + {number}", "f16"))
    assert canonical(value("f16(f32(A[i]) + 0.1)", "f16")) != canonical(value("A[i] + 0.1", "f16"))


def test_what_is_rounded_between() -> None:
    """A product and a sum in f32 are rounded to f16 once, those in f16 twice."""
    wide, own = value("f16(f32(A[i]) * f32(B[i]) + f32(A[i]))", "f16"), value("A[i] * B[i] + A[i]", "f16")
    assert canonical(wide) != canonical(own)
