"""The variables, axes and symbolic sizes, that values, conditions and subscripts depend on."""

from __future__ import annotations

from collections.abc import Callable

from autosched.ir.value import Condition, FromIndex, Index, Logical, Read, Select, Value, walk
from autosched.logic import Bool, Int, free_vars

Of = Callable[[Int], frozenset[str]]
"""The variables of one subscript."""


def value_vars(value: Value, of: Of = free_vars) -> frozenset[str]:
    """Those of subscripts (those of data-dependent ones too), of conditions, and of axes that are used as numbers."""
    names: set[str] = set()
    for node in walk(value):
        match node:
            case FromIndex(index, _):
                names |= of(index)
            case Read(_, subscripts, _):
                for part in subscripts:
                    if isinstance(part, Int):
                        names |= of(part)
            case Logical(_, parts, _):
                for condition in parts:
                    if isinstance(condition, Bool):
                        names |= free_vars(condition)
            case Select(condition, _, _, _) if isinstance(condition, Bool):
                names |= free_vars(condition)
    return frozenset(names)


def condition_vars(condition: Condition | Value) -> frozenset[str]:
    """Those of a condition on axes or on data, or of a value."""
    return free_vars(condition) if isinstance(condition, Bool) else value_vars(condition)


def index_vars(index: tuple[Index, ...], of: Of = free_vars) -> frozenset[str]:
    """Those of an element's subscripts."""
    return frozenset().union(*(of(part) if isinstance(part, Int) else value_vars(part, of) for part in index))
