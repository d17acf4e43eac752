"""What an assignment stores, as one value: `C[i] += e` stores `C[i] + e`, a guarded one what was there before."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

from autosched.codegen.tree.kernel import Assign, Lane
from autosched.ir.nodes import Stage
from autosched.ir.oracle.evaluate import Frame, value
from autosched.ir.value import Arith, Call, Condition, FromIndex, Read, Scalar, Select, Unary, Value, map_value, walk
from autosched.logic import TRUE, Bool, Int

COMBINE = {"+=": "+", "-=": "-", "*=": "*", "min=": "min", "max=": "max"}


def combine(op: str, old: Value, new: Value) -> Value:
    """The value that `old op new` leaves behind."""
    return new if op == "=" else Arith(COMBINE[op], old, new, new.dtype)


def accumulated(op: str, held: Value, term: Value, fused: bool) -> Value:
    """What `held op term` leaves in an accumulator; `fused`: a product becomes one instruction with its addition."""
    dtype = term.dtype
    if fused and op in ("+=", "-=") and dtype.name in ("f32", "f64") and isinstance(term, Arith) and term.op == "*":
        left = term.left if op == "+=" else Unary("-", term.left, dtype)
        return Call("fma", (left, term.right, held), dtype)
    if op in ("max=", "min="):
        # A NaN is looked for in the first of the two: in the new term, so that no accumulator waits for it.
        return combine(op, term, held)
    return combine(op, held, term)


def contracted_arguments(root: Value, functions: Collection[str]) -> Value:
    """The value with arguments of these functions contracted. Elsewhere a difference that is 0 where both numbers are
    rounded may be negative, below a square root, say."""

    def visit(node: Value) -> Value:
        if not isinstance(node, Call) or node.function not in functions:
            return node
        return replace(node, args=tuple(map(contracted, node.args)))

    return map_value(root, visit)


def contracted(root: Value) -> Value:
    """The value with products and the additions that take them as one instruction each, with one rounding."""

    def visit(node: Value) -> Value:
        if not isinstance(node, Arith) or node.op not in ("+", "-") or node.dtype.name not in ("f32", "f64"):
            return node
        left, right, dtype = node.left, node.right, node.dtype
        if isinstance(left, Arith) and left.op == "*":
            other = right if node.op == "+" else Unary("-", right, dtype)
            return Call("fma", (left.left, left.right, other), dtype)
        if isinstance(right, Arith) and right.op == "*":
            factor = right.left if node.op == "+" else Unary("-", right.left, dtype)
            return Call("fma", (factor, right.right, left), dtype)
        return node

    return map_value(root, visit)


def positive_factor(op: str, term: Value) -> tuple[Value, Value | None]:
    """The term of an extreme without a factor that is the same positive number for all of them, and that factor. A
    rounded product grows with its other factor: the extreme of products is the product of the extreme, bit by bit."""
    if op not in ("max=", "min=") or not (isinstance(term, Arith) and term.op == "*" and term.dtype.is_float):
        return term, None
    for other, factor in ((term.left, term.right), (term.right, term.left)):
        fixed = not any(isinstance(n, Read | FromIndex | Scalar | Select) for n in walk(factor))
        if fixed and 0.0 < float(value(factor, Frame({}, {}))) < math.inf:
            return other, factor
    return term, None


def updated(stage: Stage) -> Value:
    """The stage's stored value in program axes, data-dependent guards included (formulas over axes are not)."""
    old = Read(stage.assign.tensor, stage.assign.index, stage.assign.value.dtype)
    value = combine(stage.assign.op, old, stage.assign.value)
    return guarded(stage.guards, value, old)


def guarded(guards: tuple[Condition, ...], value: Value, old: Value) -> Value:
    """The value where all conditions on data hold, else the old one. The first is asked first: it may keep what another
    reads inside its tensor."""
    for guard in reversed(guards):
        if not isinstance(guard, Bool):
            value = Select(guard, value, old, value.dtype)
    return value


def left_by(stage: Stage) -> Value:
    """What a stage without a reduction leaves, in its own axes."""
    if stage.init is None:
        return updated(stage)
    return combine(stage.assign.op, stage.init, stage.assign.value)


def write(target: Read, value: Value, lane: Lane | None = None, valid: Bool = TRUE) -> Assign:
    """An assignment to what would be read as `target`."""
    return Assign(target.tensor, tuple(i for i in target.index if isinstance(i, Int)), value, lane, valid)


def chosen(valid: Bool, new: Value, held: Value) -> Value:
    return new if valid == TRUE else Select(valid, new, held, new.dtype)
