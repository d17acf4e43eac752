"""Operands that say which elements take part: masks (`if p[i] != 0: …`) and lengths (`if s32(i) < vl[0]: …`).

Where what they hold is known (a mask that is all true, the whole length), the conditions are decided, and the
instruction is the one without them. A mask that holds elements of the program is a choice of what is added:

    if p[i] != 0: c[i] += a[i] * b[i]        c[i] += a[i] * b[i] if p[i] != 0 else 0
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from autosched.ir.dtypes import DType
from autosched.ir.oracle import numerics
from autosched.ir.stages import conjuncts_of
from autosched.ir.value import (
    Comparison,
    FromIndex,
    Literal,
    Logical,
    Read,
    Select,
    Value,
    is_value,
    map_value,
    walk,
)
from autosched.logic import interval
from autosched.logic.expr import COMPARE
from autosched.tensorize.reduction.update import Update

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def governing(update: Update) -> dict[str, bool]:
    """The operands of an instruction's conditions, each with whether it is compared with an axis."""
    found: dict[str, bool] = {}
    for guard in update.guards:
        for part in filter(is_value, conjuncts_of(guard)):
            counts = any(isinstance(v, FromIndex) for v in walk(part))
            found |= {v.tensor: counts or found.get(v.tensor, False) for v in walk(part) if isinstance(v, Read)}
    return found


def as_held(update: Update, held: Mapping[str, Literal]) -> Update:
    """An instruction whose operands `held` hold a number in all elements: without the conditions that this decides."""
    ranges = {a.name: (0, a.extent - 1) for a in update.axes}
    guards = [part for g in update.guards for part in conjuncts_of(g)]
    return replace(update, guards=tuple(g for g in guards if not (is_value(g) and decided(g, held, ranges))))


def decided(test: Value, held: Mapping[str, Literal], ranges: Mapping[str, tuple[int, int]]) -> bool:
    """Whether a condition holds at all points of axes in these inclusive ranges, where operands hold these numbers."""
    return _always(map_value(test, lambda v: held.get(v.tensor, v) if isinstance(v, Read) else v), ranges)


def holding(update: Update, wanted: Mapping[str, DType], numbers: Mapping[Read, Literal]) -> dict[str, Read]:
    """Elements for as many of the `wanted` operands as there are, each of its type, which decide its conditions."""
    found: dict[str, Read] = {}
    for operand, dtype in wanted.items():
        for read, number in numbers.items():
            known = {o: numbers[r] for o, r in found.items()} | {operand: number}
            if read.dtype == dtype and operand not in governing(as_held(update, known)):
                found[operand] = read
                break
    return found


def as_choice(update: Update) -> Update:
    """An instruction that adds up, with its conditions as a choice between what is added and zero, where they read
    operands alone."""
    counts = any(isinstance(v, FromIndex) for g in update.guards if is_value(g) for v in walk(g))
    own = tuple(g for g in update.guards if is_value(g))
    if not own or update.combine != "+" or counts or len(own) < len(update.guards):
        return update
    return replace(update, guards=(), term=chosen(own, update.term))


def chosen(guards: tuple[Value, ...], term: Value) -> Value:
    """The term where all of the guards hold, else zero."""
    test = guards[0] if len(guards) == 1 else Logical("and", tuple(guards))
    return Select(test, term, Literal(0.0 if term.dtype.is_float else 0, term.dtype), term.dtype)


def _always(test: Value, ranges: Mapping[str, tuple[int, int]]) -> bool:
    """Whether a comparison of numbers and axes holds at all points."""
    match test:
        case Comparison(op, Literal(a), Literal(b)):
            return bool(COMPARE[op](a, b))
        case Comparison(op, Literal(), FromIndex()) if op in _TURNED:
            return _always(Comparison(_TURNED[op], test.right, test.left), ranges)
        case Comparison(op, FromIndex(index, dtype), Literal(number)) if op in _TURNED:
            low, high = interval(index, ranges)
            inside = numerics.wrap_int(low, dtype) == low and numerics.wrap_int(high, dtype) == high
            return inside and bool(COMPARE[op](low, number)) and bool(COMPARE[op](high, number))
    return False
