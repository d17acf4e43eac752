"""`Scores`: the clock's seconds of a plan's legal rows, worked out only for rows that a lower bound does not rule out.

The bound is a sum of tables over a few decisions each, so it costs a look-up a row where the clock costs a microsecond.
Whoever wants the best rows asks for all that take at most some time: a row whose bound is above that is not among them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from autosched.tiling.space.table import Table

Ids = npt.NDArray[np.int64]
Seconds = npt.NDArray[np.float32]
T = TypeVar("T")

BLOCK = 1 << 16  # rows a block: larger ones gain nothing, smaller ones pay numpy and the interpreter more often
PIECE = 4  # blocks that each thread scores before the search loop looks for finished trials: some 0.4 s
_ROUNDING = 1 - 1e-6
"""Bound and clock add the same numbers in another order, and seconds are kept in float32."""


class Scores:
    """Scores of the legal rows `ids` (sorted) of one plan.

    `seconds` is the clock, for any of its rows; runs of `length` consecutive ids (from a multiple of it) share one time
    and are worked out once. `floors` are tables of a space that add up to a lower bound. The clock is
    asked for `block` runs at a time.
    """

    def __init__(
        self,
        ids: Ids,
        seconds: Callable[[Ids], Seconds],
        length: int = 1,
        floors: Sequence[Table] = (),
        block: int = BLOCK,
    ) -> None:
        self.ids, self._block = ids, block
        self._clock = seconds
        heads = ids // length if length > 1 else ids
        self._first = np.flatnonzero(np.diff(heads, prepend=-1))
        """Where each run starts among the rows."""
        self._sizes = np.diff(self._first, append=len(ids))
        self._heads = ids[self._first] if length > 1 else ids
        self._floor: Seconds | None = None
        self._tables = tuple(floors)
        self._seconds = np.full(len(self._first), np.inf, np.float32)
        self._open = np.ones(len(self._first), np.bool_)
        """Runs without a score."""
        self._limit = -np.inf

    @property
    def worked_out(self) -> int:
        """Rows whose seconds the clock was asked for, a run counting once."""
        return int(np.count_nonzero(~self._open))

    def pending(self, limit_s: float) -> list[Ids]:
        """Blocks of runs that may take at most `limit_s` and have no score yet."""
        if limit_s <= self._limit:
            return []
        mask = self._open if limit_s == np.inf else self._open & (self._floors() <= limit_s)
        runs = np.flatnonzero(mask)
        return [runs[top : top + self._block] for top in range(0, len(runs), self._block)]

    def work_out(self, runs: Ids) -> None:
        """Ask the clock for these runs."""
        self._seconds[runs] = self._clock(self._heads[runs])
        self._open[runs] = False

    def settle(self, limit_s: float) -> None:
        """All rows of at most `limit_s` have their score now."""
        self._limit = max(self._limit, limit_s)

    def count(self, limit_s: float) -> int:
        """Rows that take at most `limit_s`; right up to what is settled."""
        return int(self._sizes[self._seconds <= limit_s].sum())

    def best(self, k: int, limit_s: float = np.inf) -> tuple[Ids, Seconds]:
        """Up to `k` rows of at most `limit_s`, fastest first, then in the order of their ids."""
        runs = np.flatnonzero(self._seconds <= limit_s)
        if k < len(runs):
            bound = np.partition(self._seconds[runs], k)[k]
            runs = runs[self._seconds[runs] <= bound]
        runs = runs[np.argsort(self._seconds[runs], kind="stable")][:k]
        sizes = self._sizes[runs]
        starts = np.repeat(self._first[runs] - np.cumsum(sizes) + sizes, sizes)
        rows = starts + np.arange(len(starts))
        return self.ids[rows[:k]], np.repeat(self._seconds[runs], sizes)[:k]

    def least(self, complete: bool) -> float:
        """Seconds that no row takes less than, by the tables; 0 without any. Where the rows are a sample (`complete` is
        False), none of the plan's does."""
        if complete:
            return float(self._floors().min(initial=np.inf)) if self._tables else 0.0
        return sum(float(table.column.min()) for table in self._tables) * _ROUNDING

    def everything(self) -> Seconds:
        """The seconds of all rows, once all are worked out."""
        return np.repeat(self._seconds, self._sizes)

    def _floors(self) -> Seconds:
        if self._floor is None:
            total = np.zeros(len(self._heads), np.float64)
            for table in self._tables:
                total += table.look_up(self._heads)
            self._floor = (total * _ROUNDING).astype(np.float32)
        return self._floor


def settle(scores: Sequence[Scores], limit_s: float, threads: int = 1) -> None:
    """Work out all rows of these plans that may take at most `limit_s`, their blocks shared among the threads."""
    result_of(settling(scores, limit_s, threads))


def settling(scores: Sequence[Scores], limit_s: float, threads: int = 1) -> Generator[None, None, None]:
    """`settle` in pieces of a few blocks a thread; the rows are settled at the end of the last piece."""
    tasks = [(s, runs) for s in scores for runs in s.pending(limit_s)]

    def run(task: tuple[Scores, Ids]) -> None:
        task[0].work_out(task[1])

    piece = PIECE * threads
    for top in range(0, len(tasks), piece):
        some = tasks[top : top + piece]
        if threads > 1 and len(some) > 1:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(run, some))
        else:
            for task in some:
                run(task)
        yield
    for s in scores:
        s.settle(limit_s)


def result_of(pieces: Generator[None, None, T]) -> T:
    """Do all the pieces of some work; what it returns."""
    while True:
        try:
            next(pieces)
        except StopIteration as end:
            result: T = end.value
            return result
