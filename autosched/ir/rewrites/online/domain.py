"""`keeps_domain`: whether states give no number only where the program gives none, either.

The laws hold where both sides are numbers. They can drop what is none: sqrt(V) sqrt(V) becomes V, which is a number for
V < 0, too; X / X becomes 1; exp(X) / exp(M) becomes exp(X - M), which does not overflow. So what is divided by, what
roots and logarithms are taken of, and all elements have to occur in the states' terms or their factors as well, and
exponentials may only be multiplied by those that overflow with them.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from autosched.ir.nodes import is_zero
from autosched.ir.rewrites.algebra.cases import cases_of, is_infinite
from autosched.ir.rewrites.algebra.normal import NoForm, normal
from autosched.ir.rewrites.algebra.sums import Apply, Atom, Leaf, RealSum, TooManyTerms
from autosched.ir.rewrites.algebra.text import value_of
from autosched.ir.rewrites.online.members import Cascade
from autosched.ir.rewrites.online.states import MemberStates
from autosched.ir.value import Arith, Call, FromIndex, Read, Scalar, Unary, Value, children


def keeps_domain(cascade: Cascade, carried: MemberStates) -> bool:
    """Whether everything that can make the member's term no number is in its states."""
    member, dtype = carried.member, carried.member.term.dtype
    if all(s.term == member.term for s in carried.states):
        return True
    made: list[Value] = [value_of(carried.scale, dtype)]
    for state in carried.states:
        made += [value_of(state.deferred, dtype), *(term for _, term in state.by_case)]
    try:
        before, after = _Partial.of(c.value for c in cases_of(member.term)), _Partial.of(made)
    except (NoForm, TooManyTerms):
        return False
    roots = {f for f in before.roots - after.roots if not _positive(cascade, f)}
    merged = {e for e in before.exponents if not any(_same_overflow(cascade, e, f) for f in after.exponents)}
    kept = before.leaves <= after.leaves and before.divisors <= after.divisors | after.roots
    return kept and not roots and not merged


class _Partial:
    """`leaves` are elements and scalars; `divisors` what is divided by, factor by factor; `roots` what roots and
    logarithms are taken of; `exponents` the exponentials' arguments."""

    def __init__(self) -> None:
        self.exponents: set[RealSum] = set()
        self.leaves: set[Value] = set()
        self.divisors: set[Atom | RealSum] = set()
        self.roots: set[Atom | RealSum] = set()

    @classmethod
    def of(cls, values: Iterable[Value]) -> _Partial:
        found = cls()
        for value in values:
            found._take(value)
        return found

    def _take(self, value: Value) -> None:
        """What is in a value; what is divided by is taken apart by `_take_divisor`."""
        match value:
            case Read() | Scalar() | FromIndex():
                self.leaves.add(value)
            case Arith("/", dividend, divisor, _):
                self._take(dividend)
                self._take_divisor(divisor)
                return
            case Call("exp", (argument,), _):
                self._take_exponent(normal(argument))
            case Call("sqrt" | "log", (argument,), _):
                self.roots |= _factors(normal(argument))
            case Call("rsqrt", (argument,), _):
                self.roots |= _factors(normal(argument))
                self._take_divisor(argument)
                return
        for child in children(value):
            self._take(child)

    def _take_divisor(self, value: Value) -> None:
        """1 / exp(x) is exp(-x), which overflows where exp(x) underflows; of other divisors, what is zero counts."""
        match value:
            case Call("exp", (argument,), _):
                self._take_exponent(normal(argument).scaled(Fraction(-1)))
                self._take(argument)
            case Arith("*", left, right, _):
                self._take_divisor(left)
                self._take_divisor(right)
            case Call("sqrt", (argument,), _):
                self.roots |= _factors(normal(argument))
                self._take_divisor(argument)
            case Unary("-", operand, _):
                self._take_divisor(operand)
            case _:
                self.divisors |= _factors(normal(value))
                self._take(value)

    def _take_exponent(self, form: RealSum) -> None:
        if not any(isinstance(a, Leaf) and is_infinite(a.value) for a in form.atoms):
            self.exponents.add(form)


def _factors(total: RealSum) -> set[Atom | RealSum]:
    single = total.single
    if single is None:
        return {total} if total.constant is None else set()
    found: set[Atom | RealSum] = set()
    for atom, _ in single[0].powers:
        found |= _factors(atom.args[0]) if isinstance(atom, Apply) and atom.function == "" else {atom}
    return found


def _same_overflow(cascade: Cascade, one: RealSum, other: RealSum) -> bool:
    """Whether an exponent is a positive multiple of another, or differs by logarithms of sums that are not negative."""
    if one.terms and other.terms:
        monomial, coefficient = one.ordered[0]
        by = dict(other.terms).get(monomial, Fraction(0)) / coefficient
        if by > 0 and one.scaled(by) == other:
            return True
    apart = (one - other).atoms
    return all(isinstance(a, Apply) and a.function == "log" and _positive(cascade, _only(a)) for a in apart)


def _only(logarithm: Apply) -> Atom | RealSum:
    """What a logarithm is taken of."""
    factors = _factors(logarithm.args[0])
    return next(iter(factors)) if len(factors) == 1 else logarithm.args[0]


def _positive(cascade: Cascade, factor: Atom | RealSum) -> bool:
    """Whether it is a sum of exponentials: no number is negative."""
    read = factor.value if isinstance(factor, Leaf) else None
    if not isinstance(read, Read) or read.tensor not in cascade.names:
        return False
    member = cascade.member(read.tensor)
    if member.op != "+" or not is_zero(member.init):
        return False
    forms = [normal(c.value, True) for c in cases_of(member.term)]
    return all(c > 0 and not m.powers for form in forms for m, c in form.terms)
