"""What an assignment stores, as one value: `C[i] += e` stores `C[i] + e`, a guarded one what was there before."""

from __future__ import annotations

from autosched.codegen.tree.kernel import Assign, Lane
from autosched.ir.nodes import Stage
from autosched.ir.value import Arith, Call, Condition, Read, Select, Unary, Value
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
