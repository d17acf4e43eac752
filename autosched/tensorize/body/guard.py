"""Choices in a body that are guards: `C += (A[…] if inside else 0) * B[…]` adds nothing where `inside` fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from autosched.ir.nodes import Stage
from autosched.ir.value import (
    Arith,
    Call,
    Cast,
    Literal,
    Logical,
    Select,
    Unary,
    Value,
    is_value,
    map_value,
    reads,
    walk,
)
from autosched.logic import Bool
from autosched.tensorize.body.counterexample import leaves
from autosched.tensorize.body.neutral import constant_of


def lift_guards(stage: Stage) -> tuple[Stage, frozenset[Value]]:
    """The stage with every choice between a value and zero taken out of what it adds, as guards:

        C[i] += s32(A[i, p] if p <= i else 0) * s32(B[p])    becomes    if p <= i: C[i] += s32(A[i, p]) * s32(B[p])

    A choice is taken out only where zero in its place makes the whole sum zero: leaving the step out is then the same
    as adding it, the sign of a zero aside, where the factors that meet the zero (second) are finite.
    """
    finite: set[Value] = set()
    if stage.assign.op not in ("+=", "-="):
        return stage, frozenset()
    guards = list(stage.guards)
    value = stage.assign.value
    for node in list(walk(value)):
        if not (isinstance(node, Select) and isinstance(node.other, Literal) and node.other.value == 0):
            continue
        without = _replaced(value, node, Literal(0, node.dtype))
        if is_zero_by_structure(without):
            kept = _replaced(value, node, node.then)
            if not reads(kept):
                continue  # `1 if A[i] != B[i] else 0`: the choice itself is what is added
            constant_of(without, finite)
            value = kept
            guards.append(node.condition)
    if len(guards) == len(stage.guards):
        return stage, frozenset()
    return replace(stage, guards=tuple(guards), assign=replace(stage.assign, value=value)), frozenset(finite)


def fold_guards(stage: Stage, masked: bool = False) -> Stage:
    """The stage with a choice in its term for those guards that read only elements which the term reads too:

        if A[i] > 0: C[i] += s32(A[i])    becomes    C[i] += s32(A[i]) if A[i] > 0 else 0

    An instruction may make that choice by itself. `masked`: of all guards on data, as an instruction with a mask does.
    """
    value = stage.assign.value
    if stage.assign.op not in ("+=", "-="):
        return stage
    elements = set(reads(value))
    own = [g for g in stage.guards if is_value(g) and reads(g) and (masked or set(leaves(g)) <= elements)]
    if not own:
        return stage
    chosen = own[0] if len(own) == 1 else Logical("and", tuple(own))
    folded = Select(chosen, value, Literal(0.0 if value.dtype.is_float else 0, value.dtype), value.dtype)
    kept = tuple(g for g in stage.guards if g not in own)
    return replace(stage, guards=kept, assign=replace(stage.assign, value=folded))


def settle_choices(stage: Stage, always: Callable[[Bool], bool]) -> Stage:
    """The stage without choices whose condition has one value at all its points; `always` proves a formula."""

    def settled(v: Value) -> Value:
        if isinstance(v, Select) and isinstance(v.condition, Bool):
            if always(v.condition):
                return v.then
            if always(~v.condition):
                return v.other
        return v

    value = map_value(stage.assign.value, settled)
    return stage if value == stage.assign.value else replace(stage, assign=replace(stage.assign, value=value))


def _replaced(term: Value, node: Value, by: Value) -> Value:
    return map_value(term, lambda v: by if v == node else v)


def is_zero_by_structure(value: Value) -> bool:
    """Whether `value` is zero by structure, whatever its (finite) inputs are."""
    match value:
        case Literal(number, _):
            return number == 0
        case Cast(operand, _, _) | Unary("-", operand, _) | Call("abs", (operand,), _):
            return is_zero_by_structure(operand)
        case Arith("+" | "-", left, right, _):
            return is_zero_by_structure(left) and is_zero_by_structure(right)
        case Arith("*", left, right, _):
            return is_zero_by_structure(left) or is_zero_by_structure(right)
    return False
