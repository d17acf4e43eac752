"""A function apart: what an instruction approximates within a longer expression becomes a stage of its own.

    C[i, j] = X[i, j] / S[i]                   U[i] = 1 / S[i]
                                               C[i, j] = X[i, j] * U[i]

    C[i] = B[i] * rsqrt(A[i] + e)              T[i] = A[i] + e; U[i] = rsqrt(T[i])
                                               C[i] = B[i] * U[i]

The instruction computes U. What such a function takes otherwise is worth the pass; for others it is not, so this is for
instructions that state a bound (level `real`, where a product with a reciprocal is a quotient).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from autosched.ir.nodes import Assign, Axis, Tensor
from autosched.ir.printer import print_value
from autosched.ir.value import (
    ROUNDING,
    Arith,
    Call,
    Cast,
    Read,
    Select,
    Value,
    children,
    is_plain,
    map_value,
    reads,
    substitute,
)
from autosched.ir.variables import value_vars
from autosched.logic import Const, Var
from autosched.tensorize.adapters.proposal import Adapted, NoPlace, Proposal, adapted, lemma
from autosched.tensorize.adapters.site import Site, nest
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.functions import argument_of
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.reduction.update import update_of_intrinsic

MOST = 4
"""Functions of one stage that are looked at."""


def apart(facts: StageFacts, intrinsic: Intrinsic) -> Sequence[Proposal]:
    """Each function of the stage's term that the instruction approximates, and that is not the whole of it."""
    facts = facts.as_assignment
    stage = facts.original
    own = stage.assign.op == "=" and not stage.guards and not stage.reduction and stage.init is None
    bounded = intrinsic.numerics.relative is not None and intrinsic.numerics.absolute is None
    if not bounded or intrinsic.accumulates or not own or facts.program.symbolic:
        return []
    function = update_of_intrinsic(intrinsic)
    if len(function.operands) != 1:
        return []
    found: dict[Value, Proposal] = {}
    for node in _steady(stage.assign.value):
        taken = argument_of(node, function.term, function.operands[0])
        whole = node == stage.assign.value and taken is not None and isinstance(taken[0], Read) and taken[1] is None
        if taken is not None and reads(taken[0]) and not whole and node.dtype == intrinsic.accumulator.dtype:
            key = "apart", node, function.term, intrinsic.accumulator.dtype
            found.setdefault(node, Proposal(key, partial(_apart, facts, function.term, node, *taken)))
    return list(found.values())[:MOST]


def _steady(value: Value) -> Iterator[Value]:
    """The nodes that a value follows without a jump: a little off, one of a condition, of what is rounded to an integer
    or of a subscript makes another number of it."""
    yield value
    match value:
        case Call(function) if function in ROUNDING:
            return
        case Cast(_, dtype) if not dtype.is_float:
            return
        case Select(_, then, other):
            inside: tuple[Value, ...] = (then, other)
        case _:
            inside = () if isinstance(value, Read) else children(value)
    for node in inside:
        yield from _steady(node)


def _apart(facts: StageFacts, function: Value, node: Value, argument: Value, times: Value | None) -> Adapted:
    site, stage = Site(facts.program, facts.original, facts.update), facts.original
    needed = value_vars(argument)
    axes = [a for a in stage.axes if a.name in needed]
    if any(a.lower != Const(0) or not isinstance(a.upper, Const) for a in axes) or not axes:
        raise NoPlace("the argument has no box of its own")
    shape = tuple(a.upper for a in axes)
    index = tuple(Var(a.name) for a in axes)

    def made(name: str, value: Value) -> tuple[Assign, Read]:
        """A statement that computes `value` for all of its points, in front; and its element here."""
        name = site.fresh(f"{stage.assign.tensor}_{name}")
        site.tensors[name] = Tensor(name, value.dtype, shape, intermediate=True)
        own = [Axis(site.fresh(f"{a.name}{len(site.before)}"), a.lower, a.upper) for a in axes]
        to = {a.name: Var(b.name) for a, b in zip(axes, own, strict=True)}
        assign = Assign(name, tuple(Var(a.name) for a in own), "=", substitute(value, to))
        site.before.append(nest(own, (assign,)))
        return assign, Read(name, index, value.dtype)

    element = argument if isinstance(argument, Read) and is_plain(argument.index) else made("argument", argument)[1]
    applied = map_value(function, lambda v: element if isinstance(v, Read) else v)
    core, result = made("function", applied)
    replaced: Value = result if times is None else Arith("*", times, result, node.dtype)
    assign = stage.assign
    value = map_value(assign.value, lambda v: replaced if v == node else v)
    after = site.with_assign(Assign(assign.tensor, assign.index, assign.op, value, assign.location))
    said = f"{print_value(node)} is {print_value(replaced)} over the reals"
    return adapted(facts.program, after, core, (f"apart {print_value(applied)}",), [lemma(said, "structure")])
