"""`separate`: a sum as products of what depends on the reference and what depends on the data.

    exp(S - M) * V / Z             carried exp(-M), deferred 1 / Z, data exp(S) * V
    (X - m) * (X - m)              deferred 1, -2 m, m * m; data X * X, X, 1

The *reference* are the elements that another stage has not finished yet, the *data* what changes along the axis. What
depends on neither counts with the reference, but in an exponential with the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from autosched.ir.rewrites.algebra.sums import ZERO, Apply, Atom, Monomial, RealSum, collect
from autosched.ir.value import Value

Kind = Callable[[Value], str]
"""Of an element or another atom: `reference`, `data`, `both` or `neither`."""


class Mixed(Exception):
    """An atom, or an exponential's term, that depends on reference and data at once: no law takes it apart."""

    def __init__(self, atom: Atom | None, monomial: Monomial | None = None) -> None:
        super().__init__()
        self.atom = atom
        self.monomial = monomial


@dataclass(frozen=True)
class Separable:
    """`deferred` times exp(`carried`), of the reference, times `data`."""

    deferred: RealSum
    carried: RealSum
    data: RealSum


def separate(term: RealSum, kind: Kind) -> tuple[Separable, ...]:
    """The fewest parts whose sum it is, those with one carried factor together. Raises `Mixed`."""
    groups: dict[RealSum, dict[Monomial, dict[Monomial, Fraction]]] = {}
    for monomial, coefficient in term.ordered:
        first, second = _apart(monomial, kind)
        rows = groups.setdefault(first.exponent, {})
        row = rows.setdefault(Monomial(first.powers, ZERO), {})
        row[second] = row.get(second, Fraction(0)) + coefficient
    return tuple(part for carried, rows in groups.items() for part in _factored(carried, rows))


def kind_of(atom: Atom, kind: Kind) -> str:
    """What an atom's text depends on, also where its value does not: `floor(X * 0)` is written with X."""
    return kind(atom.value)


def _apart(monomial: Monomial, kind: Kind) -> tuple[Monomial, Monomial]:
    sides: dict[bool, list[tuple[Atom, Fraction]]] = {True: [], False: []}
    for atom, power in monomial.powers:
        of = kind_of(atom, kind)
        if of == "both":
            raise Mixed(_blamed(atom, kind))
        sides[of != "data"].append((atom, power))
    exponents: dict[bool, list[tuple[Monomial, Fraction]]] = {True: [], False: []}
    for inner, coefficient in monomial.exponent.terms:
        kinds = {kind_of(a, kind) for a in inner.atoms} - {"neither"}
        if "both" in kinds:
            raise Mixed(next(_blamed(a, kind) for a in inner.atoms if kind_of(a, kind) == "both"))
        if len(kinds) > 1:
            raise Mixed(None, inner)
        exponents["reference" in kinds].append((inner, coefficient))
    reference, data = (Monomial(frozenset(sides[s]), collect(exponents[s])) for s in (True, False))
    return reference, data


def _blamed(atom: Atom, kind: Kind) -> Atom:
    """The smallest atom inside that depends on both."""
    if isinstance(atom, Apply):
        for inner in (a for s in atom.args for a in s.atoms):
            if kind_of(inner, kind) == "both":
                return _blamed(inner, kind)
    return atom


def _factored(carried: RealSum, rows: dict[Monomial, dict[Monomial, Fraction]]) -> list[Separable]:
    """The matrix of coefficients as the sum of as many products as its rank: independent rows are kept as data, and
    each row is a combination of those."""
    basis: list[dict[Monomial, Fraction]] = []
    reduced: list[tuple[Monomial, dict[Monomial, Fraction], dict[int, Fraction]]] = []
    deferred: list[list[tuple[Monomial, Fraction]]] = []
    for reference, row in rows.items():
        rest, made = dict(row), dict[int, Fraction]()
        for pivot, vector, combination in reduced:
            factor = rest.get(pivot, Fraction(0)) / vector[pivot]
            if factor:
                rest = _minus(rest, vector, factor)
                for k, c in combination.items():
                    made[k] = made.get(k, Fraction(0)) + factor * c
        if rest:
            own = len(basis)
            scale = next(iter(row.values())) if len(row) == 1 else Fraction(1)
            basis.append({m: c / scale for m, c in row.items()})
            deferred.append([])
            combination = {own: scale} | {k: -c for k, c in made.items()}
            reduced.append((next(iter(rest)), rest, combination))
            made = {own: scale}
        for k, c in made.items():
            deferred[k].append((reference, c))
    return [Separable(collect(d), carried, collect(b.items())) for d, b in zip(deferred, basis, strict=True)]


def _minus(
    row: dict[Monomial, Fraction], other: dict[Monomial, Fraction], factor: Fraction
) -> dict[Monomial, Fraction]:
    left = {m: row.get(m, Fraction(0)) - factor * other.get(m, Fraction(0)) for m in {**row, **other}}
    return {m: c for m, c in left.items() if c}
