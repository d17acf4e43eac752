"""What no program could match, of an instruction in a file of one's own: refused when it is loaded, with the reason."""

from __future__ import annotations

from autosched.ir.dtypes import DTYPES
from autosched.ir.value import Literal, Read, Select, Value, blank, is_value, map_value, reads
from autosched.logic import Binary, Const, Expr, Int, Var
from autosched.logic.walk import children
from autosched.tensorize.body.equal import prove_equal
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.reduction.update import NotAnUpdate, update_of_intrinsic

TIMEOUT_MS = 500
"""Of one question; what is not decided by then is not refused."""


def unmatchable(intrinsic: Intrinsic) -> tuple[str, str | None] | None:
    """(message, hint) of what keeps every program from matching; None: nothing that is known."""
    if intrinsic.kind != "compute":
        return None
    if (fault := _no_update(intrinsic) or _groups(intrinsic)) is not None:
        return fault
    return _conditions(intrinsic.stage.assign.value) or _without_effect(intrinsic)


def _no_update(intrinsic: Intrinsic) -> tuple[str, str | None] | None:
    """A target that is read, and not added to. Where a text or a second description is given, `check` says more."""
    if intrinsic.emit or intrinsic.second is not None or intrinsic.stage.assign.op != "=":
        return None
    target = intrinsic.accumulator
    try:
        update_of_intrinsic(intrinsic)
    except NotAnUpdate as error:
        if any(r.tensor == target.name for r in intrinsic.stage.reads):
            return error.message, error.hint
    return None


def _groups(intrinsic: Intrinsic) -> tuple[str, str | None] | None:
    extents = {a.name: a.extent for a in intrinsic.stage.axes}
    for read in intrinsic.stage.reads:
        for part in read.index:
            for axis, size in _divisions(part) if isinstance(part, Int) else ():
                if extents[axis] % size and size < extents[axis]:
                    whole = extents[axis]
                    said = f"{read.tensor} has one element for {size} of {axis}, which do not divide its {whole}"
                    return said, f"give {axis} a multiple of {size}: the next issue would begin inside of a group"
    return None


def _divisions(part: Expr) -> list[tuple[str, int]]:
    match part:
        case Binary("//", Var(axis), Const(size)):
            return [(axis, size)]
    return [found for inner in children(part) for found in _divisions(inner)]


def _conditions(value: Value) -> tuple[str, str | None] | None:
    found: list[tuple[str, str | None]] = []

    def visit(v: Value) -> Value:
        if isinstance(v, Select) and is_value(v.condition) and not found:
            byte = DTYPES["u8"]
            chosen = Select(v.condition, Literal(1, byte), Literal(0, byte), byte)
            names = " and ".join(sorted({r.tensor for r in reads(v.condition)}))
            if names and _same(chosen, Literal(0, byte)):
                found.append((f"a condition on {names} never holds", f"say which elements of {names} take part"))
        return v

    map_value(value, visit)
    return found[0] if found else None


def _without_effect(intrinsic: Intrinsic) -> tuple[str, str | None] | None:
    """An operand whose elements may be anything."""
    value = intrinsic.stage.assign.value
    if not value.dtype.is_integer:
        return None
    for operand in intrinsic.inputs:
        zero = _with_zeros(value, operand.name)
        if operand.dtype.is_integer and zero != value and _same(value, zero):
            return f"the operand {operand.name!r} makes no difference", "leave it out"
    return None


def _with_zeros(value: Value, operand: str) -> Value:
    return map_value(value, lambda v: blank(v.dtype) if isinstance(v, Read) and v.tensor == operand else v)


def _same(a: Value, b: Value) -> bool:
    return prove_equal(a, b, TIMEOUT_MS).status == "proved"
