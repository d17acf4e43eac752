"""Instructions of a warp or warpgroup: the elements of all lanes' registers as operands, by the fragment maps of the
YAML, and the description's own model for what happens to them."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.codegen.cuda.emission import lanes_of, registers_of
from autosched.logic import evaluate
from autosched.tensorize.intrinsic import Intrinsic, Operand
from autosched.tensorize.numerics.model import Model


@dataclass(frozen=True)
class Held:
    """One operand in the registers of all lanes: `bytes` a lane, `bits` an element, and the row-major number of each
    lane's elements (lanes, held)."""

    operand: Operand
    bytes: int
    places: npt.NDArray[np.int64]

    @property
    def bits(self) -> int:
        return self.operand.dtype.bits

    def elements(self, raw: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """The operand's elements in row-major order, from registers (lanes, bytes)."""
        dtype, held = np.dtype(self.operand.dtype.numpy), self.places.shape[1]
        if self.bits < 8:
            each = np.unpackbits(raw, axis=1, bitorder="little").reshape(len(raw), -1, self.bits)[:, :held]
            values = (each << np.arange(self.bits, dtype=np.uint8)).sum(axis=2).astype(np.uint8)
            if self.operand.dtype.signed:
                values = ((values ^ (1 << (self.bits - 1))).astype(np.int8) - (1 << (self.bits - 1))).astype(np.int8)
            found = values.astype(dtype)
        else:
            found = raw[:, : held * dtype.itemsize].copy().view(dtype)
        whole = np.empty(self.operand.elements, dtype)
        whole[self.places.reshape(-1)] = found.reshape(-1)
        return whole.reshape(self.operand.shape)

    def put(self, raw: npt.NDArray[np.uint8], values: npt.NDArray[Any]) -> None:
        """The reverse, of 8 bits and more (results are)."""
        chosen = np.ascontiguousarray(values.reshape(-1)[self.places]).view(np.uint8)
        raw[:, : chosen.shape[1]] = chosen


def held(operand: Operand, lanes: int) -> Held:
    """How lanes hold an operand; where nobody promises anything, in equal runs of its row-major elements."""
    registers = registers_of(operand, lanes)
    size = registers.count * (registers.bits or operand.dtype.bits) // 8
    count = operand.elements // lanes
    if operand.fragment is None:
        return Held(operand, size, np.arange(operand.elements).reshape(lanes, count))
    t, v = np.meshgrid(np.arange(lanes), np.arange(count), indexing="ij")
    points = [evaluate(e, {"t": t.reshape(-1), "v": v.reshape(-1)}) for e in operand.fragment.exprs]
    flat = np.ravel_multi_index(tuple(np.broadcast_to(p, lanes * count) for p in points), operand.shape)
    return Held(operand, size, np.asarray(flat, np.int64).reshape(lanes, count))


class WarpModel:
    """`WarpModel(intrinsic)(address)` issues the instruction on the registers that lie at the address: operand after
    operand, lane after lane."""

    def __init__(self, intrinsic: Intrinsic) -> None:
        self.lanes = lanes_of(intrinsic)
        self.intrinsic = intrinsic
        self.operands = [held(o, self.lanes) for o in intrinsic.operands.values()]
        self.model = Model(intrinsic)
        self.bytes = sum(h.bytes * self.lanes for h in self.operands)

    def __call__(self, address: int) -> None:
        whole = np.frombuffer((ctypes.c_uint8 * self.bytes).from_address(address), np.uint8)
        start = 0
        arrays: dict[str, npt.NDArray[Any]] = {}
        raws: dict[str, npt.NDArray[np.uint8]] = {}
        for h in self.operands:
            raw = whole[start : start + h.bytes * self.lanes].reshape(self.lanes, h.bytes)
            raws[h.operand.name] = raw
            arrays[h.operand.name] = h.elements(raw)[None]
            start += h.bytes * self.lanes
        result = self.model(arrays)[0]
        for h in self.operands:
            if h.operand.written:
                h.put(raws[h.operand.name], result)


__all__ = ["Held", "WarpModel", "held"]
