"""What z3 proves of a cascade, so that one pass with carried state computes what its stages do.

Of each member, with g its term, r the references' values so far, r' later ones, and f(r, r') the factor:

- `term`: g is the sum of its states' terms times their deferred factors, in each case of its choices
- `step`: f(r, r') g(r, c) = g(r', c), so a state relative to r becomes one relative to r'
- `sum`, `start`: f goes through the reduction, and leaves its start as it is
- `merge`: f(r', r'') f(r, r') = f(r, r''), so partial states of parts of the axis combine in any order
- `bounded`: f(r, r') <= 1 where r' comes after r, so nothing overflows that did not before

By induction along the axis, a state is its member's sum so far, relative to the references so far.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from autosched.ir.nodes import Assign, Assume, Tensor
from autosched.ir.oracle.interpreter import run
from autosched.ir.printer import print_value
from autosched.ir.program import Program
from autosched.ir.rewrites.algebra.cases import is_infinite
from autosched.ir.rewrites.algebra.sums import Leaf
from autosched.ir.rewrites.algebra.text import NoText, linear_in, times, value_of
from autosched.ir.rewrites.online.members import Cascade
from autosched.ir.rewrites.online.states import CarriedState, MemberStates, factor_of, replaced
from autosched.ir.rewrites.online.vanishing import refuse_lost_terms
from autosched.ir.rewrites.proof import Lemma, prove
from autosched.ir.rewrites.refusal import NotRewritten
from autosched.ir.value import (
    Arith,
    Comparison,
    FromIndex,
    Literal,
    Read,
    Scalar,
    Select,
    Unary,
    Value,
    map_value,
    reads,
    walk,
)
from autosched.logic import Const


@dataclass(frozen=True)
class Proofs:
    """The obligations of a cascade; what has to hold at run time besides (`conditions`); whether all factors are
    bounded by 1."""

    obligations: tuple[Lemma, ...]
    conditions: tuple[Value, ...]
    bounded: bool


def prove_all(program: Program, cascade: Cascade, members: tuple[MemberStates, ...], real: bool) -> Proofs:
    """Discharge every obligation. Raises NotRewritten for the first that fails, `unknown` where z3 does not decide."""
    done: list[Lemma] = []
    conditions: list[Value] = []
    bounded = True
    for carried in members:
        if not any(r.tensor in cascade.names for r in reads(carried.member.term)):
            continue
        _refuse_without_text(carried)
        extreme = carried.states[0].extreme
        if extreme is not None:
            done += [_required(o, carried) for o in _starts_anew(cascade, carried, extreme)]
            continue
        done += term_lemmas(carried, real)
        if carried.member.op != "+":
            obligation, condition = _extreme(program, carried, real)
            done.append(_required(obligation, carried))
            conditions += [] if condition is None else [condition]
        for state in carried.states:
            if not state.carried.terms:
                continue
            done += [_required(o, carried) for o in _factor(carried, state, real)]
            refuse_lost_terms(cascade, carried, state, real)
            found, condition = _bounded(program, cascade, carried, state, real)
            conditions += [] if condition is None or condition in conditions else [condition]
            if found.proved:
                done.append(found)
            else:
                _refuse_infinite_start(cascade, carried, state)
                bounded = False
    return Proofs(tuple(done), tuple(conditions), bounded)


def _refuse_without_text(carried: MemberStates) -> None:
    """A factor may have a number in it that the type does not hold."""
    dtype = carried.member.term.dtype
    try:
        for factor in (carried.scale, *(s.deferred for s in carried.states)):
            times(Scalar("x", dtype), factor, dtype)
            value_of(factor, dtype)
    except NoText as why:
        name = carried.member.stage.name
        raise NotRewritten("UNSUPPORTED", f"{name}: a factor has {why} in it", name) from None


def term_lemmas(carried: MemberStates, real: bool = False) -> list[Lemma]:
    """That a member's term is what its states make of it. Raises NotRewritten where z3 does not prove it."""
    found = [_required(o, carried) for o in _term(carried, real)]
    dtype = carried.member.term.dtype
    x, y = Scalar("x", dtype), Scalar("y", dtype)
    for state in carried.states:
        if carried.member.op == "+" and state.deferred.constant is None:
            whole = times(Arith("+", x, y, dtype), state.deferred, dtype)
            apart = Arith("+", times(x, state.deferred, dtype), times(y, state.deferred, dtype), dtype)
            found.append(_required(prove(_name(carried, "factor"), Comparison("==", whole, apart), real=real), carried))
    return found


def _required(obligation: Lemma, carried: MemberStates) -> Lemma:
    if obligation.proved:
        return obligation
    text = f"{obligation.name} is not proved: {obligation.claim}"
    raise NotRewritten("NOT_SEPARABLE", text, carried.member.stage.name, unknown=True)


def _name(carried: MemberStates, what: str) -> str:
    return f"{carried.member.stage.name}: {what}"


def _term(carried: MemberStates, real: bool) -> Iterator[Lemma]:
    """In each case that is not the reducer's identity: the term is what its states make of it."""
    dtype = carried.member.term.dtype
    of: dict[tuple[object, ...], tuple[Value, Value | None]] = {}
    for state in carried.states:
        for case, term in state.by_case:
            before = of.get(case.when, (case.value, None))[1]
            if carried.member.op == "+":
                part = times(term, state.deferred, dtype)
            else:
                part = times(term, carried.scale, dtype)
                if state.deferred.terms:
                    part = Arith("+", part, value_of(state.deferred, dtype), dtype)
            of[case.when] = (case.value, part if before is None else Arith("+", before, part, dtype))
    for value, total in of.values():
        assert total is not None
        if value != total:
            yield prove(_name(carried, "term"), Comparison("==", value, total), real=real)


def _extreme(program: Program, carried: MemberStates, real: bool) -> tuple[Lemma, Value | None]:
    """A positive factor and what is added go through a maximum."""
    dtype, op = carried.member.term.dtype, carried.member.op
    x, y = Scalar("x", dtype), Scalar("y", dtype)
    factor = value_of(carried.scale, dtype)
    added = value_of(carried.states[0].deferred, dtype)

    def moved(v: Value) -> Value:
        return Arith("+", Arith("*", factor, v, dtype), added, dtype)

    claim = Comparison("==", moved(Arith(op, x, y, dtype)), Arith(op, moved(x), moved(y), dtype))
    name = _name(carried, {"max": "maximum", "min": "minimum"}[op])
    found = prove(name, claim, known(program, [claim]), real)
    if found.proved:
        return found, None
    positive = Comparison(">", factor, Literal(0.0, dtype))
    return prove(name, claim, [*known(program, [claim]), positive], real), positive


def _factor(carried: MemberStates, state: CarriedState, real: bool) -> Iterator[Lemma]:
    dtype = carried.member.term.dtype
    here, later, last = ({r: _at(r, k) for r in state.references} for k in range(3))
    try:
        step = factor_of(state, here, later, dtype)
        again = factor_of(state, later, last, dtype)
        whole = factor_of(state, here, last, dtype)
    except NoText as why:
        raise NotRewritten("UNSUPPORTED", f"{carried.member.stage.name}: {why}", carried.member.stage.name) from None
    for _, term in state.by_case:
        moved = Arith("*", replaced(term, here), step, dtype)
        yield prove(_name(carried, "step"), Comparison("==", moved, replaced(term, later)), real=real)
    x, y, zero = Scalar("x", dtype), Scalar("y", dtype), Literal(0.0, dtype)
    total = Arith("*", Arith("+", x, y, dtype), step, dtype)
    apart = Arith("+", Arith("*", x, step, dtype), Arith("*", y, step, dtype), dtype)
    yield prove(_name(carried, "sum"), Comparison("==", total, apart), real=real)
    yield prove(_name(carried, "start"), Comparison("==", Arith("*", zero, step, dtype), zero), real=real)
    yield prove(_name(carried, "merge"), Comparison("==", Arith("*", step, again, dtype), whole), real=real)


def _starts_anew(cascade: Cascade, carried: MemberStates, extreme: Read) -> Iterator[Lemma]:
    """That starting anew where the extreme moves is a factor like others. Elements count that equal the extreme."""
    member, of = carried.member, cascade.member(extreme.tensor)
    assert isinstance(member.term, Select)
    dtype, kind = of.term.dtype, extreme.dtype
    now, later, last = (_at(extreme, k) for k in range(3))
    x, y, start = Scalar("x", dtype), Scalar("y", dtype), Scalar("start", dtype)
    zero: Value = Literal(0.0, dtype) if member.op == "+" else start
    beyond = ">=" if of.op == "max" else "<="
    element = Scalar("element", kind)

    def counts(at: Value) -> Value:
        return Select(Comparison("==", element, at), x, zero, dtype)

    def moved(value: Value, old: Value, new: Value) -> Value:
        return Select(Comparison("==", old, new), value, zero, dtype)

    given = [Comparison(beyond, now, element), Comparison(beyond, later, now), Comparison(beyond, last, later)]
    step = Comparison("==", moved(counts(now), now, later), counts(later))
    yield prove(_name(carried, "step"), step, given)
    whole = moved(Arith(member.op, x, y, dtype), now, later)
    apart = Arith(member.op, moved(x, now, later), moved(y, now, later), dtype)
    what = {"+": "sum", "max": "maximum", "min": "minimum"}[member.op]
    yield prove(_name(carried, what), Comparison("==", whole, apart))
    merge = Comparison("==", moved(moved(x, now, later), later, last), moved(x, now, last))
    yield prove(_name(carried, "merge"), merge, given)


def _bounded(
    program: Program, cascade: Cascade, carried: MemberStates, state: CarriedState, real: bool
) -> tuple[Lemma, Value | None]:
    dtype = carried.member.term.dtype
    here, later = ({r: _at(r, k) for r in state.references} for k in range(2))
    claim = Comparison("<=", factor_of(state, here, later, dtype), Literal(1.0, dtype))
    given: list[Value] = known(program, [claim])
    needed: Value | None = None
    for reference in state.references:
        op = cascade.member(reference.tensor).op
        if op != "+":
            given.append(Comparison(">=" if op == "max" else "<=", later[reference], here[reference]))
            beside = linear_in(state.carried, Leaf(reference)).scaled(Fraction(_sign(op)))
            if beside.constant is None:
                needed = Comparison(">=", value_of(beside, dtype), Literal(0.0, dtype))
    name = _name(carried, "bounded")
    found = prove(name, claim, given, real)
    if found.proved or needed is None:
        return found, None
    found = prove(name, claim, [*given, needed], real)
    return found, needed if found.proved else None


def _sign(op: str) -> int:
    return -1 if op == "max" else 1


def _at(reference: Read, step: int) -> Value:
    """The value of a reference: so far, later, last."""
    return Scalar(print_value(reference) + "'" * step, reference.dtype)


def known(program: Program, values: list[Value]) -> list[Value]:
    """The program's assumptions on elements and scalars that occur in values."""
    stated: dict[str, Assume] = {a.subject: a for a in program.lasting_assumptions if a.of_range}
    found: list[Value] = []
    for node in dict.fromkeys(v for value in values for v in walk(value)):
        name = node.tensor if isinstance(node, Read) else node.name if isinstance(node, Scalar) else None
        assumed = stated.get(name) if name is not None else None
        if assumed is not None and node.dtype.is_float:
            if assumed.low is not None:
                found.append(Comparison(">=", node, Literal(float(assumed.low), node.dtype)))
            if assumed.high is not None:
                found.append(Comparison("<=", node, Literal(float(assumed.high), node.dtype)))
    return found


def _refuse_infinite_start(cascade: Cascade, carried: MemberStates, state: CarriedState) -> None:
    """A factor that is not bounded has to leave the start of the reference, too: from an infinite one it is infinite,
    and that times the state's start, zero, is no number."""
    dtype = carried.member.term.dtype
    for reference in state.references:
        member = cascade.member(reference.tensor)
        start = plain_number(member.init)
        if is_infinite(start):
            here, later = ({r: _at(r, k) for r in state.references} for k in range(2))
            factor = factor_of(state, here, later, dtype)
            zero: Value = Literal(0.0, dtype)
            zeros = dict.fromkeys(state.references, zero)
            moved = Arith("*", zero, factor_of(state, zeros | {reference: start}, zeros, dtype), dtype)
            values = [value_at(_with(moved, sign)) for sign in (1, -1)]
            value = next((v for v in values if v != 0), 0.0)
            moves = f"{print_value(here[reference])} moves to {print_value(later[reference])}"
            text = (
                f"when {moves}, the sum so far is to be multiplied by {print_value(factor)}, which is not proved to be "
                f"at most 1: from {value_at(start):g}, where {member.name} starts, it is infinite, and infinite times "
                f"the sum's start 0 is no number"
            )
            shown = {"references": [{member.name: value_at(start)}, {member.name: 0.0}], "values": [0.0, value]}
            raise NotRewritten("NOT_DISTRIBUTIVE", text, carried.member.stage.name, None if value == 0 else shown)


def _with(value: Value, number: int) -> Value:
    """The value with a number for each scalar and element: of either sign if it is a float."""

    def visit(node: Value) -> Value:
        if isinstance(node, Read | Scalar | FromIndex):
            return Literal(float(number), node.dtype) if node.dtype.is_float else Literal(1, node.dtype)
        return node

    return map_value(value, visit)


def value_at(value: Value) -> float:
    """A value without elements, as the language computes it."""
    body = (Assign("y", (Const(0),), "=", value),)
    program = Program("number", "", {"y": Tensor("y", value.dtype, (Const(1),))}, {}, ("y",), {}, {}, body)
    with np.errstate(all="ignore"):
        return float(run(program, {})["y"][0])


def plain_number(value: Value) -> Value:
    """A literal whose sign stands before it, as one literal."""
    match value:
        case Unary("-", Literal(x, dtype), _):
            return Literal(-x, dtype)
    return value
