"""Instructions of a warp or warpgroup: the elements of all lanes' registers as operands, by the fragment maps of the
YAML, and the description's own model for what happens to them."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.codegen.cuda.emulation.signatures import REGISTERS, ROWS, TILE, IssueSignature
from autosched.codegen.cuda.fragments.lane_registers import lanes_of, registers_of
from autosched.tensorize.intrinsic import Intrinsic, Operand
from autosched.tensorize.numerics.model import Model

KINDS = (REGISTERS, ROWS, TILE)
Bytes = npt.NDArray[np.uint8]
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class OperandStorage:
    """One operand as instructions are given it: `shape` is (lanes, bytes of each lane's registers), (rows, bytes of a
    row) or (rows, depth, bytes of an element); `places` are the row-major numbers of the elements there, in order."""

    operand: Operand
    kind: str
    shape: tuple[int, ...]
    places: npt.NDArray[np.int64]

    @property
    def bytes(self) -> int:
        return int(np.prod(self.shape))

    @property
    def fields(self) -> tuple[int, int, int, int, int]:
        """As the runtime takes it: kind, written, bytes, rows, depth."""
        rows, depth = (self.shape[0], self.shape[1]) if self.kind == TILE else (self.shape[0], 0)
        return KINDS.index(self.kind), int(self.operand.written), self.shape[-1], rows, depth

    def elements(self, raw: Bytes) -> Array:
        """The operand from its bytes."""
        dtype, count = np.dtype(self.operand.dtype.numpy), self.places.shape[-1]
        lines = raw.reshape(len(self.places), -1)
        if (self.operand.in_fields and self.kind == REGISTERS) or self.operand.dtype.bits < 8:
            found = _unpacked(lines, self.operand, count)
        else:
            found = lines[:, : count * dtype.itemsize].copy().view(dtype)
        whole = np.empty(self.operand.elements, dtype)
        whole[self.places.reshape(-1)] = found.reshape(-1)
        if self.operand.copies > 1 and self.kind == REGISTERS:
            alike = whole[self.places].view(np.uint8) == found.reshape(self.places.shape).view(np.uint8)
            assert alike.all(), f"lanes hold different elements of {self.operand.name} in the same place"
        return whole.reshape(self.operand.shape)

    def put(self, raw: Bytes, values: Array) -> None:
        """The reverse, of types of 8 bits and more (all results are)."""
        chosen = np.ascontiguousarray(values.reshape(-1)[self.places]).view(np.uint8)
        raw.reshape(len(self.places), -1)[:, : chosen.shape[1]] = chosen


def _unpacked(lines: Bytes, operand: Operand, count: int) -> Array:
    bits, room = operand.field_bits, operand.field_bits - operand.shift
    each = np.unpackbits(lines, axis=1, bitorder="little").reshape(len(lines), -1, bits)[:, :count]
    numbers = (each << np.arange(bits, dtype=np.uint8)).sum(axis=2) >> operand.shift
    values = (numbers & ((1 << min(room, operand.dtype.bits)) - 1)).astype(np.int8)
    bits = operand.dtype.bits
    if operand.dtype.is_float:
        return np.ascontiguousarray(values).view(operand.dtype.numpy)
    if operand.dtype.signed:
        values = np.where(values >= 1 << (bits - 1), values - (1 << bits), values)
    found: Array = values.astype(operand.dtype.numpy)
    return found


def held(intrinsic: Intrinsic, operand: Operand, kind: str, by_columns: bool = False) -> OperandStorage:
    """How an operand is given. Where nobody promises which lane holds what, in equal runs of its elements by rows (by
    columns)."""
    lanes, numbers = lanes_of(intrinsic), np.arange(operand.elements)
    if kind == ROWS:
        rows = operand.elements // operand.shape[-1]
        return OperandStorage(operand, kind, (rows, operand.shape[-1] * operand.dtype.bytes), numbers.reshape(rows, -1))
    if kind == TILE:
        axes = intrinsic.operand_axes[operand.name]
        deep = {a.name for a in intrinsic.reduction}
        places = numbers.reshape(operand.shape)
        if axes[0] in deep:
            places = places.T
        return OperandStorage(operand, kind, (*places.shape, operand.dtype.bytes), np.ascontiguousarray(places))
    registers = registers_of(operand, lanes)
    shape = lanes, registers.count * (registers.bits or operand.dtype.bits) // 8
    count = operand.elements // lanes
    if operand.fragment is None:
        order = numbers.reshape(operand.shape).T.reshape(-1) if by_columns else numbers
        return OperandStorage(operand, kind, shape, order.reshape(lanes, count))
    points, _ = operand.fragment.points()
    return OperandStorage(
        operand, kind, shape, np.asarray(np.ravel_multi_index(tuple(points), operand.shape), np.int64)
    )


class GroupModel:
    """`GroupModel(issue)(address)` issues the instruction on the operands that lie at the address, one after the other.
    `moved`: of a copy, where each byte of the written registers comes from; empty for what computes."""

    def __init__(self, issue: IssueSignature) -> None:
        intrinsic = issue.intrinsic
        self.lanes = lanes_of(intrinsic)
        kinds, columns = issue.kinds, issue.columns
        self.operands = [held(intrinsic, o, kinds[n], n in columns) for n, o in intrinsic.operands.items()]
        self.model = Model(intrinsic)
        self.bytes = sum(h.bytes for h in self.operands)
        self.moved: npt.NDArray[np.uint32] = np.zeros(0, np.uint32)
        if intrinsic.kind == "copy":
            self.moved = self._moved()

    def __call__(self, address: int) -> None:
        self.run(np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_uint8)), (self.bytes,)))

    def run(self, whole: Bytes) -> None:
        """The same on an array of bytes."""
        ends = np.cumsum([h.bytes for h in self.operands])
        raws = [whole[end - h.bytes : end] for h, end in zip(self.operands, ends, strict=True)]
        arrays = {h.operand.name: h.elements(raw)[None] for h, raw in zip(self.operands, raws, strict=True)}
        result = self.model(arrays)[0]
        for h, raw in zip(self.operands, raws, strict=True):
            if h.operand.written:
                h.put(raw, result)

    def _moved(self) -> npt.NDArray[np.uint32]:
        """A copy moves bytes whatever they are: their numbers, a digit at a time, show where from."""
        [source] = [h for h in self.operands if not h.operand.written]
        [target] = [h for h in self.operands if h.operand.written]
        found = np.zeros(target.bytes, np.uint32)
        for shift in (0, 8):
            digits = (np.arange(source.bytes) >> shift & 255).astype(np.uint8)
            parts = [digits if h is source else np.zeros(h.bytes, np.uint8) for h in self.operands]
            whole = np.concatenate(parts)
            self.run(whole)
            start = sum(h.bytes for h in self.operands[: self.operands.index(target)])
            found |= whole[start : start + target.bytes].astype(np.uint32) << shift
        return found
