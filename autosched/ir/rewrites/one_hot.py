"""`one-hot`: a sum over all numbers of which data say one has one term, which is read at that number.

    for p in range(k):                                           if 0 <= I[i] and I[i] < k:
        O[i, j] += (1.0 if I[i] == s32(p) else 0.0) * W[p, j]        O[i, j] += W[I[i], j]

A condition `x == p + r` of a guard or of a choice, where x does not move with p, holds for one number of the loop at
most: z3 proves it of all x of the type. Elsewhere the term must add nothing. Values are the same, bit by bit; a product
with the zero of a choice asks the other factor to be finite.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import isfinite

from autosched.ir.dtypes import DType
from autosched.ir.nodes import Assign, Axis, Guard, Loop, Stage, Statement
from autosched.ir.prepared import assigns
from autosched.ir.printer import print_value
from autosched.ir.program import Program
from autosched.ir.rewrites.algebra.cases import is_infinite
from autosched.ir.rewrites.refusal import NotRewritten
from autosched.ir.rewrites.single_number import ChosenNumber, at_number, conditions_on, proved_single
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.ir.stages import conjuncts_of
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
    Unary,
    Value,
    is_value,
    map_value,
    reads,
)
from autosched.ir.variables import condition_vars, index_vars
from autosched.logic import Bool, free_vars

NAME = "one-hot"
COMBINED = {"+=": "+", "-=": "-", "max=": "max", "min=": "min"}


def one_hot(program: Program) -> Iterator[RewriteVerdict]:
    """Every sum over numbers of which data say one, each on its own; and those that are refused."""
    for stage in program.stages:
        if stage.assign.op not in COMBINED:
            continue
        for axis in stage.reduction:
            found = [_tried(program, stage, axis, c) for c in conditions_on(stage, axis)]
            proved = [v for v in found if v.reason is None]
            yield from proved[:1] or found[:1]


def _tried(program: Program, stage: Stage, axis: Axis, condition: Comparison) -> RewriteVerdict:
    verdict = RewriteVerdict(NAME, axis.name, (stage.name,))
    try:
        number = proved_single(program, stage, axis, condition)
        if not _alone(program, stage, axis):
            raise NotRewritten("DEPENDS", f"the loop over {axis.name} holds something else, too", stage.name)
        if {r.tensor for r in reads(number.value)} & {a.tensor for s in program.body for a in _beside(s, stage)}:
            raise NotRewritten("DEPENDS", f"the loops around {stage.name} write what chooses", stage.name)
        moved = _order_changes(stage, axis, condition)
        finite = _nothing_elsewhere(stage, condition)
        after = _rewritten(program, stage, axis, condition, number)
    except NotRewritten as why:
        return replace(verdict, reason=why)
    tensors = tuple(sorted({r.tensor for f in finite for r in reads(f)}))
    said = [f"elsewhere the term adds nothing, and the loop over {axis.name} holds nothing else"]
    level = "bitwise"
    if moved and stage.assign.value.dtype.is_float:
        level = "reassociated"
        said.append(f"the loops over {', '.join(moved)} add to one element in another order")
    if stage.assign.value.dtype.is_float and condition not in _guards(stage) and stage.assign.op in ("+=", "-="):
        if tensors:
            level = "reassociated"
            said.append(f"elements of {', '.join(tensors)} meet a zero: they are taken to be finite")
        elif not (isinstance(stage.init, Literal) and str(stage.init.value) == "0.0"):
            level = "reassociated"
            said.append("the sign of a zero may differ: zeros are added to what the sum starts from")
    return replace(
        verdict, numerics=level, obligations=number.lemmas, because=tuple(said), finite=tensors, after=after
    )


def _guards(stage: Stage) -> tuple[Condition, ...]:
    return tuple(c for g in stage.guards for c in conjuncts_of(g))


def _alone(program: Program, stage: Stage, axis: Axis) -> bool:
    """Whether nothing else is in the loop, and no loop in it has bounds that depend on it."""
    inside = stage.axes[[a.name for a in stage.axes].index(axis.name) + 1 :]
    bounded = any(axis.name in free_vars(b) for a in inside for b in (a.lower, a.upper))
    others = any(s is not stage and axis.name in {a.name for a in s.axes} for s in program.stages)
    started = stage.init is not None and axis.name in {a.name for a in stage.spatial}
    return not (bounded or others or started)


def _order_changes(stage: Stage, axis: Axis, condition: Comparison) -> tuple[str, ...]:
    """The loops inside of the axis's whose iterations may add to one element in another order than before: which number
    is meant changes with them, so they ran once for each number, and run once now. NotRewritten where the order matters
    to more than rounding, since the sum itself is read."""
    assign = stage.assign
    parts = (assign.value, *stage.guards, *assign.index)
    if assign.tensor in {r.tensor for part in parts if is_value(part) for r in reads(part)}:
        raise NotRewritten("DEPENDS", f"{assign.tensor} is read where it is added to", stage.name)
    inside = stage.axes[[a.name for a in stage.axes].index(axis.name) + 1 :]
    apart = {str(part) for part in assign.index}
    said = condition_vars(condition)
    return tuple(a.name for a in inside if a.name in said and a.name not in apart)


def _beside(stmt: Statement, stage: Stage) -> list[Assign]:
    """What is written by the top-level statement that holds a stage."""
    found = assigns(stmt)
    return list(found) if any(a is stage.assign for a in found) else []


# -- elsewhere --------------------------------------------------------------------------------------------------------


def _nothing_elsewhere(stage: Stage, condition: Comparison) -> tuple[Value, ...]:
    """The factors that must be finite for the term to add nothing where the condition fails; NotRewritten where it adds
    something."""
    if condition in _guards(stage):
        return ()
    value = _where(stage.assign.value, condition, False)
    if stage.assign.op in ("max=", "min="):
        if isinstance(value, Literal) and _extreme(value, stage.assign.op == "max="):
            return ()
    elif (factors := _zero(value)) is not None:
        return tuple(f for f in factors if any(r.dtype.is_float and not r.dtype.finite for r in reads(f)))
    shown = str(value.value) if isinstance(value, Literal) else print_value(value)
    where = f"where {print_value(condition)} fails the term is {shown}"
    if isinstance(value, Literal):
        raise NotRewritten("NOT_NEUTRAL", where, stage.name, {"elsewhere": value.value})
    raise NotRewritten("NOT_NEUTRAL", f"{where}, which is not known to add nothing", stage.name, unknown=True)


def _extreme(value: Literal, least: bool) -> bool:
    if value.dtype.is_float:
        return is_infinite(value) and (value.value < 0) == least
    return value.value == value.dtype.limits[0 if least else 1]


def _zero(value: Value) -> tuple[Value, ...] | None:
    """The factors that meet a zero, where a value is zero for finite ones of them; None where it is no such zero."""
    match value:
        case Literal(number, _):
            return () if number == 0 else None
        case Cast(operand, dtype, _):
            return None if dtype.scale else _zero(operand)
        case Unary("-", operand, _):
            return _zero(operand)
        case Arith("*", left, right, _):
            for side, other in ((left, right), (right, left)):
                if (found := _zero(side)) is not None and (not value.dtype.is_float or _element(other)):
                    return (*found, other)
        case Arith("+" | "-", left, right, _):
            a, b = _zero(left), _zero(right)
            return None if a is None or b is None else (*a, *b)
        case Select(_, then, other, _):
            a, b = _zero(then), _zero(other)
            return None if a is None or b is None else (*a, *b)
    return None


def _element(value: Value) -> bool:
    """Whether a value is finite where its element is: no conversion in it overflows."""
    match value:
        case Read():
            return True
        case Literal(number, _):
            return isfinite(number)
        case Cast(operand, dtype, _):
            return _holds_all(dtype, operand.dtype) and _element(operand)
        case Unary("-", operand, _) | Call("abs", (operand,), _):
            return _element(operand)
    return False


def _holds_all(wide: DType, narrow: DType) -> bool:
    """Whether every finite number of a type becomes one of the other."""
    if not wide.is_float:
        return True
    least, most = narrow.limits if narrow.is_integer else (-narrow.greatest, narrow.greatest)
    return wide.finite or (-wide.greatest <= least and most <= wide.greatest)


def _where(value: Value, condition: Comparison, holds: bool) -> Value:
    """The value where the condition holds, or fails."""

    def visit(node: Value) -> Value:
        if not isinstance(node, Select) or not is_value(node.condition):
            return node
        if node.condition == replace(condition, op="!="):
            return node.other if holds else node.then
        parts = conjuncts_of(node.condition)
        if condition not in parts:
            return node
        if not holds:
            return node.other
        left = tuple(p for p in parts if p != condition)
        return replace(node, condition=_all(left)) if left else node.then

    return map_value(value, visit)


def _all(parts: tuple[Condition, ...]) -> Condition:
    return parts[0] if len(parts) == 1 else Logical("and", parts)


# -- the program after it ---------------------------------------------------------------------------------------------


def _rewritten(
    program: Program, stage: Stage, axis: Axis, condition: Comparison, number: ChosenNumber
) -> Program:
    """The program with the term of that number in place of the loop."""
    value = without_one(at_number(_where(stage.assign.value, condition, True), axis.name, number))
    inside = {a.name for a in stage.axes[[a.name for a in stage.axes].index(axis.name) :]}
    own = [g for g in _own_guards(program.body, stage.assign, axis.name) if g != condition]
    guards = [at_number(g, axis.name, number) if is_value(g) else g for g in own]
    if any(isinstance(g, Bool) and axis.name in free_vars(g) for g in guards):
        raise NotRewritten("UNSUPPORTED", f"a bound of {axis.name} is a condition on axes", stage.name)
    conditions = (*number.inside, *guards)
    core = replace(stage.assign, value=value)
    whole = inside == {axis.name} and not index_vars(stage.assign.index) & inside

    def visit(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        found: list[Statement] = []
        for stmt in body:
            if isinstance(stmt, Assign) or not any(a is stage.assign for a in assigns(stmt)):
                found.append(stmt)
            elif not (isinstance(stmt, Loop) and stmt.axis.name == axis.name):
                found.append(replace(stmt, body=visit(stmt.body)))
            elif whole and found and _begins(found[-1], stage):
                found.append(_begun(stage, found.pop(), core, conditions))
            else:
                found += _inner(stmt.body, stage.assign, core, conditions)
        return tuple(found)

    return replace(program, body=visit(program.body), source="")


def _own_guards(body: tuple[Statement, ...], assign: Assign, loop: str, inside: bool = False) -> list[Condition]:
    """The conditions around an assignment that stand inside of a loop."""
    for stmt in body:
        if isinstance(stmt, Loop) and any(a is assign for a in assigns(stmt)):
            return _own_guards(stmt.body, assign, loop, inside or stmt.axis.name == loop)
        if isinstance(stmt, Guard) and any(a is assign for a in assigns(stmt)):
            mine = conjuncts_of(stmt.condition) if inside else ()
            return [*mine, *_own_guards(stmt.body, assign, loop, inside)]
    return []


def _inner(
    body: tuple[Statement, ...], old: Assign, core: Assign, conditions: tuple[Condition, ...]
) -> tuple[Statement, ...]:
    """The statements of the loop without its conditions, which stand around the assignment: an address may lie outside
    where the first of them fails."""
    (stmt,) = body
    match stmt:
        case Loop(axis, inner):
            return (Loop(axis, _inner(inner, old, core, conditions)),)
        case Guard(_, inner):
            return _inner(inner, old, core, conditions)
    found: Statement = core
    for condition in reversed(conditions):
        found = Guard(condition, (found,))
    return (found,)


def _begins(before: Statement, stage: Stage) -> bool:
    return (
        stage.init is not None
        and isinstance(before, Assign)
        and (before.tensor, before.index, before.op, before.value)
        == (stage.assign.tensor, stage.assign.index, "=", stage.init)
    )


def _begun(stage: Stage, begin: Statement, core: Assign, conditions: tuple[Condition, ...]) -> Assign:
    """Start and term as one assignment."""
    assert isinstance(begin, Assign)
    start, op = begin.value, COMBINED[core.op]
    nothing = isinstance(start, Literal) and start.value == 0 and not start.dtype.is_float and op == "+"
    value: Value = core.value if nothing else Arith(op, start, core.value, start.dtype)
    if conditions:
        value = Select(_all(conditions), value, start, value.dtype)
    return replace(begin, value=value, location=stage.assign.location)


def without_one(value: Value) -> Value:
    """The value without products with one."""

    def visit(node: Value) -> Value:
        if isinstance(node, Arith) and node.op == "*":
            for side, other in ((node.left, node.right), (node.right, node.left)):
                if _one(side):
                    return other
        return node

    return map_value(value, visit)


def _one(value: Value) -> bool:
    while isinstance(value, Cast):
        value = value.operand
    return isinstance(value, Literal) and value.value == 1
