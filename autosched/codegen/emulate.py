"""An intrinsic executed from its YAML semantics: registers in, accumulator register out.

The semantics is compiled once into numpy steps over whole index grids. Where the value does not read the accumulator,
all terms are computed together and then added in the order and with the roundings that `numerics` states; otherwise the
reduction runs point by point, all spatial points together.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.codegen.accumulate import aligned_block, flusher, step
from autosched.codegen.evaluate import WIDTH, compile_value
from autosched.codegen.kernel import Buffer
from autosched.codegen.storage import Storage
from autosched.ir.dtypes import DType
from autosched.ir.numerics import load, store
from autosched.ir.value import Arith, Value, is_value, reads
from autosched.logic import all_of, evaluate
from autosched.tensorize.intrinsic import Intrinsic

Registers = dict[str, npt.NDArray[Any]]
"""Operand to the elements of its register, in register order."""


class Emulator:
    """`Emulator(intrinsic)(registers)` answers the accumulator register's new elements.

    `registers` holds one flat array an operand, in register order and of the operand's dtype.
    """

    def __init__(self, intrinsic: Intrinsic) -> None:
        self.intrinsic = intrinsic
        stage = intrinsic.stage
        target = intrinsic.accumulator
        self.target = target.name
        self.flush = flusher(intrinsic.numerics)
        self.storages = {
            o.name: Storage(
                Buffer(o.name, o.dtype, o.shape, "register"),
                np.zeros(o.elements, o.dtype.numpy),
                initialised=True,
                shared=None,
            )
            for o in intrinsic.operands.values()
        }
        # Register element e holds the operand's row-major element `places[e]`.
        self.places = {o.name: _places(o.order.points()[0], o.shape) for o in intrinsic.operands.values()}
        spatial = [a for a in stage.axes if a in stage.spatial]
        reduction = [a for a in stage.axes if a not in stage.spatial]
        self.points = prod(a.extent for a in reduction)
        self.lanes = prod(a.extent for a in spatial)
        grid = np.indices(tuple(a.extent for a in (*reduction, *spatial)), dtype=np.int64).reshape(
            len(reduction) + len(spatial), -1
        )
        env: dict[str, Any] = {
            a.name: row + evaluate(a.lower, {}) for a, row in zip((*reduction, *spatial), grid, strict=True)
        }
        assert not any(is_value(x) for x in (*stage.guards, *stage.assign.index)), f"{intrinsic.name}: data-dependent"
        index = np.stack([np.broadcast_to(evaluate(i, env), (grid.shape[1],)) for i in stage.assign.index])  # type: ignore[arg-type]
        guards = evaluate(all_of(*stage.guards), env)  # type: ignore[arg-type]
        self.kept: npt.NDArray[np.bool_] | None = None if guards is True else np.broadcast_to(guards, (grid.shape[1],))
        self.flat = _places(index, target.shape).reshape(self.points, self.lanes)
        self.env = env
        self.run = self._plan(stage.assign.op, stage.assign.value)

    def __call__(self, registers: Registers) -> npt.NDArray[Any]:
        for name, elements in registers.items():
            self.storages[name].data[self.places[name]] = elements
        self.run()
        result: npt.NDArray[Any] = self.storages[self.target].data[self.places[self.target]]
        return result

    def _plan(self, op: str, value: Value) -> Callable[[], None]:
        if any(r.tensor == self.target for r in reads(value)):
            return self._stepwise(op, value)
        return self._terms_first(op, value)

    def _slices(self) -> list[tuple[dict[str, Any], npt.NDArray[np.bool_] | None, npt.NDArray[np.int64]]]:
        """For each reduction point in program order: variables, mask and target elements of its spatial points."""
        found = []
        for r in range(self.points):
            span = slice(r * self.lanes, (r + 1) * self.lanes)
            env = {name: row[span] for name, row in self.env.items()} | {WIDTH: self.lanes}
            found.append((env, None if self.kept is None else self.kept[span], self.flat[r]))
        return found

    def _stepwise(self, op: str, value: Value) -> Callable[[], None]:
        evaluate_value = compile_value(value, self.storages, {}, self.flush)
        fold = step(op, value.dtype, self.flush, fused=False)
        steps, data, dtype = self._slices(), self.storages[self.target].data, value.dtype

        def run() -> None:
            for env, mask, flat in steps:
                _write(data, flat, fold(load(data[flat], dtype), evaluate_value(env, mask)), mask, dtype)

        return run

    def _terms_first(self, op: str, value: Value) -> Callable[[], None]:
        numerics, dtype = self.intrinsic.numerics, value.dtype
        adds = op == "+=" and dtype.is_float
        aligned = adds and numerics.fraction_bits is not None
        fused = adds and not aligned and numerics.fused and isinstance(value, Arith) and value.op == "*"
        factors = (value.left, value.right) if fused and isinstance(value, Arith) else (value,)
        compiled = [compile_value(f, self.storages, {}, self.flush) for f in factors]
        env = {**self.env, WIDTH: self.points * self.lanes}
        data, shape = self.storages[self.target].data, (self.points, self.lanes)
        fold = step(op, dtype, self.flush, fused=fused)
        block = numerics.terms or self.points
        steps = self._slices()
        # Every spatial point owns its element, so integers that wrap may be added in any order: one numpy sum.
        at_once = op == "+=" and dtype.is_integer and dtype.bits >= 8 and self.kept is None

        def run() -> None:
            terms = [np.broadcast_to(c(env, self.kept), (self.points * self.lanes,)).reshape(shape) for c in compiled]
            if at_once:
                data[self.flat[0]] += terms[0].sum(axis=0, dtype=dtype.numpy)
            elif aligned:
                for first in range(0, self.points, block):
                    flat, rows = self.flat[first], terms[0][first : first + block]
                    data[flat] = store(aligned_block(load(data[flat], dtype), list(rows), dtype, numerics), dtype)
            else:
                for r, (_, mask, flat) in enumerate(steps):
                    _write(data, flat, fold(load(data[flat], dtype), *(t[r] for t in terms)), mask, dtype)

        return run


def _places(points: npt.NDArray[np.int64], shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Row-major element numbers of coordinates (rank, …); a point outside `shape` is an error of the spec."""
    if not shape:
        return np.zeros(points.shape[1:] or (1,), np.int64)
    return np.asarray(np.ravel_multi_index(tuple(points), shape), dtype=np.int64).reshape(-1)


def _write(
    data: Any, flat: npt.NDArray[np.int64], values: Any, mask: npt.NDArray[np.bool_] | None, dtype: DType
) -> None:
    stored = np.broadcast_to(store(values, dtype), flat.shape)
    if mask is None:
        data[flat] = stored
    else:
        data[flat[mask]] = stored[mask]
