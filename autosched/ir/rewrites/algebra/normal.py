"""`normal`: a choice-free float value as a sum, by the laws of the reals.

The laws hold wherever both sides are finite numbers: exp(log x) = x, x / x = 1, sqrt(x) sqrt(x) = x. Conversions that
lose nothing are left out; others stay atoms, or are left out too where roundings do not count (`real`).
"""

from __future__ import annotations

from fractions import Fraction

from autosched.ir.dtypes import DType
from autosched.ir.printer import print_value
from autosched.ir.rewrites.algebra.cases import is_infinite
from autosched.ir.rewrites.algebra.sums import (
    ZERO,
    Apply,
    Leaf,
    Monomial,
    RealSum,
    collect,
    exponential,
    number,
    of_atom,
    of_monomial,
)
from autosched.ir.value import Arith, Call, Cast, Literal, Unary, Value, walk

HALF = Fraction(1, 2)


class NoForm(Exception):
    """A value that is no real number: infinite, or a division by zero."""


def normal(value: Value, real: bool = False) -> RealSum:
    """The sum of a float value without choices. Raises `NoForm`, and `TooManyTerms` where it has too many terms."""

    def visit(node: Value) -> RealSum:
        if not node.dtype.is_float:
            return of_atom(Leaf(node))
        match node:
            case Literal(x, dtype) if is_infinite(node):
                return of_atom(Leaf(Literal(float("inf"), dtype)), 1).scaled(Fraction(1 if x > 0 else -1))
            case Literal(x):
                if x != x:
                    raise NoForm("NaN")
                return number(Fraction(x))
            case Unary("-", operand, _):
                return visit(operand).scaled(Fraction(-1))
            case Arith("+", a, b, _):
                return visit(a) + visit(b)
            case Arith("-", a, b, _):
                return visit(a) - visit(b)
            case Arith("*", a, b, _):
                return product(visit(a), visit(b), node)
            case Arith("/", a, b, _):
                return visit(a) * power(visit(b), Fraction(-1), b)
            case Arith(op, a, b, _):
                return of_atom(Apply(op, (visit(a), visit(b)), node))
            case Call("fma", (a, b, c), _):
                return product(visit(a), visit(b), node) + visit(c)
            case Call("exp", (a,), _):
                return exp_of(visit(a))
            case Call("log", (a,), _):
                return log_of(visit(a), node)
            case Call("sqrt", (a,), _):
                return power(visit(a), HALF, a)
            case Call("rsqrt", (a,), _):
                return power(visit(a), -HALF, a)
            case Call(function, args, _) if all(a.dtype.is_float for a in args):
                return of_atom(Apply(function, tuple(visit(a) for a in args), node))
            case Cast(operand, dtype, _) if operand.dtype.is_float:
                inner = visit(operand)
                if real or widens(operand.dtype, dtype) or not inner.terms:  # 0 is a number of all dtypes
                    return inner
                return of_atom(Apply(f"cast {dtype}", (inner,), node))
        return of_atom(Leaf(node))

    return visit(value)


def product(left: RealSum, right: RealSum, value: Value) -> RealSum:
    """The product of two sums, `value` as a text. Zero times what an infinity is written in is no number."""
    if bool(left.terms) != bool(right.terms) and any(map(_holds_infinity, (left, right))):
        raise NoForm(f"zero times an infinity ({print_value(value)})")
    return left * right


def _holds_infinity(total: RealSum) -> bool:
    return any(is_infinite(node) for atom in total.atoms for node in walk(atom.value))


def widens(source: DType, target: DType) -> bool:
    """Whether every number of a float dtype is one of another."""
    low, high = source.exponents
    least, greatest = target.exponents
    return target.mantissa >= source.mantissa and least <= low and high <= greatest


def power(base: RealSum, exponent: Fraction, value: Value) -> RealSum:
    """A sum to the power of -1, 1/2 or -1/2; `value` is a text of the base."""
    if not base.terms:
        raise NoForm("a division by zero")
    single = base.single
    if single is not None:
        monomial, coefficient = single
        if exponent == -1:
            return of_monomial(monomial.to_the(exponent), 1 / coefficient)
        simple = all(p == 1 for _, p in monomial.powers) and len(monomial.powers) <= 1
        if coefficient == 1 and simple:
            return of_monomial(monomial.to_the(exponent))
    return of_atom(Apply("", (base,), value), exponent)


def exp_of(argument: RealSum) -> RealSum:
    """exp of a sum: 0 of minus infinity, and logarithms in it become powers."""
    rest, factor = [], number(1)
    for monomial, coefficient in argument.terms:
        (atom, degree), *others = monomial.powers or [(None, None)]
        alone = atom is not None and degree == 1 and not others and not monomial.exponent.terms
        if isinstance(atom, Leaf) and is_infinite(atom.value):
            if not alone or coefficient > 0:
                raise NoForm("an infinity")
            return ZERO
        if alone and isinstance(atom, Apply) and atom.function == "log" and (2 * coefficient).denominator == 1:
            (inner,) = atom.args
            single = inner.single
            base = single[0] if single is not None and single[1] == 1 else None
            if base is not None and len(base.powers) == 1 and all(p == 1 for _, p in base.powers):
                factor = factor * of_monomial(base.to_the(coefficient))
            else:
                assert isinstance(atom.value, Call)
                factor = factor * of_atom(Apply("", (inner,), atom.value.args[0]), coefficient)
            continue
        rest.append((monomial, coefficient))
    return factor * exponential(collect(rest))


def log_of(argument: RealSum, node: Call) -> RealSum:
    """log of a sum: an exponential's argument leaves it, and so does the power of an only atom."""
    single = argument.single
    if single is None:
        return of_atom(Apply("log", (argument,), node))
    monomial, coefficient = single
    if coefficient <= 0:
        raise NoForm("the logarithm of no positive number")
    base = Monomial(monomial.powers, ZERO)
    if len(base.powers) == 1 and coefficient == 1:
        ((atom, degree),) = base.powers
        if degree in (1, -1, HALF, -HALF):
            inner = Call("log", (atom.value,), node.dtype) if monomial.exponent.terms or degree != 1 else node
            if atom.value.dtype == node.dtype:
                logarithm = of_atom(Apply("log", (of_atom(atom),), inner))
                return logarithm.scaled(degree) + monomial.exponent
    if base.is_one and coefficient == 1:
        return monomial.exponent
    if monomial.exponent.terms:
        return of_atom(Apply("log", (argument,), node))
    return of_atom(Apply("log", (of_monomial(base, coefficient),), node))
