"""Statements of a body of tile loops where its buffers lie, and boxes of windows as boxes of their tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from autosched.codegen.lower.common.tile_loops import Moved
from autosched.codegen.tree.kernel import (
    AsyncCopies,
    BarrierArrive,
    BarrierWait,
    KernelError,
    Stmt,
    TensorMap,
    TileCopy,
    WarpSpecialize,
)
from autosched.ir.nodes import Tensor
from autosched.logic import Int
from autosched.logic.walk import substitute_int
from autosched.tiling.analysis.windows import TensorWindow
from autosched.tiling.steps.gpu.operands.window_boxes import WindowStart, steps_in_tensor


@dataclass(frozen=True)
class MovedBoxes(Moved):
    """`inside`: tensors of the body's program, the windows among them; `tensors`: those of the program around."""

    inside: Mapping[str, Tensor]
    tensors: Mapping[str, Tensor]

    def _statement(self, stmt: Stmt) -> Stmt:
        match stmt:
            case AsyncCopies(boxes=boxes) if boxes:
                return replace(stmt, body=self.of(stmt.body), slot=self._int(stmt.slot), boxes=self.of(boxes))
            case TileCopy():
                return self._box(stmt)
            case WarpSpecialize():
                return replace(stmt, bodies=tuple(map(self.of, stmt.bodies)))
            case BarrierWait():
                slot, times, phase = map(self._int, (stmt.slot, stmt.times, stmt.phase))
                return replace(stmt, slot=slot, times=times, phase=phase)
            case BarrierArrive():
                return replace(stmt, slot=self._int(stmt.slot))
            case _:
                return super()._statement(stmt)

    def _int(self, number: Int) -> Int:
        return substitute_int(number, self.at)

    def _box(self, box: TileCopy) -> TileCopy:
        """The box of a window as one of the tensor. KernelError where it has none: the space lets no such row be."""
        place = self.places[box.buffer]
        seen, at = box.map, tuple(map(self._int, box.coordinates))
        window = self.places[seen.buffer].window
        if window is None or seen.walk is not None or box.store:
            raise KernelError(f"TMA moves boxes of {seen.buffer}, which is no window")
        seen, start = self._of_tensor(replace(seen, name=f"{place.buffer}_map"), window)
        index = place.index([self._int(i) for i in box.index])
        return replace(box, map=seen, coordinates=(*at, *start), buffer=place.buffer, index=index)

    def _of_tensor(self, seen: TensorMap, window: TensorWindow) -> tuple[TensorMap, tuple[Int, ...]]:
        """A window's map as one of its tensor, and the coordinates that say where it begins."""
        inside, extents = self.inside[seen.buffer].extents, self.tensors[window.tensor].extents
        sides = list(zip(seen.extents, (1, *seen.strides), strict=True))
        steps = steps_in_tensor(sides, window, inside, extents)
        if steps is None or steps[0] != 1:
            raise KernelError(f"elements of {seen.buffer} are not evenly apart in {window.tensor}")
        found = replace(seen, buffer=window.tensor, strides=steps[1:])
        start = WindowStart.of(window, inside, extents)
        if start is None:
            return found, ()
        extents, strides = (*seen.extents, start.count), (*found.strides, start.every)
        return replace(found, extents=extents, strides=strides, box=(*seen.box, 1)), (start.number,)
