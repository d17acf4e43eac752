"""Floats of 16 bits and fewer as values over 32-bit words, for all printers alike: from their bits to f32 and back.

No f32 on the way is subnormal, which processors take long for (but e8m0's least value is), and nothing branches, so the
steps are the same in all lanes of a vector.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np

from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.value import Arith, Call, Cast, Comparison, Literal, Scalar, Select, Value

F32, U32, S32 = (DTYPES[name] for name in ("f32", "u32", "s32"))
_QUIET, _INFINITE = 0x7FC00000, 0x7F800000
_LEAST_SCALE = 0x00400000


@dataclass(frozen=True)
class Conversion:
    """`steps` are (name, value) in order, `result` the last value; both read `argument` and earlier steps."""

    argument: Scalar
    steps: tuple[tuple[str, Value], ...]
    result: Value


@dataclass
class _NamedSteps:
    taken: list[tuple[str, Value]] = field(default_factory=list)

    def __call__(self, name: str, value: Value) -> Value:
        """The value as a step of that name."""
        self.taken.append((name, value))
        return Scalar(name, value.dtype)


@cache
def widening(dtype: DType) -> Conversion:
    """From the bits, a u32 with no others, to f32. Exact: normal numbers get their exponent by an addition, subnormal
    ones are converted as integers."""
    step, bits = _NamedSteps(), Scalar("bits", U32)
    if dtype.scale:
        return _scale(dtype, bits)
    mantissa, bias, codes = dtype.mantissa, dtype.bias, dtype.codes
    top = 1 << (dtype.bits - 1)
    sign = step("sign", _by("<<", _by("&", bits, top), 32 - dtype.bits))
    size = step("size", _by("&", bits, top - 1))
    normal = step("normal", _by("+", _by("<<", size, 23 - mantissa), (127 - bias) << 23))
    counted = Cast(Call("bits_s32", (size,), S32), F32)
    least = step("least", _word(Arith("*", counted, Literal(2.0 ** (1 - bias - mantissa), F32), F32)))
    word: Value = step("word", Select(_is("<", size, 1 << mantissa), least, normal, U32))
    nan = Literal(_QUIET, U32)
    if dtype.special == "fn":
        word = Select(_is("==", size, codes.nan), nan, word, U32)
    elif dtype.fnuz:
        word = Select(_is("==", bits, codes.nan), nan, word, U32)
    elif not dtype.finite:
        fraction = _by("&", _by("<<", size, 23 - mantissa), 0x7FFFFF)
        word = Select(_is(">=", size, codes.overflow), _by("|", fraction, _INFINITE), word, U32)
    return Conversion(bits, tuple(step.taken), Call("bits_f32", (Arith("|", word, sign, U32),), F32))


@cache
def narrowing(dtype: DType) -> Conversion:
    """From f32, rounded once, to the bits, a u32 with no others. Subnormal results: adding 2**(23 - e), `2**-e` the
    least number, leaves the rounded count in the low bits; normal ones: round the dropped fraction bits and move the
    bias."""
    step, x = _NamedSteps(), Scalar("x", F32)
    if dtype.scale:  # of its own values: nothing is rounded to it
        raw = step("raw", _by("&", _word(x), 0x7FFFFFFF))
        return Conversion(x, tuple(step.taken), Select(_is(">", raw, _INFINITE), _nan(dtype), _by(">>", raw, 23), U32))
    mantissa, bias = dtype.mantissa, dtype.bias
    greatest, overflow, nan = dtype.codes
    drop = 23 - mantissa
    raw = step("raw", _word(x))
    sign = step("sign", _by("&", _by(">>", raw, 32 - dtype.bits), 1 << (dtype.bits - 1)))
    size = step("size", _by("&", raw, 0x7FFFFFFF))
    tie = _by("&", _by(">>", size, drop), 1)
    rounded = step("rounded", Arith("+", _by("+", size, (1 << (drop - 1)) - 1), tie, U32))
    normal = _by("-", _by(">>", rounded, drop), (127 - bias) << mantissa)
    magic = Literal(2.0 ** (23 - (bias - 1 + mantissa)), F32)
    lifted = _word(Arith("+", Call("bits_f32", (size,), F32), magic, F32))
    small = _is("<", size, (127 - bias + 1) << 23)
    code: Value = step("code", Select(small, _by("&", lifted, 0x7FFFFF), normal, U32))
    beyond = _is(">=", rounded, ((greatest + 1) + ((127 - bias) << mantissa)) << drop)
    code = Select(beyond, Literal(overflow, U32), code, U32)
    is_nan = _is(">", size, _INFINITE)
    code = step("found", Select(is_nan, Literal(nan, U32), code, U32))
    result: Value = Arith("|", code, sign, U32)
    if dtype.fnuz:  # a zero has no sign: its pattern is the NaN
        result = Select(_is("==", code, 0), code, result, U32)
    if dtype.finite:  # nor has the zero that a NaN becomes
        result = Select(is_nan, code, result, U32)
    return Conversion(x, tuple(step.taken), result)


def _scale(dtype: DType, bits: Scalar) -> Conversion:
    """The bits are an f32's exponent, but for the least, which is no normal f32 (2**-127), and NaN."""
    word = Select(_is("==", bits, 0), Literal(_LEAST_SCALE, U32), _by("<<", bits, 23), U32)
    word = Select(_is("==", bits, dtype.codes.nan), Literal(_QUIET, U32), word, U32)
    return Conversion(bits, (), Call("bits_f32", (word,), F32))


def _nan(dtype: DType) -> Literal:
    return Literal(dtype.codes.nan, U32)


def table(dtype: DType) -> tuple[float, ...]:
    """The value of each pattern of four bits."""
    return tuple(float(x) for x in np.arange(16).astype(np.uint8).view(dtype.numpy).astype(np.float64))


def _by(op: str, a: Value, number: int) -> Value:
    return Arith(op, a, Literal(number, U32), U32)


def _is(op: str, a: Value, number: int) -> Value:
    return Comparison(op, a, Literal(number, U32))


def _word(x: Value) -> Value:
    return Call("bits_u32", (x,), U32)


