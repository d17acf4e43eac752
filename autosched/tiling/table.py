"""A quantity of a few decisions, worked out once for all combinations of them and looked up by row ids.

A space has millions of rows, but what depends on its register tile alone has some hundred values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from autosched.logic import Var
from autosched.tiling.values import Lazy, Values

if TYPE_CHECKING:
    from autosched.tiling.space import Space

MOST = 1 << 18
"""Combinations above which a table costs more than it saves."""
Columns = Mapping[str, npt.NDArray[np.int64]]


@dataclass(frozen=True)
class Table:
    """`column` (float64) holds the quantity for each combination of the decisions at `positions`, the first the most
    significant digit."""

    space: Space
    positions: tuple[int, ...]
    column: npt.NDArray[np.float64]

    def look_up(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """The quantity of each row."""
        at: npt.NDArray[np.int64] = np.zeros(len(ids), np.int64)
        for first, last in _neighbours(self.positions):
            width = prod(self.space.radices[first : last + 1])
            at = at * width + (ids // self.space.strides[last]) % width
        return self.column[at]


def tabulate(space: Space, quantity: Callable[[Columns], npt.ArrayLike], most: int = MOST) -> Table | None:
    """The table of `quantity`, a function of columns; None where it depends on more than `most` combinations.

    It is given the columns that it asks for and no others, so what it depends on need not be said. Illegal combinations
    are in the table too.
    """
    positions: frozenset[int] = frozenset()
    while prod(space.radices[p] for p in positions) <= most:
        given = _Given(space, sorted(positions))
        try:
            column = np.broadcast_to(np.asarray(quantity(given), np.float64), (given.rows,))
        except _WantedError as wanted:
            positions |= wanted.positions
        else:
            return Table(space, tuple(sorted(positions)), column)
    return None


class _WantedError(Exception):
    """A column was asked for that depends on decisions which are not in the table yet."""

    def __init__(self, positions: frozenset[int]) -> None:
        super().__init__(sorted(positions))
        self.positions = positions


class _Given(Mapping[str, Any]):
    """The columns of all combinations of some decisions, and of nothing that depends on another."""

    def __init__(self, space: Space, positions: Sequence[int]) -> None:
        self._space, self._positions = space, frozenset(positions)
        radices = [space.radices[p] for p in positions]
        self.rows = prod(radices)
        digits = np.unravel_index(np.arange(self.rows), radices) if radices else ()
        base = {
            space.decisions[p].name: np.array(space.decisions[p].domain, np.int64)[digit]
            for p, digit in zip(positions, digits, strict=True)
        }
        self._values = Values(Lazy({**space.constants, **base}, space.derived), self.rows)

    def __getitem__(self, name: str) -> npt.NDArray[np.int64]:
        if name not in self._space.names:
            raise KeyError(name)
        if wanted := self._space.depends_on(Var(name)) - self._positions:
            raise _WantedError(wanted)
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._space.names

    def __iter__(self) -> Iterator[str]:
        return iter(self._space.names)

    def __len__(self) -> int:
        return len(self._space.names)


def _neighbours(positions: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First and last of each run of consecutive positions: their digits stand next to each other in a row's id."""
    start = 0
    for k in range(1, len(positions) + 1):
        if k == len(positions) or positions[k] != positions[k - 1] + 1:
            yield positions[start], positions[k - 1]
            start = k
