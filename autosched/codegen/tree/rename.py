"""Rewriting of program values into kernel values: axes become positions, elements become buffers' elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from autosched.ir.value import Condition, Index, Read, Value, map_value
from autosched.logic import Bool, Int
from autosched.logic.walk import substitute_bool, substitute_int


def place(
    value: Value,
    axes: Mapping[str, Int],
    on_read: Callable[[Read], Value] = lambda r: r,
) -> Value:
    """`value` with program axes replaced by expressions, and each read passed through `on_read` afterwards."""

    def visit(v: Value) -> Value:
        return on_read(v) if isinstance(v, Read) else v

    return map_value(value, visit, lambda i: substitute_int(i, axes), lambda b: substitute_bool(b, axes))


def place_index(index: tuple[Index, ...], axes: Mapping[str, Int]) -> tuple[Int, ...]:
    """An affine subscript tuple with program axes replaced. Data-dependent subscripts cannot be written to."""
    placed = []
    for part in index:
        if not isinstance(part, Int):
            raise NotLowerable("an element is addressed by data where a formula is needed")
        placed.append(substitute_int(part, axes))
    return tuple(placed)


def place_condition(condition: Condition, axes: Mapping[str, Int]) -> Condition:
    if isinstance(condition, Bool):
        return substitute_bool(condition, axes)
    return place(condition, axes)


class NotLowerable(Exception):
    """Something this part cannot express; plans are made so that it does not happen."""
