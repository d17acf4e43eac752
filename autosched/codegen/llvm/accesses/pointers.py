"""Where an access goes: the pointer to its first element, and how the lanes move from there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from autosched.codegen.analysis.access import LaneAccess, access_of, classify
from autosched.codegen.llvm.accesses.addresses import Addresses
from autosched.codegen.llvm.accesses.indexing import Linear
from autosched.codegen.llvm.emitter import Emitter
from autosched.codegen.llvm.masks import Mask
from autosched.codegen.llvm.ops import Ops
from autosched.codegen.llvm.types import Val, splat_text, vector_text
from autosched.codegen.tree.kernel import Buffer, Lane
from autosched.ir.dtypes import DTYPES
from autosched.ir.value import Index
from autosched.logic import Int, free_vars

_S64 = DTYPES["s64"]

IndexValue = Callable[[Index, Lane | None, Mask | None], Val]
"""Evaluates a data-dependent subscript: (value, lane, mask) to an s64 value."""


@dataclass(frozen=True, slots=True)
class LaneAddress:
    """Where an access goes: a pointer to lane 0's element, how lanes move from it, its alignment in bytes.

    `steps` is an i64 vector of element offsets, where the lanes' offsets are no constants.
    """

    pointer: str
    access: LaneAccess
    align: int
    steps: str = ""


class LaneAddresses:
    """Places of accesses in one function."""

    def __init__(self, emitter: Emitter, indexing: Addresses, ops: Ops) -> None:
        self.out = emitter
        self.indexing = indexing
        self.ops = ops
        self.index_value: IndexValue | None = None
        self._access: dict[tuple[int, Lane | None], tuple[object, LaneAccess]] = {}

    def classified(self, index: tuple[Index, ...], shape: tuple[int, ...], lane: Lane | None) -> LaneAccess:
        """`classify`, once for each subscript tuple of the tree."""
        key = (id(index), lane)
        found = self._access.get(key)
        if found is None:
            found = (index, classify(index, shape, lane))  # holding the tuple keeps its id its own
            self._access[key] = found
        return found[1]

    def place(self, buffer: Buffer, index: tuple[Index, ...], lane: Lane | None, mask: Mask | None) -> LaneAddress:
        """The place of `buffer[index]`; data-dependent subscripts are evaluated here, under `mask`."""
        size = buffer.dtype.bytes
        access = self.classified(index, buffer.shape, lane)
        offset = self.indexing.offset(buffer, index, lane) if buffer.shape else Linear(0)
        align = self.indexing.alignment(buffer, offset, size)
        pointer = self.indexing.pointer(f"%{buffer.name}", offset, size)
        steps = ""
        stride = buffer.elements
        for part, extent in zip(index, buffer.shape, strict=True):
            stride //= extent
            if isinstance(part, Int):
                if access.offsets is None and lane is not None:
                    moved = self._moved(part, lane, stride)
                    steps = self._add_steps(steps, moved, lane.width) if moved else steps
                continue
            assert self.index_value is not None
            value, align = self.index_value(part, lane, mask), size
            if value.lanes == 1:
                bytes_ = self.out.let(f"mul i64 {value.name}, {stride * size}")
                pointer = self.out.let(f"getelementptr i8, ptr {pointer}, i64 {bytes_}", "q")
            else:
                scaled = self.out.let(f"mul {value.text}, {splat_text('i64', str(stride), value.lanes)}")
                steps = self._add_steps(steps, scaled, value.lanes)
        if access.offsets is None and not steps and lane is not None:  # data that are the same for all lanes
            access = access_of((0,) * lane.width)
        return LaneAddress(pointer, access, align, steps)

    def _moved(self, part: Int, lane: Lane, stride: int) -> str:
        """How a subscript moves from lane 0, times its stride, as a vector; empty where it does not."""
        if lane.var not in free_vars(part):
            return ""
        kind = f"<{lane.width} x i64>"
        first = self.ops.splat(Val(self.indexing.operand(self.indexing.at_lane(part, lane)), _S64), lane.width)
        moved = self.out.let(f"sub {kind} {self.indexing.lanes(part, lane)}, {first.name}")
        return self.out.let(f"mul {kind} {moved}, {splat_text('i64', str(stride), lane.width)}")

    def _add_steps(self, a: str, b: str, lanes: int) -> str:
        return self.out.let(f"add <{lanes} x i64> {a}, {b}") if a else b

    def steps(self, place: LaneAddress) -> str:
        """Element offsets of all lanes as an i64 vector."""
        if place.steps:
            return place.steps
        assert place.access.offsets is not None
        return vector_text("i64", [str(o) for o in place.access.offsets])

    def pointers(self, place: LaneAddress, size: int, lanes: int) -> str:
        """A vector of each lane's pointer."""
        steps = self.steps(place)
        if size > 1:
            steps = self.out.let(f"mul <{lanes} x i64> {steps}, {splat_text('i64', str(size), lanes)}")
        return self.out.let(f"getelementptr i8, ptr {place.pointer}, <{lanes} x i64> {steps}", "q")

    def lane_pointers(self, place: LaneAddress, size: int, lanes: int) -> list[str]:
        """Each lane's pointer; lanes at one constant offset share it."""
        if not place.steps and place.access.offsets is not None:
            names: dict[int, str] = {0: place.pointer}
            for o in place.access.offsets:
                if o not in names:
                    names[o] = self.out.let(f"getelementptr i8, ptr {place.pointer}, i64 {o * size}", "q")
            return [names[o] for o in place.access.offsets]
        vector = self.pointers(place, size, lanes)
        return [self.out.let(f"extractelement <{lanes} x ptr> {vector}, i64 {e}", "q") for e in range(lanes)]
