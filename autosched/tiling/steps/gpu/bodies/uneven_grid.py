"""Grids whose blocks take unequally long, since a loop inside of them is as long as their place says: a causal mask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import cast

import numpy as np
import numpy.typing as npt

from autosched.logic import Int, evaluate, free_vars
from autosched.tiling.plans.plan import Plan, TileLoop, TileLoopsPart
from autosched.tiling.step import Decision, Handle
from autosched.tiling.steps.gpu.block_tile import is_block_loop

AS_WRITTEN, LONGEST_FIRST = 0, 1
ORDER = Handle("order", AS_WRITTEN)
"""In which order blocks of an uneven grid begin."""
LABELS = ("longest first", "as written")

Columns = Mapping[str, npt.NDArray[np.int64]]


@dataclass(frozen=True)
class UnevenGrid:
    """The loop over blocks that says how long these take, and how many iterations of the loops inside each has."""

    loop: TileLoop
    lengths: tuple[int, ...]

    @property
    def rises(self) -> bool:
        """Whether the last blocks take the longest."""
        return self.lengths[-1] > self.lengths[0]

    def longer(self, values: Columns, name: str, rounds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """By how much longer the grid takes than its blocks on average, `rounds` on each core: cores wait for the last
        blocks, on average half as long as these take."""
        mean = max(1.0, sum(self.lengths) / len(self.lengths))
        behind = self.lengths[-1] if self.rises else mean
        last = np.where(values[name] == LONGEST_FIRST, min(self.lengths), behind)
        return 1.0 + last / mean / 2.0 / np.maximum(rounds, 1.0)


def uneven_grid(part: TileLoopsPart) -> UnevenGrid | None:
    """The loop of a grid on which lengths of loops inside depend the most; None where there is none."""
    if "uneven" not in part.cache:
        part.cache["uneven"] = _uneven(part) if part.grid else None
    return cast("UnevenGrid | None", part.cache["uneven"])


def _uneven(part: TileLoopsPart) -> UnevenGrid | None:
    found = []
    for loop in part.loops:
        if is_block_loop(loop.parallel, loop.axis.lower, loop.axis.upper):
            others = {t.axis.name: t.first for t in part.loops}
            every = (others | {loop.axis.name: at} for at in range(loop.first, loop.last + 1))
            found.append(UnevenGrid(loop, tuple(_length(part.member, at, loop.axis.name) for at in every)))
    uneven = [grid for grid in found if max(grid.lengths) > min(grid.lengths)]
    return max(uneven, key=lambda grid: max(grid.lengths) - min(grid.lengths), default=None)


def order_of_blocks(part: TileLoopsPart) -> list[Decision]:
    """`order`, where blocks take unequally long."""
    if uneven_grid(part) is None:
        return []
    note = "blocks that begin first leave short ones to the end"
    return [Decision(part.names(ORDER.name), (LONGEST_FIRST, AS_WRITTEN), LABELS, note)]


def _length(member: Plan, at: Mapping[str, int], name: str) -> int:
    """Iterations of the loops inside that `name` makes longer or shorter."""
    total = 0
    for part in member.parts:
        if not isinstance(part, TileLoopsPart):
            continue
        places = {**at, **{t.axis.name: t.first for t in part.loops}}
        bounds = [(t.axis.lower, t.axis.upper) for t in part.loops]
        moved = [(lower, upper) for lower, upper in bounds if name in _names(lower, upper) <= places.keys()]
        counts = [max(0, int(evaluate(upper, places)) - int(evaluate(lower, places))) for lower, upper in moved]
        total += prod(counts) if moved else _length(part.member, at, name)
    return total


def _names(*bounds: Int) -> frozenset[str]:
    return frozenset().union(*map(free_vars, bounds))
