"""Scalar code over a fixed grid of points, compiled once into functions of arrays; addresses are looked up before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from autosched.ir.dtypes import DTYPES
from autosched.ir.oracle.evaluate import arith, call
from autosched.ir.oracle.numerics import cast, container, load, normalise
from autosched.ir.value import (
    Arith,
    Call,
    Cast,
    Comparison,
    Condition,
    FromIndex,
    Index,
    Literal,
    Logical,
    Read,
    Select,
    Unary,
    Value,
)
from autosched.logic import Bool, Int, evaluate
from autosched.logic.expr import COMPARE
from autosched.tensorize.numerics.rounding import flush

Flat: TypeAlias = "Mapping[str, npt.NDArray[Any]]"
"""Operand to its elements, shape (cases, elements in row-major order)."""
Formula: TypeAlias = Callable[[Flat], Any]
"""Container values that broadcast to (cases, points)."""


class Grid:
    """Points with fixed axis values: `axes` maps each axis to an int64 array over them; `shapes` the operands'."""

    def __init__(self, axes: Mapping[str, npt.NDArray[np.int64]], shapes: Mapping[str, tuple[int, ...]], flushed: bool):
        self.axes = dict(axes)
        self.shapes = shapes
        self.flushed = flushed

    def places(self, tensor: str, index: tuple[Index, ...]) -> npt.NDArray[np.int64]:
        """Row-major element numbers at the points."""
        shape = self.shapes[tensor]
        found = np.zeros((), np.int64)
        for part, extent in zip(index, shape, strict=True):
            assert isinstance(part, Int), f"{tensor}: an instruction's addresses are fixed"
            found = found * extent + np.asarray(evaluate(part, self.axes), np.int64)
        return found

    def formula(self, value: Value) -> Formula:
        """The value at every point; where subnormals are flushed, every float that is read or computed is."""
        found = self._formula(value)
        dtype = value.dtype
        if not self.flushed or not dtype.is_float or isinstance(value, Literal | Select):
            return found
        return lambda flat: flush(found(flat), dtype)

    def _formula(self, value: Value) -> Formula:
        match value:
            case Literal(number, dtype):
                constant = container(dtype)(number)
                return lambda flat: constant
            case Read(tensor, index, dtype):
                places = self.places(tensor, index)
                return lambda flat: load(flat[tensor][:, np.atleast_1d(places)], dtype)
            case FromIndex(index, dtype):
                known = cast(np.asarray(evaluate(index, self.axes), np.int64), DTYPES["s64"], dtype)
                return lambda flat: known
            case Unary(op, operand, dtype):
                inner = self.formula(operand)
                return lambda flat: normalise(-inner(flat) if op == "-" else ~inner(flat), dtype)
            case Arith(op, left, right, dtype):
                a, b = self.formula(left), self.formula(right)
                return lambda flat: arith(op, a(flat), b(flat), dtype)
            case Call(function, args, dtype):
                inners = [self.formula(a) for a in args]
                return lambda flat: call(function, [i(flat) for i in inners], dtype, args[0].dtype)
            case Cast(operand, dtype, saturate):
                inner, source = self.formula(operand), operand.dtype
                return lambda flat: cast(inner(flat), source, dtype, saturate)
            case Comparison(op, left, right, _):
                a, b = self.formula(left), self.formula(right)
                compare: Any = COMPARE[op]
                return lambda flat: compare(a(flat), b(flat))
            case Logical(op, parts, _):
                tests = [self._condition(p) for p in parts]
                if op == "not":
                    return lambda flat: np.logical_not(tests[0](flat))
                if op == "and":
                    return lambda flat: reduce(np.logical_and, [t(flat) for t in tests])
                return lambda flat: reduce(np.logical_or, [t(flat) for t in tests])
            case Select(condition, then, other):
                test, first, second = self._condition(condition), self.formula(then), self.formula(other)
                return lambda flat: np.where(test(flat), first(flat), second(flat))
            case _:
                raise AssertionError(f"{value} in the semantics of an instruction")

    def _condition(self, condition: Condition) -> Formula:
        if isinstance(condition, Bool):
            known = np.asarray(evaluate(condition, self.axes))
            return lambda flat: known
        return self.formula(condition)
