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
from autosched.ir.nodes import Assign, Axis, Guard, Loop, Statement, Tensor
from autosched.ir.program import Program
from autosched.ir.rewrites.nesting import under
from autosched.ir.value import Condition, Literal, Read, Value, is_value, map_value
from autosched.logic import Bool, Const, Int, Var, free_vars
from autosched.logic.walk import substitute_bool, substitute_int
from autosched.tensorize.adapters.proposal import Adapted, NoPlace, Proposal, adapted, lemma
from autosched.tensorize.adapters.site import Site, holds, nest
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.numerics.bound import ErrorBound, bound, promoted
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
            found.append(_proposal(facts, intrinsic, steps, promoted(numerics, dtype, total, steps, issue)))
    return found[:MOST]


def _proposal(facts: StageFacts, intrinsic: Intrinsic, steps: int, total: ErrorBound) -> Proposal:
    def make() -> Adapted:
        split = _split(facts, steps)
        after, core = _rebuilt(facts, split)
        dtype = facts.update.target.dtype
        lemmas = []
        if split.axis is not None:
            relation = Map((("q", split.parts), ("r", split.size)), (Var("q") * split.size + Var("r"),))
            if not relation.is_bijection_onto((split.parts * split.size,)):
                raise NoPlace("the parts do not cover the sum")
            name, last = split.axis.name, split.axis.extent - 1
            text = f"every {name} from 0 to {last} is {split.size} q + r for one q and one r < {split.size}"
            lemmas.append(lemma(text, "z3"))
        term = show_leaf(facts.update.term)
        lemmas.append(lemma(f"the sum of {term} is the sum of its partial sums: the same terms, grouped", "structure"))
        sizes = magnitudes_of(facts.update)
        error = f"the error is at most {total.formula} · {sizes} = {total.factor:.3g} · {sizes} for Kp = {steps}"
        lemmas.append(lemma(error, "structure"))
        return adapted(facts.program, after, core, (f"promote to {dtype} every {steps}",), lemmas)

    return Proposal(("promotion", steps, intrinsic.numerics), make)


@dataclass(frozen=True)
class _SplitAxis:
    """`axis` in `parts` of `size` (None: only whole axes are in a partial sum); `outer` and `inner` are the others."""

    outer: tuple[Axis, ...]
    axis: Axis | None
    size: int
    parts: int
    inner: tuple[Axis, ...]


def _split(facts: StageFacts, steps: int) -> _SplitAxis:
    """The innermost axes of the reduction that make up at most `steps` terms, the last of them cut."""
    axes = list(facts.update.axes_reduced)
    if any(a.lower != Const(0) or not isinstance(a.upper, Const) for a in facts.update.axes):
        raise NoPlace("a loop's bounds are not known")
    inner: list[Axis] = []
    room = steps
    while axes and axes[-1].extent <= room:
        inner.insert(0, axes.pop())
        room //= inner[0].extent
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

    def moved(value: Value) -> Value:
        return map_value(value, on_int=lambda i: substitute_int(i, values))

    core = Assign(name, index, "+=", moved(update.term))
    tests = tuple(substitute_bool(g, values) for g in guards if isinstance(g, Bool))
    start = Assign(name, index, "=", Literal(0.0, dtype))
    site.before.append(nest([*outer, *spatial], (start, nest(inner, (under(tests, core),)))))
    part = Assign(update.target.tensor, update.target.index, "+=", Read(name, index, dtype))
    reduced = frozenset(a.name for a in update.axes_reduced)
    return site.with_statement(_summed(site.top, facts.original.assign, nest(outer, (part,)), reduced)), core


def _summed(top: Statement, assign: Assign, parts: Statement, reduced: frozenset[str]) -> Statement:
    """`top` with `parts` in the place of the reduction. Raises NoPlace where its loops hold anything else."""

    def visit(stmt: Statement) -> Statement:
        match stmt:
            case Loop(axis, body) if holds(stmt, assign):
                if axis.name not in reduced:
                    return replace(stmt, body=tuple(visit(s) for s in body))
                if len(body) != 1:
                    raise NoPlace("the loops of the sum hold other statements")
                return visit(body[0])
            case Guard(condition, body) if holds(stmt, assign):
                if isinstance(condition, Bool) and not free_vars(condition) & reduced:
                    return replace(stmt, body=tuple(visit(s) for s in body))
                if len(body) != 1:
                    raise NoPlace("a guard of the sum holds other statements")
                return visit(body[0])
            case Assign() if stmt is assign:
                return parts
        return stmt

    return visit(top)
