"""`PartialColumns`: columns of rows of which only some decisions are known; asking for more raises `WantedError`.

What a quantity depends on need not be said then: it is evaluated, and what it asks for is found out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt

from autosched.logic import Var
from autosched.tiling.space.base import SpaceBase


class WantedError(Exception):
    """A column was asked for that depends on decisions which are not known; `positions` are all that it depends on."""

    def __init__(self, positions: frozenset[int]) -> None:
        super().__init__(sorted(positions))
        self.positions = positions


class PartialColumns(Mapping[str, npt.NDArray[np.int64]]):
    """The columns of the rows `ids` that depend on the decisions at `positions` and on nothing else."""

    def __init__(self, space: SpaceBase, positions: Iterable[int], ids: npt.NDArray[np.int64]) -> None:
        self.space, self.positions, self.ids = space, frozenset(positions), ids
        self.rows = len(ids)
        self._values = space.values(ids)

    def __getitem__(self, name: str) -> npt.NDArray[np.int64]:
        if name not in self.space.names:
            raise KeyError(name)
        reached = self.space.depends_on(Var(name))
        if not reached <= self.positions:
            raise WantedError(reached)
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self.space.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.space.names)

    def __len__(self) -> int:
        return len(self.space.names)


class RecordingColumns(PartialColumns):
    """The columns of one row, all of them; `noted` is what those that were asked for depend on."""

    def __init__(self, space: SpaceBase, row: int) -> None:
        super().__init__(space, range(len(space.decisions)), np.array([row], np.int64))
        self.noted: frozenset[int] = frozenset()

    def __getitem__(self, name: str) -> npt.NDArray[np.int64]:
        column = super().__getitem__(name)
        self.noted |= self.space.depends_on(Var(name))
        return column


def read_by(space: SpaceBase, quantity: Callable[[PartialColumns], object], row: int = 0) -> frozenset[int]:
    """What a quantity asks for of one row: all that it reads, unless it looks at numbers before it asks for more. To be
    told of one missing decision after the other would be an evaluation each."""
    noting = RecordingColumns(space, row)
    quantity(noting)
    return noting.noted


def masked(space: SpaceBase, ids: npt.NDArray[np.int64], positions: Iterable[int]) -> npt.NDArray[np.int64]:
    """The ids of these rows with every decision but those at `positions` at its first value."""
    kept: npt.NDArray[np.int64] = np.zeros(len(ids), np.int64)
    for first, last in neighbouring(sorted(positions)):
        low = space.strides[last]
        kept += ids // low * low
        if first:  # the most significant digits have nothing above them
            high = space.strides[first - 1]
            kept -= ids // high * high
    return kept


def neighbouring(positions: Iterable[int]) -> Iterator[tuple[int, int]]:
    """First and last of each run of consecutive numbers: digits that stand next to each other in a row's id."""
    run: tuple[int, int] | None = None
    for p in positions:
        if run is not None and p == run[1] + 1:
            run = run[0], p
            continue
        if run is not None:
            yield run
        run = p, p
    if run is not None:
        yield run
