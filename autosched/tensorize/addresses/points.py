"""Symbolic points of a stage's iteration domain, over which z3 is asked about addresses; and what it answered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

from autosched.ir.nodes import Axis
from autosched.ir.program import Program
from autosched.ir.value import Condition, FromIndex, Index, Literal, Read, Value
from autosched.logic import Bool, Int, conjuncts, free_vars, to_z3
from autosched.logic.solver import z3
from autosched.tensorize.addresses.axes import value_axes
from autosched.tensorize.match_types import Obligation


@dataclass(frozen=True)
class Answer:
    """`holds` is None where the limit was met."""

    holds: bool | None
    obligation: Obligation
    model: Any = None


Ask: TypeAlias = Callable[[str, str, list[Any]], Answer]
"""`StageFacts.ask`: a part of the certificate, a statement, and the constraints whose contradiction proves it."""


class Points:
    """Symbolic points of a stage's iteration domain: one z3 variable an axis and a tag; sizes are shared."""

    def __init__(self, program: Program, axes: tuple[Axis, ...], tag: str, functions: dict[str, Any]) -> None:
        self.functions = functions
        self.env: dict[str, Any] = {s: z3.Int(s) for s in program.symbolic}
        self.env |= {a.name: z3.Int(f"{a.name}{tag}") for a in axes}
        self.sizes = [z3.And(lo <= self.env[s], self.env[s] <= hi) for s, (lo, hi) in program.symbolic.items()]
        self.domain = list(self.sizes)
        for a in axes:
            v = self.env[a.name]
            self.domain += [to_z3(a.lower, self.env) <= v, v < to_z3(a.upper, self.env)]

    def index(self, index: Index) -> Any:
        return to_z3(index, self.env) if isinstance(index, Int) else self.value(index)

    def condition(self, condition: Condition) -> Any:
        """A formula, or an unknown of what the data that it looks at are."""
        return to_z3(condition, self.env) if isinstance(condition, Bool) else self.value(condition)

    def value(self, value: Value) -> Any:
        """A data-dependent subscript: every operation and every array is an unknown function of its arguments, which is
        all that "the same inputs give the same address" needs."""
        match value:
            case Literal(number, _):
                return z3.IntVal(int(number))
            case FromIndex(index, _):
                return self._apply(f"index:{value.dtype}", [to_z3(index, self.env)])
            case Read(tensor, parts, _):
                return self._apply(f"read:{tensor}", [self.index(i) for i in parts])
        children = [
            getattr(value, f) for f in ("operand", "left", "right", "condition", "then", "other") if hasattr(value, f)
        ]
        children += [*getattr(value, "args", ()), *getattr(value, "parts", ())]
        label = f"{type(value).__name__}:{getattr(value, 'op', '')}{getattr(value, 'function', '')}:{value.dtype}"
        return self._apply(label, [self._child(c) for c in children])

    def _child(self, child: Condition | Value) -> Any:
        if isinstance(child, Bool):
            return z3.If(to_z3(child, self.env), z3.IntVal(1), z3.IntVal(0))
        return self.value(child)

    def _apply(self, label: str, args: list[Any]) -> Any:
        key = f"{label}/{len(args)}"
        if key not in self.functions:
            sorts = [z3.IntSort()] * (len(args) + 1)
            self.functions[key] = z3.Function(key, *sorts) if args else z3.Int(key)
        return self.functions[key](*args) if args else self.functions[key]


def taken_apart(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """The conditions with conjunctions over axes taken apart, each once."""
    parts: list[Condition] = []
    for c in conditions:
        parts += conjuncts(c) if isinstance(c, Bool) else [c]
    return tuple(dict.fromkeys(parts))


@lru_cache(maxsize=4096)
def condition_axes(condition: Condition) -> frozenset[str]:
    """The variables that a guard depends on."""
    if isinstance(condition, Bool):
        return free_vars(condition)
    return value_axes(condition)
