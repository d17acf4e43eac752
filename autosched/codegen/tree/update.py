"""What an assignment stores, as one value: `C[i] += e` stores `C[i] + e`, a guarded one what was there before."""

from __future__ import annotations

from autosched.ir.nodes import Stage
from autosched.ir.value import Arith, Call, Condition, Read, Select, Unary, Value
from autosched.logic import Bool

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
