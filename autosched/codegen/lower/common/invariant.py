"""Parts of a value that do not change along the inner loops: computed once before them, into registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from autosched.ir.value import (
    Comparison,
    FromIndex,
    Literal,
    Logical,
    Read,
    Scalar,
    Select,
    Value,
    children,
    is_value,
    with_children,
)
from autosched.ir.variables import value_vars


@dataclass(frozen=True)
class Split:
    """A value and its unchanging parts."""

    parts: tuple[Value, ...]
    value: Value

    def with_parts(self, reads: tuple[Value, ...]) -> Value:
        """The value with `reads[n]` in place of part n."""
        return _replaced(self.value, dict(zip(self.parts, reads, strict=True)))


def split_invariant(value: Value, inner: frozenset[str], written: str) -> Split:
    """The largest parts that read memory or compute, but depend on no variable of `inner` and not on the tensor
    `written`. What stands on one side of a choice stays there: its addresses may lie outside otherwise."""
    return split(value, lambda v: _unchanging(v, inner, written))


def split(value: Value, fits: Callable[[Value], bool]) -> Split:
    """The largest parts that fit, of those that are evaluated whenever the value is; no literals and scalars."""
    parts = dict.fromkeys(p for p in _parts(value, fits) if not isinstance(p, Literal | Scalar))
    return Split(tuple(parts), value)


def _parts(value: Value, fits: Callable[[Value], bool]) -> Iterator[Value]:
    if fits(value):
        yield value
        return
    for child in _always(value):
        yield from _parts(child, fits)


def _unchanging(value: Value, inner: frozenset[str], written: str) -> bool:
    if isinstance(value, Comparison | Logical | Select):
        return False
    if isinstance(value, Read) and (value.tensor == written or value_vars(value) & inner):
        return False
    if isinstance(value, FromIndex) and value_vars(value) & inner:
        return False
    if isinstance(value, Read) and any(is_value(i) for i in value.index):
        return False
    return all(_unchanging(c, inner, written) for c in _always(value))


def _always(value: Value) -> tuple[Value, ...]:
    """Operands that are evaluated whenever the value is."""
    return () if isinstance(value, Read | Logical | Select) else children(value)


def _replaced(value: Value, by: dict[Value, Value]) -> Value:
    """`value` with some parts replaced, outermost first."""
    if value in by:
        return by[value]
    parts = [_replaced(part, by) for part in _always(value)]
    return with_children(value, parts) if parts else value
