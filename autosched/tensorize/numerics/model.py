"""`Model`: an instruction executed from its YAML alone, its semantics under its numerics contract.

One model serves everyone: checks against hardware, the interpreter of kernels, bounds, and discriminating inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.oracle.numerics import cast, load, store
from autosched.ir.value import Arith, Cast, Read, Value, reads
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.numerics.grid_code import Flat, Grid
from autosched.tensorize.numerics.scaled import Element, aligned_terms, elements_apart, shared_by
from autosched.tensorize.numerics.sums import Adder, plain_fold

Arrays = Mapping[str, npt.NDArray[Any]]


class Model:
    """`Model(intrinsic)(arrays)` answers the accumulators after one issue a case.

    `arrays` have shape (cases, *operand shape) and the operands' dtypes, and stay as they are. The semantics is
    compiled once. Where the value does not read the accumulator, all terms are computed together and then added as the
    contract says; otherwise the reduction runs point by point, all spatial points together. `first_alone` leaves out
    all elements of the accumulator but one.
    """

    def __init__(self, intrinsic: Intrinsic, first_alone: bool = False) -> None:
        self.intrinsic = intrinsic
        numerics, stage = intrinsic.numerics, intrinsic.stage
        self.target = intrinsic.accumulator
        spatial = [a for a in stage.axes if a in stage.spatial]
        reduction = [a for a in stage.axes if a not in stage.spatial]
        self.points = prod(a.extent for a in reduction)
        self.lanes = prod(a.extent for a in spatial)
        axes = (*reduction, *spatial)
        points = np.indices(tuple(a.extent for a in axes), dtype=np.int64).reshape(len(axes), self.points, self.lanes)
        if first_alone:
            points, self.lanes = points[:, :, :1], 1
        shapes = {o.name: o.shape for o in intrinsic.operands.values()}
        self._grids = [
            Grid({a.name: points[n, r] for n, a in enumerate(axes)}, shapes, numerics.flushes_factors)
            for r in range(self.points)
        ]
        whole = Grid({a.name: points[n] for n, a in enumerate(axes)}, shapes, numerics.flushes_factors)
        own = whole.places(self.target.name, stage.assign.index)
        self._places = np.broadcast_to(own, (self.points, self.lanes))
        value = stage.assign.value
        stepwise = any(r.tensor == self.target.name for r in reads(value))
        self._run = self._steps(value) if stepwise else self._terms_first(whole, value)

    def __call__(self, arrays: Arrays) -> npt.NDArray[Any]:
        flat = {n: np.asarray(a).reshape(len(a), -1) for n, a in arrays.items()}
        written = flat[self.target.name].copy()
        if self.intrinsic.from_zero:
            written[:] = 0
        with np.errstate(all="ignore"):
            self._run({**flat, self.target.name: written}, written)
        return written.reshape(arrays[self.target.name].shape)

    def _steps(self, value: Value) -> Callable[[Flat, Any], None]:
        op, dtype = self.intrinsic.stage.assign.op, value.dtype
        fold = plain_fold(op, dtype, self.intrinsic.numerics.flushed)
        formulas = [grid.formula(value) for grid in self._grids]

        def run(flat: Flat, written: Any) -> None:
            for formula, place in zip(formulas, self._places, strict=True):
                written[:, place] = store(fold(load(written[:, place], dtype), formula(flat)), dtype)

        return run

    def _terms_first(self, whole: Grid, value: Value) -> Callable[[Flat, Any], None]:
        op, dtype = self.intrinsic.stage.assign.op, value.dtype
        if op == "+=" and dtype.is_float:
            return self._float_sum(whole, value)
        formula, places, points, lanes = whole.formula(value), self._places, self.points, self.lanes
        fold = plain_fold(op, dtype, self.intrinsic.numerics.flushed)
        # Every spatial point owns its element, so integers that wrap may be added in any order: one numpy sum.
        at_once = op == "+=" and dtype.is_integer and dtype.bits >= 8

        def run(flat: Flat, written: Any) -> None:
            terms = _spread(formula(flat), (len(written), points, lanes))
            if at_once:
                written[:, places[0]] += terms.sum(axis=1, dtype=dtype.numpy)
                return
            for r, place in enumerate(places):
                written[:, place] = store(fold(load(written[:, place], dtype), terms[:, r]), dtype)

        return run

    def _float_sum(self, whole: Grid, value: Value) -> Callable[[Flat, Any], None]:
        numerics, dtype = self.intrinsic.numerics, value.dtype
        scaled = elements_apart(value) if numerics.scaled else ()
        if len(scaled) > 2 or numerics.group > 1:
            return self._scaled_sum(whole, value, scaled)
        factors = (value.left, value.right) if isinstance(value, Arith) and value.op == "*" else (value,)
        formulas = [whole.formula(f) for f in factors]
        types = _widened(factors[0]), _widened(factors[-1])
        inner = dtype if numerics.sum_as is None else DTYPES[numerics.sum_as]
        adder = Adder(numerics, inner, types)
        place, points, lanes = self._places[0], self.points, self.lanes

        def run(flat: Flat, written: Any) -> None:
            shape = len(written), points, lanes
            terms = [_spread(f(flat), shape).swapaxes(0, 1).reshape(points, -1) for f in formulas]
            acc = cast(load(written[:, place], dtype).reshape(-1), dtype, inner)
            found = adder.issue(acc, terms[0], terms[1] if len(terms) == 2 else None)
            written[:, place] = store(cast(found, inner, dtype), dtype).reshape(len(written), -1)

        return run


    def _scaled_sum(self, whole: Grid, value: Value, elements: tuple[Element, ...]) -> Callable[[Flat, Any], None]:
        """Aligned sums of products of more than two elements: the exponent of each counts."""
        numerics, dtype = self.intrinsic.numerics, value.dtype
        formulas = [whole.formula(e.value) for e in elements]
        found = [whole.places(e.read.tensor, e.read.index) for e in elements]
        shared = [shared_by(np.broadcast_to(f, (self.points, self.lanes)), numerics.group) for f in found]
        adder = Adder(numerics, dtype, (dtype, dtype))
        place, points, lanes = self._places[0], self.points, self.lanes

        def run(flat: Flat, written: Any) -> None:
            shape = len(written), points, lanes
            each = [_spread(f(flat), shape).swapaxes(0, 1).reshape(points, -1) for f in formulas]
            terms, places = aligned_terms(each, [e.read.dtype for e in elements], shared, numerics.group)
            acc = load(written[:, place], dtype).reshape(-1)
            written[:, place] = store(adder.issue_aligned(acc, terms, places), dtype).reshape(len(written), -1)

        return run


def _spread(values: npt.NDArray[Any], shape: tuple[int, ...]) -> npt.NDArray[Any]:
    """`np.broadcast_to`, which takes longer than an instruction where there is nothing to do."""
    return values if values.shape == shape else np.broadcast_to(values, shape)


def _widened(value: Value) -> DType:
    """The type of the element that a factor widens."""
    return value.operand.dtype if isinstance(value, Cast) and isinstance(value.operand, Read) else value.dtype


def issue(intrinsic: Intrinsic, arrays: Arrays) -> npt.NDArray[Any]:
    """The accumulators after one issue a case of a fresh `Model`."""
    return Model(intrinsic)(arrays)
