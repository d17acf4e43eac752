"""`Formula`: a function of one number in steps, for approximations that code evaluates in place of a library call.

The steps are values over run-time scalars: the argument, and the results of earlier steps. A value that is used more
than once is a step of its own, so printers and interpreters compute each value once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from autosched.ir.dtypes import DType
from autosched.ir.oracle.evaluate import Frame, value
from autosched.ir.value import Call, Cast, Literal, Scalar, Value, children, map_value, with_children


@dataclass(frozen=True)
class Formula:
    """`name` approximates `function` of `dtype` on all inputs, with an error of at most `ulp` times 2u of the result
    (u: the unit roundoff; 2u is at least a unit in the last place). `flushed`: subnormal results may be 0. `steps` are
    (name, value) in order, `result` the last value; both read `argument` and earlier steps as scalars. `requires`:
    features that a target needs. `texts` (printer to text): the body of a function of `{x}` within the same bound,
    which that printer prints in place of the steps. `argument_ulp`: its argument may be off beside, by so many times
    2^-23 of it, where numbers may be rounded anew."""

    name: str
    function: str
    dtype: DType
    argument: str
    steps: tuple[tuple[str, Value], ...]
    result: Value
    ulp: float
    flushed: bool = False
    requires: frozenset[str] = frozenset()
    texts: tuple[tuple[str, str], ...] = ()
    argument_ulp: float = 0.0

    @property
    def bound(self) -> str:
        """The error, in words: `within 2 ulp, and 0.625 of the argument`."""
        of_argument = f", and {self.argument_ulp:g} of the argument" if self.argument_ulp else ""
        return f"within {self.ulp:g} ulp{of_argument}"


Formulas = Mapping[tuple[str, str], Formula]
"""Formulas by the function and the dtype that they stand for: `("exp", "f32")`."""
NO_FORMULAS: Formulas = MappingProxyType({})


def in_steps(root: Value) -> tuple[tuple[tuple[str, Value], ...], Value]:
    """The steps and the result of a value whose locals were substituted (so that equal parts are one object)."""
    uses: Counter[int] = Counter()
    order: list[Value] = []

    def count(node: Value) -> None:
        uses[id(node)] += 1
        if uses[id(node)] == 1:
            for child in children(node):
                count(child)
            order.append(node)

    count(root)
    steps: list[tuple[str, Value]] = []
    rebuilt: dict[int, Value] = {}
    for node in order:
        new = with_children(node, [rebuilt[id(c)] for c in children(node)])
        if uses[id(node)] > 1 and not isinstance(new, Literal | Scalar):
            new = _name(steps, new)
        rebuilt[id(node)] = new
    return tuple(steps), rebuilt[id(root)]


def closed(formula: Formula, formulas: Formulas) -> Formula:
    """The formula with calls of functions replaced by the steps of the formulas that approximate them."""
    steps: list[tuple[str, Value]] = []
    requires = set(formula.requires)
    result = _spliced(formula, Scalar(formula.argument, formula.dtype), formulas, steps, requires)
    return replace(formula, steps=tuple(steps), result=result, requires=frozenset(requires))


def _spliced(
    formula: Formula, argument: Scalar, formulas: Formulas, steps: list[tuple[str, Value]], requires: set[str]
) -> Value:
    """Appends the formula's steps under new names, and its requirements; returns its result."""
    requires |= formula.requires
    known: dict[str, Scalar] = {formula.argument: argument}
    others = {key: f for key, f in formulas.items() if f.name != formula.name}

    def visit(v: Value) -> Value:
        if isinstance(v, Scalar):
            return known[v.name]
        own = others.get((v.function, v.dtype.name)) if isinstance(v, Call) else None
        if own is None or not isinstance(v, Call):
            return v
        return _spliced(own, _name(steps, v.args[0]), others, steps, requires)

    for old, step in formula.steps:
        known[old] = _name(steps, map_value(step, visit))
    return map_value(formula.result, visit)


def _name(steps: list[tuple[str, Value]], step: Value) -> Scalar:
    steps.append((f"t{len(steps)}", step))
    return Scalar(steps[-1][0], step.dtype)


def apply_formulas(root: Value, formulas: Formulas) -> Value:
    """`root` with calls of functions replaced by calls of the formulas that approximate them; f16 and bf16 go through
    f32."""

    def visit(node: Value) -> Value:
        if not isinstance(node, Call) or len(node.args) != 1:
            return node
        own = formulas.get((node.function, node.dtype.name))
        if own is not None:
            return Call(own.name, node.args, node.dtype)
        wide = formulas.get((node.function, "f32"))
        if wide is None or node.dtype.name not in ("f16", "bf16"):
            return node
        return Cast(Call(wide.name, (Cast(node.args[0], wide.dtype),), wide.dtype), node.dtype)

    return map_value(root, visit)


def applies(values: Iterable[Value], formulas: Formulas) -> bool:
    """Whether a formula approximates a call in any of these values."""
    return any(apply_formulas(v, formulas) != v for v in values)


def evaluate_formula(formula: Formula, x: Any) -> Any:
    """The formula of an array of container values."""
    known: dict[str, Any] = {formula.argument: x}
    for name, step in formula.steps:
        known[name] = value(step, Frame({}, known))
    return value(formula.result, Frame({}, known))
