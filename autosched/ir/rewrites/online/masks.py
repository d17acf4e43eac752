"""`masked`: where every term of a cascade is its reducer's identity, the pass need not go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from autosched.ir.nodes import Axis
from autosched.ir.rewrites.algebra.cases import cases_of, is_infinite
from autosched.ir.rewrites.algebra.normal import NoForm, normal
from autosched.ir.rewrites.algebra.sums import TooManyTerms
from autosched.ir.rewrites.bounds import bounded, constant_ranges
from autosched.ir.rewrites.online.members import Cascade
from autosched.ir.rewrites.online.states import MemberStates
from autosched.ir.rewrites.proof import Lemma
from autosched.ir.value import Condition, Literal, Value, reads, value_where
from autosched.logic import Bool, all_of, conjuncts


@dataclass(frozen=True)
class Masked:
    """The cascade's axes with the mask in their bounds; the members without what the bounds say; the proof; `finite`,
    the tensors whose elements that the mask leaves out are taken to be finite: 0 * V is 0; and `reach`, the outermost
    axis with the bounds that blocks keep to. Where that is not the first of `axes`, a block that they cut is computed
    whole, and members have their mask."""

    axes: tuple[Axis, ...]
    members: tuple[MemberStates, ...]
    lemmas: tuple[Lemma, ...]
    finite: tuple[str, ...]
    reach: Axis

    @property
    def cuts_blocks(self) -> bool:
        """Whether points of a block may lie outside the bounds."""
        return self.reach == self.axes[0]


def masked(cascade: Cascade, members: tuple[MemberStates, ...], whole_blocks: bool = False) -> Masked:
    """Bounds of the outermost axis from conditions that all members are masked by; with `whole_blocks`, bounds that
    blocks alone keep to."""
    axis, *inner = cascade.axes
    unmasked = Masked(cascade.axes, members, (), taken_finite(cascade, members), axis)
    common: set[Bool] | None = None
    for carried in members:
        found = _needed(carried)
        common = found if common is None else common & found
    if not common:
        return unmasked
    known = frozenset(a.name for a in cascade.rows)
    ranges = constant_ranges(cascade.rows)
    found_bounds = bounded(axis, all_of(*sorted(common, key=str)), known, ranges)
    if found_bounds is None:
        return unmasked
    finite, reach = taken_finite(cascade, members, True), found_bounds.axis
    if whole_blocks:
        return Masked(cascade.axes, members, (found_bounds.lemma,), finite, reach)
    true = frozenset(found_bounds.taken)
    left = tuple(_without(c, true) for c in members)
    return Masked((reach, *inner), left, (found_bounds.lemma,), finite, reach)


def taken_finite(cascade: Cascade, members: Iterable[MemberStates], bounded: bool = False) -> tuple[str, ...]:
    """Tensors whose masked elements are taken to be finite: those of all members where the mask bounds the pass, else
    of members whose terms are no longer as written, which are zero there."""
    changed = [c for c in members if bounded or any(s.term != c.member.term for s in c.states)]
    return tuple(sorted({n for c in changed for n in _left_out(cascade, c)}))


def words(finite: Iterable[str]) -> tuple[str, ...]:
    """What certificates say of them."""
    why = "as written they are multiplied by 0, here they are not read"
    return tuple(f"elements of {n} that the mask leaves out are taken to be finite: {why}" for n in finite)


def _left_out(cascade: Cascade, carried: MemberStates) -> set[str]:
    """The float tensors that a member multiplies by zero where it is masked."""
    cases = [c.value for c in cases_of(carried.member.term) if _is_identity(carried, c.value)]
    found = {r.tensor for v in cases for r in reads(v) if r.dtype.is_float}
    return found - cascade.names if carried.member.op == "+" else set()


def _needed(carried: MemberStates) -> set[Bool]:
    """Conditions on axes without which the member's term is its reducer's identity."""
    guards = {part for g in carried.member.guards if isinstance(g, Bool) for part in conjuncts(g)}
    found: set[Bool] | None = None
    for case in cases_of(carried.member.term):
        if _is_identity(carried, case.value):
            continue
        holds = {p for c, side in case.when if isinstance(c, Bool) for p in (conjuncts(c) if side else (~c,))}
        found = holds if found is None else found & holds
    return guards | (found or set())


def _is_identity(carried: MemberStates, value: Value) -> bool:
    if carried.member.op == "+":
        try:
            return value.dtype.is_float and not normal(value).terms
        except (NoForm, TooManyTerms):
            return False
    return isinstance(value, Literal) and is_infinite(value) and (value.value < 0) == (carried.member.op == "max")


def _without(carried: MemberStates, true: frozenset[Bool]) -> MemberStates:
    member = carried.member
    guards = tuple(g for g in (_left(g, true) for g in member.guards) if g is not None)
    states = tuple(replace(s, term=value_where(s.term, true)) for s in carried.states)
    return replace(carried, states=states, member=replace(member, guards=guards))


def _left(guard: Condition, true: frozenset[Bool]) -> Condition | None:
    """What is left of a guard."""
    if not isinstance(guard, Bool):
        return guard
    rest: Iterable[Bool] = [p for p in conjuncts(guard) if p not in true]
    return all_of(*rest) if rest else None
