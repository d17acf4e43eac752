"""Integer values as polynomials modulo 2^w: sums of coefficients times products of atoms."""

from __future__ import annotations

from collections import Counter
from typing import TypeAlias

from autosched.ir.dtypes import DType
from autosched.ir.value import Arith, Cast, Literal, Unary, Value
from autosched.tensorize.body.equal import canonical
from autosched.tensorize.body.intervals import unwrapped_range

Monomial: TypeAlias = tuple[Value, ...]
"""Atoms of one dtype, sorted; a repeated atom is a power."""
Polynomial: TypeAlias = dict[Monomial, int]
"""Each product of atoms with its coefficient, least in magnitude modulo 2^w, never 0."""

_MOST_TERMS = 32


class TooLong(Exception):
    """More terms than anyone would write; nothing is adapted then."""


def polynomial(value: Value) -> Polynomial:
    """`value`, of an integer dtype, as a polynomial over what is no sum, difference, product or left shift.

    Casts are moved inwards where that is exact: a narrowing one always (reduction modulo 2^w is a ring homomorphism),
    a widening one where nothing inside it can wrap. Raises TooLong.
    """
    return _ring(value, value.dtype)


def signed(number: int, dtype: DType) -> int:
    """The residue of least magnitude modulo 2^bits."""
    half = 1 << (dtype.bits - 1)
    return (number + half) % (1 << dtype.bits) - half


def _ring(value: Value, into: DType) -> Polynomial:
    """The polynomial of `value` cast to `into`; what is done in between is exact modulo 2^bits of `into`."""
    match value:
        case Literal(int(number), _):
            return _kept({(): number}, into)
        case Unary("-", operand, _):
            return _times({(): -1}, _ring(operand, into), into)
        case Unary("~", operand, _):  # ~x is -x - 1
            return _plus(_times({(): -1}, _ring(operand, into), into), {(): -1}, into)
        case Arith("+", left, right, _):
            return _plus(_ring(left, into), _ring(right, into), into)
        case Arith("-", left, right, _):
            return _plus(_ring(left, into), _times({(): -1}, _ring(right, into), into), into)
        case Arith("*", left, right, _):
            return _times(_ring(left, into), _ring(right, into), into)
        case Arith("<<", left, Literal(int(places), _), dtype) if 0 <= places < dtype.bits:
            return _times({(): 1 << places}, _ring(left, into), into)
        case Arith("<<", left, places, dtype) if not isinstance(places, Literal) and dtype.bits >= into.bits:
            return _times(_atom(Arith("<<", Literal(1, dtype), places, dtype), into), _ring(left, into), into)
        case Cast(operand, dtype, False) if operand.dtype.is_integer:
            if dtype.bits <= operand.dtype.bits or unwrapped_range(operand) is not None:
                return (
                    _ring(operand, into)
                    if dtype.bits >= into.bits or unwrapped_range(value) is not None
                    else _atom(value, into)
                )
    return _atom(value, into)


def _atom(value: Value, into: DType) -> Polynomial:
    return {(canonical(Cast(value, into)),): 1}


def _kept(poly: Polynomial, dtype: DType) -> Polynomial:
    found = {m: signed(c, dtype) for m, c in poly.items()}
    if len(found) > _MOST_TERMS:
        raise TooLong
    return {m: c for m, c in found.items() if c}


def _plus(a: Polynomial, b: Polynomial, dtype: DType) -> Polynomial:
    total = Counter(a)
    for monomial, coefficient in b.items():
        total[monomial] += coefficient
    return _kept(dict(total), dtype)


def _times(a: Polynomial, b: Polynomial, dtype: DType) -> Polynomial:
    total: Counter[Monomial] = Counter()
    for m, x in a.items():
        for n, y in b.items():
            total[tuple(sorted((*m, *n), key=repr))] += x * y
    return _kept(dict(total), dtype)
