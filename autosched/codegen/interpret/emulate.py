"""An intrinsic issued in a kernel, by its model: registers in, accumulator register out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.numerics.model import Model

Registers = dict[str, npt.NDArray[Any]]
"""Operand to the elements of its register, in register order."""


class RegisterEmulator:
    """`RegisterEmulator(intrinsic)(registers)` answers the accumulator register's new elements.

    `registers` holds one flat array an operand, in register order and of the operand's dtype.
    """

    def __init__(self, intrinsic: Intrinsic) -> None:
        self.target = intrinsic.accumulator.name
        self._model = Model(intrinsic)
        # Register element e holds the operand's row-major element `places[e]`.
        self._places = {o.name: _places(o.order.points()[0], o.shape) for o in intrinsic.operands.values()}
        self._held = {o.name: np.zeros((1, *o.shape), o.dtype.numpy) for o in intrinsic.operands.values()}

    def __call__(self, registers: Registers) -> npt.NDArray[Any]:
        for name, elements in registers.items():
            self._held[name].reshape(-1)[self._places[name]] = elements
        result: npt.NDArray[Any] = self._model(self._held).reshape(-1)[self._places[self.target]]
        return result


def _places(points: npt.NDArray[np.int64], shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Row-major element numbers of coordinates (rank, …)."""
    if not shape:
        return np.zeros(points.shape[1:] or (1,), np.int64)
    return np.asarray(np.ravel_multi_index(tuple(points), shape), dtype=np.int64).reshape(-1)
