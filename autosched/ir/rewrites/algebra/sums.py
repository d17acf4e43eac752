"""`RealSum`: coefficient times powers of atoms times an exponential, added up. Equal sums are equal values.

    exp((S - M) * 0.125) * V / Z   is   1 · V^1 · Z^-1 · exp(1/8 · S - 1/8 · M)

An atom is something the laws say nothing of: an element, a scalar, or a function of sums (`tanh`, a rounding). The law
exp(a + b) = exp(a) exp(b) is in the form: an exponential's argument is a sum of its own, and factors add theirs up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from autosched.ir.printer import print_value
from autosched.ir.value import Value
from autosched.logic.remember import Remembering, remembers_hash

LARGEST = 256
"""Terms of a sum at most: products of long sums are given up."""


class TooManyTerms(Exception):
    """A sum of more than `LARGEST` terms."""


@remembers_hash
@dataclass(frozen=True, slots=True)
class Leaf(Remembering):
    """An element, a scalar, or an integer as a float."""

    value: Value


@remembers_hash
@dataclass(frozen=True, slots=True)
class Apply(Remembering):
    """A function of sums that no law takes apart; "" is the sum itself, as the base of a power. `value` is a text of
    it."""

    function: str
    args: tuple[RealSum, ...]
    value: Value = field(compare=False)


Atom: TypeAlias = Leaf | Apply


@remembers_hash
@dataclass(frozen=True, slots=True)
class Monomial(Remembering):
    """Powers of atoms times exp(`exponent`)."""

    powers: frozenset[tuple[Atom, Fraction]]
    exponent: RealSum

    def __mul__(self, other: Monomial) -> Monomial:
        powers = dict(self.powers)
        for atom, power in other.powers:
            powers[atom] = powers.get(atom, Fraction(0)) + power
        kept = frozenset((a, p) for a, p in powers.items() if p)
        return Monomial(kept, self.exponent + other.exponent)

    def to_the(self, power: Fraction) -> Monomial:
        """Its power; of a whole number, or where every atom is positive."""
        return Monomial(frozenset((a, p * power) for a, p in self.powers), self.exponent.scaled(power))

    @property
    def is_one(self) -> bool:
        return not self.powers and not self.exponent.terms

    @property
    def atoms(self) -> Iterator[Atom]:
        """Atoms of the powers and of the exponent."""
        yield from (a for a, _ in self.powers)
        yield from self.exponent.atoms


@remembers_hash
@dataclass(frozen=True, slots=True)
class RealSum(Remembering):
    """Monomials with their coefficients, none of which is zero; the empty sum is zero."""

    terms: frozenset[tuple[Monomial, Fraction]]

    def __add__(self, other: RealSum) -> RealSum:
        return collect([*self.terms, *other.terms])

    def __sub__(self, other: RealSum) -> RealSum:
        return self + other.scaled(Fraction(-1))

    def __mul__(self, other: RealSum) -> RealSum:
        if len(self.terms) * len(other.terms) > LARGEST:
            raise TooManyTerms
        return collect((m * n, c * d) for m, c in self.terms for n, d in other.terms)

    def scaled(self, factor: Fraction) -> RealSum:
        return RealSum(frozenset((m, c * factor) for m, c in self.terms)) if factor else ZERO

    @property
    def single(self) -> tuple[Monomial, Fraction] | None:
        """Its only term, or None."""
        if len(self.terms) != 1:
            return None
        (term,) = self.terms
        return term

    @property
    def constant(self) -> Fraction | None:
        """Its value where it is a number, or None."""
        if not self.terms:
            return Fraction(0)
        single = self.single
        return single[1] if single is not None and single[0].is_one else None

    @property
    def atoms(self) -> Iterator[Atom]:
        for monomial, _ in self.terms:
            yield from monomial.atoms

    @property
    def ordered(self) -> list[tuple[Monomial, Fraction]]:
        """The terms in an order that depends on nothing but what they are."""
        return sorted(self.terms, key=lambda t: monomial_key(t[0]))


ZERO = RealSum(frozenset())
UNIT = Monomial(frozenset(), ZERO)


def collect(terms: Iterable[tuple[Monomial, Fraction]]) -> RealSum:
    """Their sum, equal monomials added up."""
    found: dict[Monomial, Fraction] = {}
    for monomial, coefficient in terms:
        found[monomial] = found.get(monomial, Fraction(0)) + coefficient
    return RealSum(frozenset((m, c) for m, c in found.items() if c))


def number(value: Fraction | int) -> RealSum:
    """A number as a sum."""
    return RealSum(frozenset([(UNIT, Fraction(value))])) if value else ZERO


def of_monomial(monomial: Monomial, coefficient: Fraction | int = 1) -> RealSum:
    return RealSum(frozenset([(monomial, Fraction(coefficient))]))


def of_atom(atom: Atom, power: Fraction | int = 1) -> RealSum:
    """An atom's power as a sum."""
    return of_monomial(Monomial(frozenset([(atom, Fraction(power))]), ZERO))


def exponential(exponent: RealSum) -> RealSum:
    """exp of a sum; exp(0) is 1."""
    return of_monomial(Monomial(frozenset(), exponent))


def atom_key(atom: Atom) -> str:
    """What atoms are ordered by."""
    return print_value(atom.value)


def monomial_key(monomial: Monomial) -> tuple[str, str]:
    """What monomials are ordered by."""
    powers = sorted(f"{atom_key(a)}^{p}" for a, p in monomial.powers)
    inner = [f"{c}{monomial_key(m)}" for m, c in monomial.exponent.ordered]
    return str(powers), str(inner)
