"""`value_of`: a sum as a value of the language again.

Exponentials are written such that they lose no digits: where a maximum M of X stands in one beside X, as
exp(α X - α M), the text is exp((X - M) * α). `Anchor` says what a reference is the maximum of.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from autosched.ir.dtypes import DType
from autosched.ir.oracle.numerics import float_literal
from autosched.ir.rewrites.algebra.separate import Mixed
from autosched.ir.rewrites.algebra.sums import ZERO, Atom, Leaf, Monomial, RealSum, atom_key, collect, of_atom
from autosched.ir.value import Arith, Call, Cast, Literal, Read, Value


@dataclass(frozen=True)
class Anchor:
    """A reference, the value that it is the greatest or the least of, and that value's sum."""

    reference: Read
    value: Value
    form: RealSum


class NoText(Exception):
    """A sum that the language has no exact text for in this dtype."""


def value_of(total: RealSum, dtype: DType, anchors: Sequence[Anchor] = ()) -> Value:
    """The sum as a value of a float dtype. Raises NoText."""
    result: Value | None = None
    for monomial, coefficient in total.ordered:
        if result is not None and coefficient < 0:
            result = Arith("-", result, product(None, monomial, -coefficient, dtype, anchors), dtype)
        else:
            term = product(None, monomial, coefficient, dtype, anchors)
            result = term if result is None else Arith("+", result, term, dtype)
    return Literal(0.0, dtype) if result is None else result


def times(value: Value, factor: RealSum, dtype: DType) -> Value:
    """A value times a sum, by divisions where the sum is a quotient. Raises NoText."""
    single = factor.single
    if single is None:
        return Arith("*", value, value_of(factor, dtype), dtype)
    return product(value, *single, dtype)


def product(
    value: Value | None, monomial: Monomial, coefficient: Fraction, dtype: DType, anchors: Sequence[Anchor] = ()
) -> Value:
    """`value` times a monomial with its coefficient."""
    above: list[Value] = [] if value is None else [value]
    below: list[Value] = []
    if monomial.exponent.terms:
        above.append(Call("exp", (exponent_of(monomial.exponent, dtype, anchors),), dtype))
    for atom, power in sorted(monomial.powers, key=lambda p: atom_key(p[0])):
        side = above if power > 0 else below
        base = atom_value(atom, dtype)
        if (2 * power).denominator != 1 or abs(power) > 8:
            raise NoText(f"a power of {power}")
        if power == Fraction(-1, 2):
            above.append(Call("rsqrt", (base,), dtype))
            continue
        side += [base] * int(abs(power))
        if power.denominator == 2:
            side.append(Call("sqrt", (base,), dtype))
    if float_literal(float(coefficient), dtype) == coefficient:
        if coefficient != 1 or not above:
            above.append(Literal(float(coefficient), dtype))
    else:
        if coefficient.numerator != 1 or not above:
            above.append(_literal(coefficient.numerator, dtype))
        below.append(_literal(coefficient.denominator, dtype))
    result = above[0]
    for factor in above[1:]:
        result = Arith("*", result, factor, dtype)
    for factor in below:
        result = Arith("/", result, factor, dtype)
    return result


def exponent_of(exponent: RealSum, dtype: DType, anchors: Iterable[Anchor] = ()) -> Value:
    """An exponential's argument, by differences to the anchors where it is one."""
    result: Value | None = None
    rest = exponent
    for anchor in anchors:
        leaf = Leaf(anchor.reference)
        try:
            factor = linear_in(rest, leaf).scaled(Fraction(-1))
        except Mixed:
            continue
        if not factor.terms:
            continue
        left = rest - factor * (anchor.form - of_atom(leaf))
        if any(a == leaf for a in left.atoms) or len(left.terms) >= len(rest.terms):
            continue
        difference: Value = Arith("-", anchor.value, anchor.reference, dtype)
        if factor.constant != 1:
            difference = times(difference, factor, dtype)
        result = difference if result is None else Arith("+", result, difference, dtype)
        rest = left
    if result is None:
        return value_of(rest, dtype)
    if not rest.terms:
        return result
    return Arith("+", result, value_of(rest, dtype), dtype)


def linear_in(total: RealSum, atom: Atom) -> RealSum:
    """What stands beside the first power of an atom. Raises `Mixed` where it occurs in any other way."""
    found: list[tuple[Monomial, Fraction]] = []
    for monomial, coefficient in total.terms:
        powers = dict(monomial.powers)
        if powers.pop(atom, Fraction(0)) == 1:
            rest = Monomial(frozenset(powers.items()), monomial.exponent)
            if atom in rest.atoms:
                raise Mixed(atom)
            found.append((rest, coefficient))
        elif atom in monomial.atoms:
            raise Mixed(atom)
    return collect(found) if found else ZERO


def atom_value(atom: Atom, dtype: DType) -> Value:
    """The atom's text, converted where its dtype is narrower."""
    return atom.value if atom.value.dtype == dtype else Cast(atom.value, dtype)


def _literal(value: int, dtype: DType) -> Value:
    if float_literal(value, dtype) != value:
        raise NoText(f"the number {value}, which is no {dtype},")
    return Literal(float(value), dtype)

