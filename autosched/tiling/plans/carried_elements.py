"""Stages each of whose elements is computed from the one before: `Y[i, j] = A[i, j] * Y[i, j - 1] + X[i, j]`."""

from __future__ import annotations

from autosched.ir.nodes import Stage
from autosched.ir.value import Logical, Read, Select, Value, children, is_plain, substitute
from autosched.logic import Const, Var


def element_before(stage: Stage, axis: str) -> Read | None:
    """The element that the stage wrote in the iteration before of its loop `axis`, where it reads that one, and no
    other of its tensor. Where it may not read it (`Y[i, j - 1] if j > 0 else h[i]`) the loop has to run."""
    assign = stage.assign
    if assign.op != "=" or stage.init is not None or stage.guards or stage.reduction or not is_plain(assign.index):
        return None
    if Var(axis) not in assign.index or assign.value.dtype.small_float:
        return None
    before = substitute(stage.target, {axis: Var(axis) - 1})
    own = {r for r in stage.reads if r.tensor == assign.tensor}
    if not isinstance(before, Read) or own != {before}:
        return None
    length = next(a.upper - a.lower for a in stage.axes if a.name == axis)
    runs = isinstance(length, Const) and length.value > 0
    return before if runs or not begins_apart(stage, before) else None


def begins_apart(stage: Stage, before: Read) -> bool:
    """Whether the first element may not read the one before it, which need not exist then."""
    return before not in _always_read(stage.assign.value)


def _always_read(value: Value) -> set[Read]:
    match value:
        case Read():
            return {value}
        case Select() | Logical():
            return set()
    return {r for c in children(value) for r in _always_read(c)}
