"""Promotion: an accumulator that keeps fewer bits than the program's is emptied into it every Kp steps.

    C[i, j] += f32(A[i, p]) * f32(B[p, j])                                            p < 4096, on 13 fraction bits

    C_part[q, i, j] += f32(A[i, 128 * q + r]) * f32(B[128 * q + r, j])                r < 128, on 13 fraction bits
    C[i, j] += C_part[q, i, j]                                                        q < 32, in the program's f32

The terms are the same, so the sum is the program's in another order. Its error is that of a partial sum, which Kp
bounds, and that of the few additions in the program's own precision. Kp is such that a partial sum is off by no more
than a rounding of its factors' type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from autosched.ir.map import Map
from autosched.ir.nodes import Assign, Axis, Loop, Statement, Tensor
from autosched.ir.program import Program
from autosched.ir.rewrites.nesting import under
from autosched.ir.value import Condition, Literal, Read, is_value, substitute
from autosched.logic import Bool, Const, Int, Var, free_vars
from autosched.logic.walk import substitute_bool
from autosched.tensorize.adapters.proposal import Adapted, NoPlace, Proposal, adapted, lemma
from autosched.tensorize.adapters.site import Site, holds, nest
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Obligation
from autosched.tensorize.numerics.bound import bound, promoted
from autosched.tensorize.reduction.floats import factors_of, magnitudes_of
from autosched.tensorize.reduction.partial_sums import is_partial

STEPS = (128, 256, 64, 512, 32)
"""Numbers of terms of a partial sum, the usual one first."""
MOST = 3


def promotion(facts: StageFacts, intrinsic: Intrinsic) -> Sequence[Proposal]:
    """The stage summed in parts of each number of steps that is short enough, where the instruction's accumulator has
    the program's type and keeps fewer bits."""
    update, numerics = facts.update, intrinsic.numerics
    dtype = update.target.dtype
    factors = factors_of(update.term)
    if not dtype.is_float or intrinsic.accumulator.dtype != dtype or update.combine != "+" or update.fused:
        return []
    if numerics.kept_bits(dtype.mantissa) >= dtype.mantissa or not factors or is_partial(facts.program, facts.original):
        return []
    issue = prod(a.extent for a in intrinsic.reduction)
    total = prod(facts.extents[a.name] for a in update.axes_reduced)
    enough = max(d.unit_roundoff for _, d in factors)
    found = []
    for steps in STEPS:
        known = bound(numerics, dtype, steps, issue=issue)
        if steps % issue == 0 and steps < total and known.factor <= enough:
            found.append(_proposal(facts, intrinsic, steps))
    return found[:MOST]


def _proposal(facts: StageFacts, intrinsic: Intrinsic, steps: int) -> Proposal:
    error = error_in_parts(facts, intrinsic, steps)
    name = f"promote to {facts.update.target.dtype} every {steps}"
    return Proposal(("promotion", steps, intrinsic.numerics), lambda: in_parts(facts, steps, name, error))


def error_in_parts(facts: StageFacts, intrinsic: Intrinsic, steps: int) -> Obligation:
    """How far the sum is off of which every `steps` terms are summed by the instruction, from zero."""
    issue = prod(a.extent for a in intrinsic.reduction)
    terms = prod(facts.extents[a.name] for a in facts.update.axes_reduced)
    total = promoted(intrinsic.numerics, facts.update.target.dtype, terms, steps, issue)
    sizes = magnitudes_of(facts.update)
    said = f"the error is at most {total.formula} · {sizes} = {total.factor:.3g} · {sizes} for Kp = {steps}"
    return lemma(said, "structure")


def in_parts(facts: StageFacts, steps: int, name: str, *more: Obligation, whole: bool = False) -> Adapted:
    """The stage as the sum of partial sums of at most `steps` terms, which is the one to match; `more` is proved of
    them beside. Raises NoPlace where it cannot be cut so, and unless one may be the `whole` sum, where it would be."""
    split = _split(facts, steps, whole)
    after, core = _rebuilt(facts, split)
    lemmas = []
    if split.axis is not None:
        relation = Map((("q", split.parts), ("r", split.size)), (Var("q") * split.size + Var("r"),))
        if not relation.is_bijection_onto((split.parts * split.size,)):
            raise NoPlace("the parts do not cover the sum")
        axis, last = split.axis.name, split.axis.extent - 1
        text = f"every {axis} from 0 to {last} is {split.size} q + r for one q and one r < {split.size}"
        lemmas.append(lemma(text, "z3"))
    term = show_leaf(facts.update.term)
    lemmas.append(lemma(f"the sum of {term} is the sum of its partial sums: the same terms, grouped", "structure"))
    return adapted(facts.program, after, core, (name,), [*lemmas, *more])


@dataclass(frozen=True)
class _SplitAxis:
    """`axis` in `parts` of `size` (None: only whole axes are in a partial sum); `outer` and `inner` are the others."""

    outer: tuple[Axis, ...]
    axis: Axis | None
    size: int
    parts: int
    inner: tuple[Axis, ...]


def _split(facts: StageFacts, steps: int, whole: bool) -> _SplitAxis:
    """The innermost axes of the reduction that make up at most `steps` terms, the last of them cut."""
    axes = list(facts.update.axes_reduced)
    if any(a.lower != Const(0) or not isinstance(a.upper, Const) for a in facts.update.axes):
        raise NoPlace("a loop's bounds are not known")
    inner: list[Axis] = []
    room = steps
    while axes and axes[-1].extent <= room:
        inner.insert(0, axes.pop())
        room //= inner[0].extent
    if not axes and whole:
        return _SplitAxis((), None, 1, 1, tuple(inner))
    if not axes:
        raise NoPlace("the sum is no longer than a part")
    if room == 1:
        return _SplitAxis(tuple(axes), None, 1, 1, tuple(inner))
    axis = axes.pop()
    return _SplitAxis(tuple(axes), axis, room, -(-axis.extent // room), tuple(inner))


def _rebuilt(facts: StageFacts, split: _SplitAxis) -> tuple[Program, Assign]:
    update = facts.update
    if any(is_value(g) for g in update.guards) or any(is_value(i) for i in update.target.index):
        raise NoPlace("an address or a guard depends on data")
    site = Site(facts.program, facts.original, update)
    dtype = update.target.dtype
    spatial = [a for a in update.axes if a not in update.axes_reduced]
    name = site.fresh(f"{update.target.tensor}_part")
    outer = list(split.outer)
    inner = list(split.inner)
    values: dict[str, Int] = {}
    guards: list[Condition] = list(update.guards)
    if split.axis is not None:
        q, r = site.fresh(f"{split.axis.name}_part"), site.fresh(f"{split.axis.name}_in")
        outer.append(Axis(q, Const(0), Const(split.parts)))
        inner.insert(0, Axis(r, Const(0), Const(split.size)))
        place = Var(q) * split.size + Var(r)
        values[split.axis.name] = place
        if split.parts * split.size != split.axis.extent:
            guards.append(place < split.axis.extent)
    index = tuple(Var(a.name) for a in (*outer, *spatial))
    shape = tuple(Const(a.extent) for a in (*outer, *spatial))
    site.tensors[name] = Tensor(name, dtype, shape, intermediate=True)

    core = Assign(name, index, "+=", substitute(update.term, values))
    tests = tuple(substitute_bool(g, values) for g in guards if isinstance(g, Bool))
    start = Assign(name, index, "=", Literal(0.0 if dtype.is_float else 0, dtype))
    site.before.append(nest([*outer, *spatial], (start, nest(inner, (under(tests, core),)))))
    part = Assign(update.target.tensor, update.target.index, "+=", Read(name, index, dtype))
    reduced = frozenset(a.name for a in update.axes_reduced)
    return site.with_statement(_summed(site.top, facts.original.assign, nest(outer, (part,)), reduced)), core


def _summed(top: Statement, assign: Assign, parts: Statement, reduced: frozenset[str]) -> Statement:
    """`top` with `parts` in the place of the reduction. Raises NoPlace where its loops, or its guards on their axes,
    hold anything else, at any depth: that would run once, where it ran in each turn."""

    def visit(stmt: Statement, inside: bool = False) -> Statement:
        """`inside` a loop or a guard that is left out."""
        if stmt is assign:
            return parts
        if isinstance(stmt, Assign) or not holds(stmt, assign):
            return stmt
        if isinstance(stmt, Loop):
            left_out = stmt.axis.name in reduced
        else:
            left_out = not isinstance(stmt.condition, Bool) or bool(free_vars(stmt.condition) & reduced)
        inside = inside or left_out
        if inside and len(stmt.body) != 1:
            raise NoPlace("the loops of the sum hold other statements")
        if left_out:
            return visit(stmt.body[0], inside)
        return replace(stmt, body=tuple(visit(s, inside) for s in stmt.body))

    return visit(top)
