"""Value and index expressions compiled once into closures that evaluate all lanes together.

The scalar rules (wrapping, rounding, saturation) are the language interpreter's own; what is added here is the lane
mask: a `Select` evaluates each side only for the lanes that choose it, so an address outside may stand in the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt

from autosched.codegen.interpret.storage import Storage
from autosched.codegen.interpret.subscripts import WIDTH, Env, Evaluator, Mask, compile_bool, compile_int, compile_place
from autosched.codegen.tree.kernel import Assign, Lane
from autosched.ir.dtypes import DTYPES
from autosched.ir.formula import Formula, evaluate_formula
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
    Scalar,
    Select,
    Unary,
    Value,
)
from autosched.logic import Bool, Int
from autosched.logic.expr import COMPARE

_S64 = DTYPES["s64"]

def compile_value(
    value: Value,
    storages: Mapping[str, Storage],
    scalars: Mapping[str, Any],
    formulas: Mapping[str, Formula] = {},
    lane: Lane | None = None,
) -> Evaluator:
    """`value` as a function of variables and mask; its answers are container values (`ir.oracle.numerics`) that
    broadcast.

    Entries of masked-off lanes mean nothing. `scalars` are container values; `formulas` are functions that values call
    by name.
    """
    return _Compiler(storages, scalars, formulas, lane).value(value)


def compile_kept(
    stmt: Assign, storages: Mapping[str, Storage], scalars: Mapping[str, Any], formulas: Mapping[str, Formula]
) -> Evaluator | None:
    """Where an assignment `x = v if c else x` takes another value, as a function of variables and mask; None for one of
    another kind."""
    own, value, taken = (stmt.buffer, stmt.index), stmt.value, list[Condition]()
    while isinstance(value, Select) and isinstance(kept := value.other, Read) and (kept.tensor, kept.index) == own:
        taken.append(value.condition)
        value = value.then
    if not taken:
        return None
    compiler = _Compiler(storages, scalars, formulas, stmt.lane)
    if len(taken) == 1:
        return compiler.condition(taken[0])
    return compiler.all_of([compiler.condition(c) for c in taken])


def _lanes(truth: Any, env: Env) -> npt.NDArray[np.bool_]:
    return np.broadcast_to(np.asarray(truth, dtype=np.bool_), (env[WIDTH],))


class _Compiler:
    def __init__(
        self,
        storages: Mapping[str, Storage],
        scalars: Mapping[str, Any],
        formulas: Mapping[str, Formula],
        lane: Lane | None,
    ) -> None:
        self.storages = storages
        self.scalars = scalars
        self.formulas = formulas
        self.lane = lane

    def value(self, value: Value) -> Evaluator:
        match value:
            case Literal(number, dtype):
                constant = container(dtype)(number)
                return lambda env, mask: constant
            case Scalar(name, _):
                given = self.scalars[name]
                return lambda env, mask: given
            case Read():
                return self._read(value)
            case FromIndex(index, dtype):
                place = compile_int(index)
                return lambda env, mask: cast(np.asarray(place(env), np.int64), _S64, dtype)
            case Unary(op, operand, dtype):
                inner = self.value(operand)
                if op == "-":
                    return lambda env, mask: normalise(-inner(env, mask), dtype)
                return lambda env, mask: normalise(~inner(env, mask), dtype)
            case Arith(op, left, right, dtype):
                a, b = self.value(left), self.value(right)
                return lambda env, mask: arith(op, a(env, mask), b(env, mask), dtype)
            case Comparison(op, left, right, _):
                a, b = self.value(left), self.value(right)
                compare: Any = COMPARE[op]
                return lambda env, mask: compare(a(env, mask), b(env, mask))
            case Logical(op, parts, _):
                return self._logical(op, [self.condition(p) for p in parts])
            case Select():
                return self._select(value)
            case Call(function, (argument,), dtype) if function in self.formulas:
                formula, at = self.formulas[function], self.value(argument)
                return lambda env, mask: evaluate_formula(formula, at(env, mask))
            case Call(function, args, dtype):
                inners = [self.value(a) for a in args]
                return lambda env, mask: call(function, [i(env, mask) for i in inners], dtype, args[0].dtype)
            case Cast(operand, dtype, saturate):
                inner, source = self.value(operand), operand.dtype
                return lambda env, mask: cast(inner(env, mask), source, dtype, saturate)
            case _:
                assert_never(value)

    def condition(self, condition: Condition) -> Evaluator:
        if isinstance(condition, Bool):
            formula = compile_bool(condition)
            return lambda env, mask: formula(env)
        return self.value(condition)

    def all_of(self, parts: list[Evaluator]) -> Evaluator:
        return self._logical("and", parts)

    def _index(self, index: Index) -> Evaluator:
        if isinstance(index, Int):
            number = compile_int(index)
            return lambda env, mask: number(env)
        inner = self.value(index)
        return lambda env, mask: np.asarray(inner(env, mask)).astype(np.int64)

    def _read(self, read: Read) -> Evaluator:
        storage, dtype = self.storages[read.tensor], read.dtype
        same = dtype.name != "b1" and storage.data.dtype == container(dtype)
        place = self._place(read, storage)

        def run(env: Env, mask: Mask) -> Any:
            stored = storage.load(place(env, mask), mask)
            return stored if same else load(stored, dtype)

        return run

    def _place(self, read: Read, storage: Storage) -> Evaluator:
        fixed = [i for i in read.index if isinstance(i, Int)]
        if len(fixed) == len(read.index):
            return compile_place(fixed, storage, self.lane)
        subscripts = [self._index(i) for i in read.index]
        return lambda env, mask: storage.flat([s(env, mask) for s in subscripts], mask)

    def _logical(self, op: str, parts: list[Evaluator]) -> Evaluator:
        if op == "not":
            return lambda env, mask: np.logical_not(parts[0](env, mask))
        # As in Python, a later part is evaluated only for lanes that the earlier ones leave undecided.
        decided = op == "or"

        def run(env: Env, mask: Mask) -> Any:
            result: Any = parts[0](env, mask)
            for part in parts[1:]:
                undecided = _lanes(result, env) != decided
                keep = undecided if mask is None else undecided & mask
                if not keep.any():
                    break
                result = np.where(keep, part(env, keep), result)
            return result

        return run

    def _select(self, select: Select) -> Evaluator:
        condition, then, other = self.condition(select.condition), self.value(select.then), self.value(select.other)

        def run(env: Env, mask: Mask) -> Any:
            truth = condition(env, mask)
            if isinstance(truth, bool | np.bool_):
                return then(env, mask) if truth else other(env, mask)
            chosen = _lanes(truth, env)
            if mask is not None:
                chosen, rest = chosen & mask, ~chosen & mask
            else:
                rest = ~chosen
            if not rest.any():
                return then(env, mask)
            if not chosen.any():
                return other(env, mask)
            return np.where(chosen, then(env, chosen), other(env, rest))

        return run
