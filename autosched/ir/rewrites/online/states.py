"""`CarriedState`: what a member carries along the axis. Its result is the sum of its states times deferred factors.

    A += exp(S - M) / Z * V      one state: carried exp(-M), deferred 1 / Z, data exp(S) V
    W += (X - m) * (X - m)       three: 1 * Σ X X, -2 m * Σ X, m m * Σ 1

`carried` is an exponent. A state whose carried exponent is not zero is kept relative to a running reference: when that
moves from M to M', the state is multiplied by exp(carried(M') - carried(M)), its `factor`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from autosched.ir.dtypes import DType
from autosched.ir.nodes import is_zero
from autosched.ir.printer import print_value
from autosched.ir.rewrites.algebra.cases import Case, TooManyCases, cases_of, is_infinite
from autosched.ir.rewrites.algebra.normal import NoForm, normal
from autosched.ir.rewrites.algebra.separate import Mixed, Separable, kind_of, separate
from autosched.ir.rewrites.algebra.sums import ZERO, Leaf, Monomial, RealSum, TooManyTerms, collect, number
from autosched.ir.rewrites.algebra.text import Anchor, NoText, linear_in, times, value_of
from autosched.ir.rewrites.online.members import Cascade, Member
from autosched.ir.rewrites.refusal import NotRewritten
from autosched.ir.value import (
    Arith,
    Call,
    Cast,
    Comparison,
    Condition,
    Literal,
    Logical,
    Read,
    Select,
    Value,
    is_value,
    map_value,
    reads,
    walk,
)
from autosched.logic import TRUE, Bool, all_of


@dataclass(frozen=True)
class CarriedState:
    """`term` is what is reduced, relative to the references in `carried`; `deferred` is a factor, or of a maximum what
    is added. `by_case` is the term in each case of the member's own term where it is not the reducer's identity. With
    `extreme`, only elements that equal that reference count: the state starts anew when it moves."""

    carried: RealSum
    deferred: RealSum
    term: Value
    by_case: tuple[tuple[Case, Value], ...] = ()
    extreme: Read | None = None

    @property
    def references(self) -> frozenset[Read]:
        """The references that its running value is relative to."""
        return frozenset(a.value for a in self.carried.atoms if isinstance(a, Leaf) and isinstance(a.value, Read))

    @property
    def watched(self) -> frozenset[Read]:
        """The references that it has to be told of when they move."""
        return self.references if self.extreme is None else frozenset((self.extreme,))


@dataclass(frozen=True)
class MemberStates:
    """A member with its states. `scale` is the factor of a maximum's only state, one elsewhere; `refers` says that the
    member's term reads results of others."""

    member: Member
    states: tuple[CarriedState, ...]
    scale: RealSum
    refers: bool = False

    @property
    def exact(self) -> bool:
        """Whether its states are its result bit for bit."""
        return self.plain or any(s.extreme is not None for s in self.states)

    @property
    def plain(self) -> bool:
        """Whether its only state is its result, of its own term."""
        only = self.states[0] if len(self.states) == 1 else None
        return only is not None and not self.refers and only.extreme is None and not only.carried.terms and self.direct

    @property
    def direct(self) -> bool:
        """Whether its only state is its result once the references are final."""
        if len(self.states) != 1 or self.scale.constant != 1:
            return False
        return self.states[0].deferred.constant == (1 if self.member.op == "+" else 0)


def carried_of(cascade: Cascade, member: Member, real: bool) -> MemberStates:
    """A member's states. Raises NotRewritten where no law takes its term apart; `real` leaves roundings out."""
    name = member.stage.name
    if not any(r.tensor in cascade.names for r in reads(member.term)):
        neutral = number(1) if member.op == "+" else ZERO
        return MemberStates(member, (CarriedState(ZERO, neutral, member.term),), number(1))
    at_extreme = chosen_at_extreme(cascade, member)
    if at_extreme is not None:
        return at_extreme
    if not member.term.dtype.is_float:
        _refuse_conversions(cascade, member)
        raise NotRewritten("UNSUPPORTED", f"{name} reduces {member.term.dtype}: the laws are those of floats", name)
    _refuse_choices(cascade, member)
    try:
        cases = [(c, normal(c.value, real)) for c in cases_of(member.term)]
        if member.op != "+":
            return _extreme(cascade, member, cases)
        return states_of_sum(cascade, member, [(c, separate(form, cascade.kind)) for c, form in cases])
    except Mixed as mixed:
        raise _refused(cascade, member, mixed) from None
    except NoForm as why:
        raise NotRewritten("UNSUPPORTED", f"{name} has {why} in its term", name) from None
    except TooManyTerms:
        raise NotRewritten("UNSUPPORTED", f"the term of {name}, multiplied out, is too long", name) from None
    except TooManyCases:
        raise NotRewritten("UNSUPPORTED", f"the term of {name} has too many choices", name) from None
    except NoText as why:
        raise NotRewritten("UNSUPPORTED", f"{name}: {why}", name) from None


def anchors_of(cascade: Cascade, real: bool) -> list[Anchor]:
    """What the maxima and minima among the references are of; with choices, what is chosen that is finite."""
    found = []
    for member in cascade.members:
        if member.op == "+" or not member.term.dtype.is_float:
            continue
        for case in _cases(member.term):
            if not is_infinite(case.value):
                try:
                    found.append(Anchor(member.target, case.value, normal(case.value, real)))
                except (NoForm, TooManyTerms):
                    continue
    return found


def _cases(value: Value) -> tuple[Case, ...]:
    try:
        return cases_of(value)
    except TooManyCases:
        return ()


def chosen_at_extreme(cascade: Cascade, member: Member) -> MemberStates | None:
    """A reduction over those elements that equal their own maximum or minimum, as `j if X[j] == M else n`: where the
    reference moves, none of the elements so far equals it, and the reduction starts anew."""
    match member.term:
        case Select(Comparison(op, a, b, _), _, other, _) if other == member.init:
            pass
        case _:
            return None
    for reference, element, sign in ((b, a, op), (a, b, {">=": "<=", "<=": ">="}.get(op, op))):
        known = reference.tensor in cascade.names if isinstance(reference, Read) else False
        if not isinstance(reference, Read) or not known:
            continue
        of = cascade.member(reference.tensor)
        meant = sign == "==" or sign == {"max": ">=", "min": "<="}.get(of.op)
        same = of.term == element and of.guards == member.guards and not of.extra and reference == of.target
        once = sum(r.tensor in cascade.names for r in reads(member.term)) == 1
        starts = member.op != "+" or is_zero(member.init)
        if meant and same and once and starts and not any(r.tensor in cascade.names for r in reads(of.term)):
            neutral = number(1) if member.op == "+" else ZERO
            return MemberStates(member, (CarriedState(ZERO, neutral, member.term, extreme=reference),), number(1))
    return None


def _refuse_conversions(cascade: Cascade, member: Member) -> None:
    """A float that depends on a reference and becomes an integer is rounded."""
    name = member.stage.name
    for node in walk(member.term):
        match node:
            case Cast(operand, dtype, _) if operand.dtype.is_float and not dtype.is_float:
                references = sorted(cascade.names & {r.tensor for r in reads(operand)})
                if references:
                    what = f"{name} rounds {print_value(operand)} to {dtype}"
                    text = f"{what}, and what is rounded depends on {', '.join(references)}"
                    raise NotRewritten("CAST", text, name)


def _refuse_choices(cascade: Cascade, member: Member) -> None:
    """A choice, or a guard, that depends on a reference is not taken apart."""
    conditions: list[Condition] = [*member.guards]
    conditions += [v.condition for v in walk(member.term) if isinstance(v, Select)]
    for condition in conditions:
        if is_value(condition) and cascade.kind(condition) in ("both", "reference"):
            raise NotRewritten(
                "NOT_SEPARABLE",
                f"{member.stage.name} chooses by a reference, and no factor takes one choice to another",
                member.stage.name,
            )


def states_of_sum(
    cascade: Cascade, member: Member, cases: Sequence[tuple[Case, tuple[Separable, ...]]]
) -> MemberStates:
    """The states of a sum from the parts of its term in each case."""
    dtype = member.term.dtype
    grouped: dict[tuple[RealSum, RealSum], list[tuple[Case, RealSum]]] = {}
    for case, parts in cases:
        for part in parts:
            grouped.setdefault((part.carried, part.deferred), []).append((case, part.data))
    anchors = anchors_of(cascade, True)
    only = len(grouped) == 1 and next(iter(grouped))[1].constant == 1 and bool(next(iter(grouped))[0].terms)
    states = []
    for (carried, deferred), data in grouped.items():
        made = [(c, c.value if only else _relative(d, carried, dtype, anchors)) for c, d in data]
        term = member.term if only else _chosen(made, len(cases), dtype)
        states.append(CarriedState(carried, deferred, term, tuple(made)))
    if not states:  # every case is zero
        states = [CarriedState(ZERO, number(1), Literal(0.0, dtype))]
    return MemberStates(member, tuple(states), number(1), refers=True)


def _relative(data: RealSum, carried: RealSum, dtype: DType, anchors: Sequence[Anchor]) -> Value:
    """`data` times exp(`carried`), its exponentials written as one."""
    return value_of(
        collect((Monomial(m.powers, m.exponent + carried), c) for m, c in data.terms), dtype, anchors
    )


def _chosen(cases: list[tuple[Case, Value]], of: int, dtype: DType) -> Value:
    """A value by cases; zero in those that are not listed."""
    result: Value | None = Literal(0.0, dtype) if len(cases) < of else None
    for case, value in reversed(cases):
        result = value if result is None else Select(_all(case.when), value, result, dtype)
    assert result is not None
    return result


def _all(when: tuple[tuple[Condition, bool], ...]) -> Condition:
    formulas = all_of(*(c if side else ~c for c, side in when if isinstance(c, Bool)))
    values: list[Condition] = [c if side else Logical("not", (c,)) for c, side in when if is_value(c)]
    if not values:
        return formulas
    parts = values if formulas == TRUE else [formulas, *values]
    return parts[0] if len(parts) == 1 else Logical("and", tuple(parts))


def _extreme(cascade: Cascade, member: Member, cases: list[tuple[Case, RealSum]]) -> MemberStates:
    """A maximum or minimum of a(r) b(c) + d(r): the same in every case that is not the reducer's identity."""
    dtype, name = member.term.dtype, member.stage.name
    found: set[tuple[RealSum, RealSum]] = set()
    data: list[tuple[Case, Value]] = []
    for case, form in cases:
        if is_infinite(case.value):
            data.append((case, case.value))
            continue
        added = collect((m, c) for m, c in form.terms if not _on(cascade, m, "data"))
        parts = separate(form - added, cascade.kind)
        if len(parts) > 1:
            raise NotRewritten("NOT_DISTRIBUTIVE", f"{name} is the {member.op} of more than one product", name)
        if any(p.carried.terms for p in parts):
            text = f"{name} is the {member.op} of exponentials relative to a reference"
            raise NotRewritten("UNSUPPORTED", text, name)
        scale = parts[0].deferred if parts else number(1)
        found.add((scale, added))
        data.append((case, value_of(parts[0].data if parts else ZERO, dtype)))
    if len(found) > 1:
        text = f"the cases of {name} move by different amounts with the reference"
        raise NotRewritten("NOT_DISTRIBUTIVE", text, name)
    scale, added = found.pop() if found else (number(1), ZERO)
    finite = tuple((c, v) for c, v in data if not is_infinite(c.value))
    only = CarriedState(ZERO, added, _chosen(data, len(cases), dtype), finite)
    return MemberStates(member, (only,), scale, refers=True)


def _on(cascade: Cascade, monomial: Monomial, kind: str) -> bool:
    kinds = {kind_of(a, cascade.kind) for a in monomial.atoms}
    return kind in kinds or "both" in kinds


def _refused(cascade: Cascade, member: Member, mixed: Mixed) -> NotRewritten:
    name = member.stage.name
    references = ", ".join(sorted(cascade.names & {r.tensor for r in reads(member.term)}))
    if mixed.atom is not None and not isinstance(mixed.atom, Leaf) and mixed.atom.function.startswith("cast "):
        dtype = mixed.atom.function.removeprefix("cast ")
        rounded = mixed.atom.value.operand if isinstance(mixed.atom.value, Cast) else mixed.atom.value
        text = f"{name} rounds {print_value(rounded)} to {dtype}, and what is rounded depends on {references}"
        return NotRewritten("CAST", text, name)
    if mixed.atom is not None:
        what = print_value(mixed.atom.value)
        return NotRewritten("NOT_SEPARABLE", f"{what} depends on {references} and on the data at once", name)
    return NotRewritten(
        "NOT_SEPARABLE", f"an exponential in {name} has {references} and the data in one product", name
    )


def factor_of(state: CarriedState, old: Mapping[Read, Value], new: Mapping[Read, Value], dtype: DType) -> Value:
    """exp(carried(new) - carried(old)), written by differences of references."""
    result: Value | None = None
    rest = state.carried
    for reference in sorted(state.references, key=str):
        try:
            beside = linear_in(rest, Leaf(reference))
        except Mixed:
            raise NoText("a carried exponent that is not linear in its references") from None
        if any(isinstance(a, Leaf) and a.value in state.references for a in beside.atoms):
            raise NoText("a carried exponent that is not linear in its references")
        rest = collect((m, c) for m, c in rest.terms if Leaf(reference) not in set(m.atoms))
        sign = beside.scaled(Fraction(-1))
        before, after = (v if v.dtype == dtype else Cast(v, dtype) for v in (old[reference], new[reference]))
        difference: Value = Arith("-", before, after, dtype)
        if sign.constant != 1:
            difference = times(difference, sign, dtype)
        result = difference if result is None else Arith("+", result, difference, dtype)
    if any(isinstance(a, Leaf) and a.value in state.references for a in rest.atoms) or result is None:
        raise NoText("a carried exponent that is not linear in its references")
    return Call("exp", (result,), dtype)


def replaced(value: Value, to: Mapping[Read, Value]) -> Value:
    """The value with some of its elements replaced."""
    return map_value(value, lambda v: to.get(v, v) if isinstance(v, Read) else v)
