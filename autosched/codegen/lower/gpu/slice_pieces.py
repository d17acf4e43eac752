"""Pieces of a slice in shared memory: runs of neighbours along a row, of which a thread fills one at a time."""

from __future__ import annotations

from dataclasses import dataclass

from autosched.codegen.lower.common.positions import LANE
from autosched.codegen.tree.kernel import Lane
from autosched.logic import TRUE, Bool, Const, Int, Var
from autosched.tiling.steps.gpu.operands.shared_layout import SharedLayout


@dataclass(frozen=True)
class Piece:
    """The `number`-th of `count` pieces: from `element` of `row` on, with `lane` each element of its own. `place` is
    the same by axis, `inside` where it lies in shared memory; `there` says whether the row goes so far."""

    number: Var
    count: int
    row: Int
    element: Int
    place: dict[str, Int]
    inside: tuple[Int, ...]
    there: Bool
    lane: Lane | None


def piece_of(layout: SharedLayout, operand: str, wide: int) -> Piece:
    """The piece that the loop over an operand's pieces is at, of `wide` elements (0: one)."""
    wide = max(1, wide)
    pieces = -(-layout.extents[-1] // wide)
    number = Var(f"{operand}_f")
    row = number // pieces
    element: Int = number % pieces * wide
    if wide > 1:
        element = element + Var(LANE)
    place: dict[str, Int] = {layout.axes[-1].name: element}
    below = layout.rows
    for axis, extent in zip(layout.axes[:-1], layout.extents[:-1], strict=True):
        below //= extent
        along = row // below if below > 1 else row
        place[axis.name] = along % extent if extent > 1 else Const(0)
    there = element < layout.extents[-1] if layout.extents[-1] % wide else TRUE
    inside = layout.index(layout.row(place), element)
    lane = Lane(LANE, wide) if wide > 1 else None
    return Piece(number, layout.rows * pieces, row, element, place, inside, there, lane)
