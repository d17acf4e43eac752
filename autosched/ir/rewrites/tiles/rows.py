"""Which rows of each stage a tile of rows of the last one needs, and what a tile holds of an intermediate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RowRange:
    """Rows that row k of the last stage needs: `scale * k + low` to `scale * k + high`, both with it."""

    scale: int = 1
    low: int = 0
    high: int = 0

    @property
    def again(self) -> int:
        """How many of a tile's rows the next tile needs too; below 0: how many neither needs."""
        return self.high - self.low + 1 - self.scale

    @property
    def new(self) -> RowRange:
        """Those of a tile that no tile before it needs."""
        return RowRange(self.scale, max(self.low, self.high + 1 - self.scale), self.high)

    def count(self, tile: int) -> int:
        """How many rows so many rows of the last stage need."""
        return self.scale * (tile - 1) + self.high - self.low + 1

    def of(self, begin: int, stop: int) -> tuple[int, int]:
        """The first row that rows `begin` until `stop` of the last stage need, and the one behind the last."""
        return self.scale * begin + self.low, self.scale * (stop - 1) + self.high + 1

    def through(self, step: int, low: int, high: int) -> RowRange:
        """What these rows need where row k of theirs needs `step * k + low` to `step * k + high`."""
        return RowRange(self.scale * step, self.low * step + low, self.high * step + high)

    def joined(self, other: RowRange) -> RowRange | None:
        """What both need. None where they move on at different paces."""
        if self.scale != other.scale:
            return None
        return RowRange(self.scale, min(self.low, other.low), max(self.high, other.high))


ROW = RowRange()
"""Row k alone."""


@dataclass(frozen=True)
class RowStage:
    """A stage of a run: its loop over rows, and the rows of it that a tile computes."""

    axis: str
    rows: RowRange = ROW


@dataclass(frozen=True)
class HeldRows:
    """What a tile holds of an intermediate: rows along a dimension, whose subscript is a row. `kept`: the next tile
    takes those that it needs too, and computes the others alone."""

    dimension: int
    rows: RowRange = ROW
    kept: bool = False


@dataclass(frozen=True)
class TileRun:
    """Top-level statements from number `first` on, each a stage, that may run a tile of rows at a time. `buffers`: the
    intermediates that they alone touch."""

    first: int
    members: tuple[RowStage, ...]
    buffers: Mapping[str, HeldRows] = field(default_factory=dict)
