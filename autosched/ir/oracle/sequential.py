"""Units without anything to vectorise, run point by point: prefix sums, recurrences, in-place stencils.

Each node becomes a closure over numpy scalars, which is some twenty times faster than slabs of one element. The
arithmetic is that of `evaluate` and `numerics`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from autosched.errors import DataError, Location
from autosched.ir.dtypes import DTYPES
from autosched.ir.nodes import Assign, Axis
from autosched.ir.oracle.evaluate import DIRECT, arith, call
from autosched.ir.oracle.nests import LoopNest, Unit
from autosched.ir.oracle.numerics import cast, container, normalise
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
    Scalar,
    Select,
    Unary,
    Value,
)
from autosched.logic import Bool, Const, Int, affine, evaluate
from autosched.logic.expr import COMPARE

Env = dict[str, Any]
Code = Callable[[Env], Any]


class SequentialCompiler:
    """Turns units into closures over fixed arrays and run-time scalars."""

    def __init__(self, arrays: Mapping[str, Any], scalars: Mapping[str, Any]) -> None:
        self.arrays, self.scalars = arrays, scalars
        self.location: Location | None = None

    def unit(self, unit: Unit) -> Callable[[Env], None]:
        """A function that runs the unit with the axes in `env` fixed."""
        if isinstance(unit, LoopNest):
            self.location = unit.assign.location
            code = self.assign(unit.assign)
            for level in reversed(unit.levels):
                code = self.level(level, [code])
            return code
        return self.level(unit.level, [self.unit(u) for u in unit.body])

    def level(self, level: Axis | Condition, body: list[Callable[[Env], None]]) -> Callable[[Env], None]:
        """A loop or guard around `body`."""
        if not isinstance(level, Axis):
            test = self.condition(level)

            def guarded(env: Env) -> None:
                if test(env):
                    for part in body:
                        part(env)

            return guarded
        name, lower, upper = level.name, self.integer(level.lower), self.integer(level.upper)

        def loop(env: Env) -> None:
            for k in range(lower(env), upper(env)):
                env[name] = k
                for part in body:
                    part(env)

        return loop

    def assign(self, node: Assign) -> Callable[[Env], None]:
        array, spot, new = self.arrays[node.tensor], self.spot(node.tensor, node.index), self.value(node.value)
        if node.op == "=":

            def store(env: Env) -> None:
                array[spot(env)] = new(env)

            return store
        join = self.arith(node.op[:-1], node.value)

        def update(env: Env) -> None:
            at = spot(env)
            array[at] = join(array[at], new(env))

        return update

    def arith(self, op: str, typed: Value) -> Callable[[Any, Any], Any]:
        """The operation in the dtype of `typed`."""
        dtype = typed.dtype
        direct = DIRECT.get(op)
        if direct is None:
            return lambda a, b: arith(op, a, b, dtype)
        if container(dtype) == dtype.numpy and not (dtype.padding or dtype.sub_byte):
            return direct
        return lambda a, b: normalise(direct(a, b), dtype)

    def integer(self, node: Int) -> Callable[[Env], int]:
        if isinstance(node, Const):
            constant = node.value
            return lambda env: constant
        form = affine(node)
        if form is None:
            return lambda env: int(evaluate(node, env))
        terms, offset = list(form.coefficients.items()), form.constant
        if len(terms) == 1 and terms[0][1] == 1:
            name = terms[0][0]
            return lambda env: int(env[name]) + offset
        return lambda env: sum([c * env[n] for n, c in terms], offset)

    def spot(self, tensor: str, index: tuple[Index, ...]) -> Code:
        """The element's position, checked to be inside."""
        shape = self.arrays[tensor].shape
        parts = [self.integer(i) if isinstance(i, Int) else self.value(i) for i in index]
        location = self.location

        def outside(at: tuple[int, ...]) -> DataError:
            d = next(k for k, (i, n) in enumerate(zip(at, shape, strict=True)) if not 0 <= i < n)
            return DataError(
                f"dimension {d} of {tensor} has extent {shape[d]}; the program reaches index {at[d]}",
                hint="an index from data must stay inside: say by assume(...) which values its data have",
                location=location,
            )

        def position(env: Env) -> tuple[int, ...]:
            at = tuple([int(p(env)) for p in parts])
            for i, n in zip(at, shape, strict=True):
                if not 0 <= i < n:
                    raise outside(at)
            return at

        return position

    def condition(self, node: Condition) -> Code:
        if isinstance(node, Bool):
            return lambda env: bool(evaluate(node, env))
        return self.value(node)

    def value(self, node: Value) -> Code:
        match node:
            case Literal(number, dtype):
                constant = container(dtype)(number)
                return lambda env: constant
            case Scalar(name, _):
                given = self.scalars[name]
                return lambda env: given
            case Read(tensor, index, _):
                array, spot = self.arrays[tensor], self.spot(tensor, index)
                return lambda env: array[spot(env)]
            case FromIndex(index, dtype):
                whole = self.integer(index)
                return lambda env: cast(np.int64(whole(env)), DTYPES["s64"], dtype)[()]
            case Unary(op, operand, dtype):
                x = self.value(operand)
                flip: Callable[[Any], Any] = operator.neg if op == "-" else operator.invert
                return lambda env: normalise(flip(x(env)), dtype)
            case Arith(op, left, right, _):
                a, b, join = self.value(left), self.value(right), self.arith(op, node)
                return lambda env: join(a(env), b(env))
            case Comparison(op, left, right, _):
                a, b = self.value(left), self.value(right)
                compare: Callable[[Any, Any], Any] = COMPARE[op]
                return lambda env: bool(compare(a(env), b(env)))
            case Logical(op, parts, _):
                tests = [self.condition(p) for p in parts]
                if op == "not":
                    return lambda env: not tests[0](env)
                return (
                    (lambda env: all(t(env) for t in tests))
                    if op == "and"
                    else (lambda env: any(t(env) for t in tests))
                )
            case Select(condition, then, other, _):
                test, a, b = self.condition(condition), self.value(then), self.value(other)
                return lambda env: a(env) if test(env) else b(env)
            case Call(function, args, dtype):
                inner = [self.value(a) for a in args]
                return lambda env: np.asarray(call(function, [x(env) for x in inner], dtype, args[0].dtype))[()]
            case Cast(operand, dtype, saturating):
                x, source = self.value(operand), operand.dtype
                return lambda env: np.asarray(cast(x(env), source, dtype, saturating))[()]
