"""A quantity of a few decisions, worked out once for all combinations of them and looked up by row ids.

A space has millions of rows, but what depends on its register tile alone has some hundred values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from autosched.logic import evaluate
from autosched.tiling.space.base import SpaceBase
from autosched.tiling.space.partial_columns import PartialColumns, WantedError, neighbouring, read_by
from autosched.tiling.space.values import digit

MOST = 1 << 18
"""Combinations above which a table costs more than it saves."""
Columns = Mapping[str, npt.NDArray[np.int64]]


@dataclass(frozen=True)
class Table:
    """`column` (float64) holds the quantity for each combination of the decisions at `positions`, the first the most
    significant digit."""

    space: SpaceBase
    positions: tuple[int, ...]
    column: npt.NDArray[np.float64]

    def look_up(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """The quantity of each row."""
        at: npt.NDArray[np.int64] = np.zeros(len(ids), np.int64)
        for first, last in neighbouring(self.positions):
            width = prod(self.space.radices[first : last + 1])
            at = at * width + digit(ids, self.space.strides[last], width)
        return self.column[at]

    def over(self, known: Set[int]) -> Table:
        """The least that each combination of the decisions known has in the table."""
        kept = tuple(p for p in self.positions if p in known)
        if kept == self.positions:
            return self
        away = tuple(n for n, p in enumerate(self.positions) if p not in known)
        grid = self.column.reshape([self.space.radices[p] for p in self.positions])
        return Table(self.space, kept, np.asarray(grid.min(axis=away)).ravel())


def tabulate(
    space: SpaceBase, quantity: Callable[[Columns], npt.ArrayLike], most: int = MOST, *, legal: bool = False
) -> Table | None:
    """The table of `quantity`, a function of columns; None where it depends on more than `most` combinations.

    It is given the columns that it asks for and no others, so what it depends on need not be said. Illegal combinations
    are in the table too; with `legal`, at infinity where these decisions alone break a rule.
    """
    positions = read_by(space, quantity)
    while prod(space.radices[p] for p in positions) <= most:
        given = PartialColumns(space, positions, _combinations(space, sorted(positions)))
        try:
            column = np.broadcast_to(np.asarray(quantity(given), np.float64), (given.rows,))
        except WantedError as wanted:
            positions |= wanted.positions
        else:
            column = np.where(_legal(space, given), column, np.inf) if legal else column
            return Table(space, tuple(sorted(positions)), column)
    return None


def _legal(space: SpaceBase, given: PartialColumns) -> npt.NDArray[np.bool_]:
    """Which combinations break no rule that their decisions settle."""
    result = np.ones(given.rows, np.bool_)
    for part in space.parts:
        if part.depends <= given.positions:
            with np.errstate(divide="ignore"):
                result &= np.asarray(evaluate(part.holds, given), np.bool_)
    return result


def _combinations(space: SpaceBase, positions: Sequence[int]) -> npt.NDArray[np.int64]:
    """The ids of all combinations of some decisions, in order; the others are at their first value."""
    found = np.zeros(1, np.int64)
    for p in positions:
        found = (found[:, None] + np.arange(space.radices[p], dtype=np.int64) * space.strides[p]).ravel()
    return found
