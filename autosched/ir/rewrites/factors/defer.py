"""`defer`: a factor that does not depend on the summed axis leaves the sum.

    for k: Y[i, n] += X[i, k] * R[i] * W[k, n]        for k: S += X[i, k] * W[k, n]
                                                      Y[i, n] = S * R[i]

A factor that is the same for groups of the axis (a scale of 32 weights, `D[k // 32]`) leaves the sum of each group: the
axis is split into groups and what is inside them first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce

from autosched.ir.nodes import Stage
from autosched.ir.printer import print_value
from autosched.ir.program import Program
from autosched.ir.rewrites.algebra.cases import TooManyCases, cases_of
from autosched.ir.rewrites.algebra.normal import NoForm, normal
from autosched.ir.rewrites.algebra.separate import Mixed, separate
from autosched.ir.rewrites.algebra.sums import ZERO, TooManyTerms, number
from autosched.ir.rewrites.algebra.text import NoText, value_of
from autosched.ir.rewrites.factors.factor_by_group import factor_by_group
from autosched.ir.rewrites.factors.grouped import sum_by_group
from autosched.ir.rewrites.online.domain import keeps_domain
from autosched.ir.rewrites.online.error import error_of
from autosched.ir.rewrites.online.fused import fused
from autosched.ir.rewrites.online.masks import Masked, taken_finite, words
from autosched.ir.rewrites.online.members import Cascade, Member, Stages
from autosched.ir.rewrites.online.obligations import term_lemmas
from autosched.ir.rewrites.online.states import CarriedState, MemberStates, states_of_sum
from autosched.ir.rewrites.refusal import NotRewritten
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.ir.value import Arith, Literal, Read, Select, Unary, Value, walk
from autosched.logic import Int


def defer(program: Program, only: str = "", checked: bool = True) -> Iterator[RewriteVerdict]:
    """Every sum with a factor that leaves it, each on its own; `only` the stage of that name if there is one. Sums of
    groups that overflow are computed as written, unless they are not `checked`: they are equal over the reals alone."""
    for stage in program.stages:
        if only not in ("", stage.name):
            continue
        found = _whole(program, stage) or _by_group(program, stage, checked)
        if found is not None:
            yield found


def _whole(program: Program, stage: Stage) -> RewriteVerdict | None:
    """A factor that none of the stage's axes changes."""
    found = _without_factor(program, stage)
    if found is None:
        return None
    cascade, carried = found
    try:
        after = fused(program, cascade, Masked(cascade.axes, (carried,), (), (), cascade.axes[0]), (), 1)
    except NotRewritten:
        return None
    return _verdict(cascade, carried, after)


def _without_factor(program: Program, stage: Stage) -> tuple[Cascade, MemberStates] | None:
    """The stage as a cascade of its own, and its sum without a factor; None where it has none that leaves it."""
    known = Stages.of(program).reduction(stage.assign.tensor)
    if known is None or known.assign is not stage.assign or known.assign.op not in ("+=", "-="):
        return None
    value = known.assign.value
    if not value.dtype.is_float or known.init is None:
        return None
    term = Unary("-", value, value.dtype) if known.assign.op == "-=" else value
    index = tuple(i for i in known.assign.index if isinstance(i, Int))
    target = Read(known.assign.tensor, index, value.dtype)
    member = Member(known, "+", term, (), known.guards, known.init, target)
    cascade = Cascade(known.spatial, known.reduction, (member,), frozenset())
    try:
        carried = _deferred(cascade, member)
    except (NotRewritten, Mixed, NoForm, NoText, TooManyTerms, TooManyCases):
        return None
    return None if carried is None else (cascade, carried)


def _verdict(cascade: Cascade, carried: MemberStates, after: Program) -> RewriteVerdict | None:
    """What is proved of the sum without its factor; None where a text or a proof cannot be had."""
    name, (state,) = carried.member.name, carried.states
    exact = keeps_domain(cascade, carried)
    try:
        lemmas = term_lemmas(carried)
        factor = print_value(value_of(state.deferred, carried.member.term.dtype))
    except (NotRewritten, NoText):
        return None
    return RewriteVerdict(
        "defer",
        ", ".join(a.name for a in cascade.axes),
        (name,),
        "rescaled" if exact else "real",
        deferred={name: factor},
        obligations=tuple(lemmas),
        because=words(taken_finite(cascade, (carried,))),
        error=str(error_of(carried)) if exact else None,
        after=after,
    )


def _deferred(cascade: Cascade, member: Member) -> MemberStates | None:
    """The sum with its factor apart, if there is one factor in all cases, of elements or scalars."""
    written = _taken_out(cascade, member)
    if written is not None:
        return written
    cases = [(c, separate(normal(c.value), cascade.kind)) for c in cases_of(member.term)]
    carried = states_of_sum(cascade, member, cases)
    state = carried.states[0]
    one = len(carried.states) == 1 and not state.carried.terms and any(True for _ in state.deferred.atoms)
    return carried if one and _changing(state.term, cascade) else None


def _taken_out(cascade: Cascade, member: Member) -> MemberStates | None:
    """The sum with factors of its term apart that its axes do not change; what stays is written as it was:
    `x * ((w - z) * s)` as `x * (w - z)` and `s`."""
    still: list[Value] = []
    kept = _without(member.term, cascade, still)
    if kept is None or not still or any(isinstance(v, Select) for f in still for v in walk(f)):
        return None
    factor = normal(reduce(lambda a, b: Arith("*", a, b, a.dtype), still))
    if not any(True for _ in factor.atoms):
        return None
    cases = tuple((c, k.value) for c, k in zip(cases_of(member.term), cases_of(kept), strict=True))
    return MemberStates(member, (CarriedState(ZERO, factor, kept, cases),), number(1))


def _without(term: Value, cascade: Cascade, still: list[Value]) -> Value | None:
    """A product without the factors that the axes do not change, which are added to `still`; None for nothing."""
    if not _changing(term, cascade):
        still.append(term)
        return None
    match term:
        case Arith("*", left, right, dtype):
            a, b = _without(left, cascade, still), _without(right, cascade, still)
            return b if a is None else a if b is None else Arith("*", a, b, dtype)
        case Arith("/", left, right, dtype) if not _changing(right, cascade):
            still.append(Arith("/", Literal(1.0, dtype), right, dtype))
            return _without(left, cascade, still)
        case Unary("-", operand, dtype):
            inner = _without(operand, cascade, still)
            return None if inner is None else Unary("-", inner, dtype)
    return term


def _changing(term: Value, cascade: Cascade) -> bool:
    """Whether what is left in the sum still changes along its axes."""
    return any(cascade.kind(v) == "data" for v in walk(term))


def _by_group(program: Program, stage: Stage, checked: bool) -> RewriteVerdict | None:
    """A factor that is the same for groups of the reduction axis; whether it overflows is `checked`, or not."""
    split = sum_by_group(program, stage)
    if split is None:
        return None
    grouped, part = split
    found = _without_factor(grouped, next(s for s in grouped.stages if s.assign.tensor == part))
    if found is None:
        return None
    cascade, carried = found
    try:
        verdict = _verdict(cascade, carried, factor_by_group(stage, grouped, carried, checked))
    except NoText:
        return None
    if verdict is None:
        return None
    axis = stage.reduction[0].name
    told = replace(verdict, axis=axis, stages=(stage.name,), deferred={stage.name: verdict.deferred[part]})
    if checked:
        return told
    said = f"sums of groups of {stage.name} are finite, and so are products of their factors"
    return replace(told, numerics="real", error=None, because=(*told.because, f"{said} (assumed)"), relies=(said,))
