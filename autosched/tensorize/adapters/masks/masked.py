"""Conditions on data as masks: a program's condition becomes a tensor of bits, which an instruction's mask can hold.

    if M[j] == 0: C[i, j] += A[i, p] * B[p, j]        C_mask[j] = 1 if M[j] == 0 else 0
                                                      if C_mask[j] != 0: C[i, j] += A[i, p] * B[p, j]

The values are the same, bit by bit: the condition is asked once for each point of the axes that it moves along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from autosched.ir.dtypes import DTYPES
from autosched.ir.nodes import Assign, Axis, Guard, Statement, Tensor
from autosched.ir.prepared import assigns
from autosched.ir.value import Comparison, Literal, Logical, Read, Select, Value, is_value, reads, substitute_condition
from autosched.logic import Const, Var, free_vars
from autosched.tensorize.adapters.masks.hold import lengths
from autosched.tensorize.adapters.masks.kept import kept
from autosched.tensorize.adapters.proposal import Adapted, NoPlace, Proposal, adapted, followed, lemma
from autosched.tensorize.adapters.site import Site, nest
from autosched.tensorize.addresses.points import condition_axes
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.counterexample import show_leaf
from autosched.tensorize.body.governed import governing
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.lengths import at_full_length, is_update
from autosched.tensorize.reduction.update import NotAnUpdate, update_of_intrinsic

MASK = DTYPES["b1"]


def masked(facts: StageFacts, intrinsic: Intrinsic) -> Sequence[Proposal]:
    """The stage with the one condition on data around it as a mask of bits, where it is none yet."""
    if not any(o.dtype == MASK for o in intrinsic.inputs):
        return []
    facts = facts if intrinsic.accumulates else facts.as_assignment
    try:
        _ = facts.update
    except NotAnUpdate:
        return []
    asked = tuple(g for g in facts.original.guards if is_value(g))
    if not asked or (len(asked) == 1 and _is_mask(asked[0])):
        return []
    if not is_update(intrinsic):
        return []
    whole = asked[0] if len(asked) == 1 else Logical("and", asked)
    at_length = at_full_length(intrinsic)
    counted = at_length is None and any(governing(update_of_intrinsic(intrinsic)).values())

    def make() -> Adapted:
        first = _adapted(facts, whole)
        if not counted and intrinsic.accumulates:
            return first
        inside = StageFacts(first.rewrite.after, first.stage, facts.timeout_ms)
        for proposal in lengths(inside, intrinsic) if counted else kept(inside, intrinsic):
            return followed(facts.program, first, proposal.make())
        raise NoPlace("no length can be supplied, or the elements that a mask keeps are not")

    return [Proposal(("mask", whole, counted and intrinsic.name, intrinsic.accumulates), make)]


def _is_mask(condition: Value) -> bool:
    match condition:
        case Comparison("!=", Read(dtype=dtype), Literal(0)):
            return dtype == MASK
    return False


def _within(stmt: Statement, core: Assign) -> bool:
    """Whether it is the assignment, with nothing but conditions around it."""
    return stmt is core or (isinstance(stmt, Guard) and len(stmt.body) == 1 and _within(stmt.body[0], core))


def _adapted(facts: StageFacts, condition: Value) -> Adapted:
    site = Site(facts.program, facts.original, facts.others)
    asked = {r.tensor for r in reads(condition)}
    if any(a.tensor in asked for a in assigns(site.top)):
        raise NoPlace("what the condition asks is written in the same loops")
    needed = condition_axes(condition)
    axes = [a for a in facts.original.axes if a.name in needed]
    sizes = set(facts.program.symbolic)
    boxed = all(a.lower == Const(0) and free_vars(a.upper) <= sizes for a in axes)
    if not (boxed and all(map(is_value, facts.original.guards))):
        raise NoPlace("the condition is not asked at all points of a box")
    name = site.fresh(f"{facts.original.assign.tensor}_mask")
    site.tensors[name] = Tensor(name, MASK, tuple(a.upper for a in axes) or (Const(1),), intermediate=True)
    loops = [Axis(site.fresh(f"q{d}"), a.lower, a.upper) for d, a in enumerate(axes)]
    inside = {a.name: Var(q.name) for a, q in zip(axes, loops, strict=True)}
    moved = substitute_condition(condition, inside)
    bit = Select(moved, Literal(1, MASK), Literal(0, MASK), MASK)
    at = tuple(Var(q.name) for q in loops) or (Const(0),)
    site.before.append(nest(loops, (Assign(name, at, "=", bit),)))
    element = Read(name, tuple(Var(a.name) for a in axes) or (Const(0),), MASK)
    core = replace(facts.original.assign)

    def visit(stmt: Statement) -> Statement:
        if isinstance(stmt, Assign):
            return core if stmt is facts.original.assign else stmt
        body = tuple(map(visit, stmt.body))
        if isinstance(stmt, Guard) and any(_within(s, core) for s in body):
            if len(body) > 1:
                raise NoPlace("another statement stands under the condition")
            inner = body[0]
            return inner if isinstance(inner, Guard) else Guard(Comparison("!=", element, Literal(0, MASK)), body)
        return replace(stmt, body=body)

    after = site.with_statement(visit(site.top))
    said = f"{name} holds a bit for {show_leaf(condition)} at each point, and nothing that this asks changes before"
    return adapted(facts.program, after, core, (f"mask {name}",), [lemma(said, "structure")])
