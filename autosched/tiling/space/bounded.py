"""The rows of least time in a space that is too large to list, by staged joins that drop prefixes too slow for them.

Decisions join one group at a time, as in `enumerate`. Each prefix has a lower bound: for each part of the time its
exact value, once all that it depends on is decided, else the least that a table of its floor holds for what is. A
prefix whose bound is above the slowest of the best rows so far has no better completion, and goes. Prefixes of least
bound are completed first, so that good rows are known early.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.tiling.space.base import BLOCK, RulePart
from autosched.tiling.space.enumerate import ROOT, Joiner, JoinStage, Prefixes, plan_stages
from autosched.tiling.space.memoize_columns import memoize_columns
from autosched.tiling.space.partial_columns import PartialColumns, WantedError, read_by
from autosched.tiling.space.space import Space
from autosched.tiling.space.table import Columns, tabulate
from autosched.tiling.space.values import rows_of

Ids = npt.NDArray[np.int64]
Times = npt.NDArray[np.floating[Any]]
"""Seconds of rows; float32 where the clock keeps them so."""
Column = npt.NDArray[np.float64]
Quantity = Callable[[Columns], Column]
Least = Callable[[Columns, Column], Column]

SLACK = 1 - 1e-6
"""Bounds and times add the same numbers in another order, and times are kept in float32."""
MOST_PAIRS = 1 << 32
"""The most prefixes that a search joins before it ends with the best so far (half a minute)."""
FIRST, FIRST_EACH = 1 << 14, 4
"""Rows, and rows for each one wanted, that are completed before a limit is known: those of least bound set one that
spares most others."""


@dataclass(frozen=True)
class Timed:
    """One part of a row's time: `exact`, and a `floor` below it that reads fewer decisions; seconds per row. `least` of
    columns and floors is what rows take at least whose floors are no less than these: it stands between both by what
    it reads, too."""

    exact: Quantity
    floor: Quantity
    least: Least | None = None


def timed(
    exact: Sequence[Quantity], floors: Sequence[Quantity], leasts: Sequence[Least | None] = ()
) -> tuple[Timed, ...]:
    """Parts of the time by their quantities, `leasts` where there are any."""
    return tuple(Timed(*each) for each in zip(exact, floors, leasts or [None] * len(exact), strict=True))


@dataclass(frozen=True)
class BestRows:
    """`ids` of the rows of least time with their `seconds`, fastest first. `proved` is False where the search ended
    early, so that a better row may be missing."""

    ids: Ids
    seconds: Times
    proved: bool

    def up_to(self, k: int, limit_s: float) -> BestRows:
        """Those of at most `limit_s`, `k` at most."""
        fast = self.seconds[:k] <= limit_s
        return BestRows(self.ids[:k][fast], self.seconds[:k][fast], self.proved)


class Bounded:
    """A search for the fastest rows of `space`. `parts` add up to a row's time; `seconds(ids)` is that time. With
    `wanted`, decisions (positions) that rules tie to no others, only those are made, the others being at their first
    values: parts and seconds are of what these alone decide."""

    def __init__(
        self,
        space: Space,
        parts: Sequence[Timed],
        seconds: Callable[[Ids], Times],
        block: int = BLOCK,
        wanted: frozenset[int] | None = None,
    ) -> None:
        self._space, self._parts, self._seconds = space, tuple(parts), seconds
        self._block = block
        self._tables = [tabulate(space, p.floor, legal=True) for p in parts]
        self._reads = [read_by_some(space, p.exact) for p in parts]
        self._between = [self._read_between(p) for p in parts]
        floors = [frozenset[int]() if t is None else frozenset(t.positions) for t in self._tables]
        early = [f if b is None else f & b for f, b in zip(floors, self._between, strict=True)]
        between = sorted((b for b in self._between if b), key=len, reverse=True)
        groups = early + between + sorted(self._reads, key=len, reverse=True)
        self._joiner = Joiner(space, block, stages=grouped_stages(space, groups, wanted))
        stages = self._joiner.stages
        self._known = [frozenset(d for s in stages[: n + 1] for d in s.decisions) for n in range(len(stages))]
        self._least = [[t and t.over(known) for t in self._tables] for known in self._known]
        said = frozenset[int]().union(*(f if b is None else b for f, b in zip(floors, self._between, strict=True)))
        self._bounded = next(n for n, known in enumerate(self._known) if said <= known)
        """The stage after which bounds no longer rise before times are known."""
        self.looked_at = 0
        """Prefixes that were joined so far, those that a rule or a bound removed at once among them."""

    def best(
        self, k: int, limit_s: float = np.inf, most: int = MOST_PAIRS, near: tuple[int, float] | None = None
    ) -> BestRows:
        """The `k` rows of least time, of those that take at most `limit_s`; ties at the end may be left out. With
        `near`, a count and a factor, rows that take more than so many times the time of that fastest one, too."""
        stages = self._joiner.stages
        widths = [prod(self._space.radices[d] for d in s.decisions) for s in stages]
        pools: list[_Pool] = [_Pool() for _ in stages]
        pools[0].add(ROOT, np.zeros(1))
        found = FastestRows(k, limit_s, near)
        end = self.looked_at + most
        while any(p.rows for p in pools):
            if self.looked_at >= end:
                break
            first = min(self._block, max(FIRST, FIRST_EACH * k)) if found.limit_s == np.inf else self._block
            tall = [max(1, (first if n > self._bounded else self._block) // w) for n, w in enumerate(widths)]
            at = _next(pools, tall)
            width = widths[at]
            chunk = pools[at].take(tall[at], found.limit_s)
            if chunk is None:
                continue
            for left in range(0, width, self._block):
                group = self._joiner.group(stages[at].decisions, left, min(width, left + self._block))
                self.looked_at += len(chunk.ids) * len(group.ids)
                joined = self._joiner.pruned(stages[at], chunk, group)
                bounds, exact = self._bounds(joined.ids, at)
                if at + 1 < len(stages):
                    alive = np.flatnonzero(bounds * SLACK <= found.limit_s)
                    pools[at + 1].add(joined[alive], bounds[alive])
                    continue
                limit_s = found.limit_s
                if exact and len(bounds) > k:  # only the best of these can be among the best of all
                    limit_s = min(limit_s, float(np.partition(bounds, k - 1)[k - 1]) / SLACK)
                ids = joined.ids[bounds * SLACK <= limit_s]
                if len(ids):
                    found.add(ids, self._seconds(ids))
        return found.best(all(not p.rows or p.least * SLACK > found.limit_s for p in pools))

    def _bounds(self, ids: Ids, stage: int) -> tuple[Column, bool]:
        """For prefixes after a stage: seconds that none of their completions takes less than, and whether these are
        what all of them take."""
        given = PartialColumns(self._space, self._known[stage], ids)
        total, every = np.zeros(len(ids)), True
        for n, (part, table) in enumerate(zip(self._parts, self._least[stage], strict=True)):
            exact = self._exact(n, part, given)
            every &= exact is not None
            if exact is not None:
                total += exact
            else:
                floor = np.zeros(len(ids)) if table is None else table.look_up(ids)
                total += self._at_least(n, part, given, floor)
        return total, every

    def _at_least(self, n: int, part: Timed, given: PartialColumns, floor: Column) -> Column:
        """A lower bound of a part, at least its floor; higher once the decisions about traffic are made."""
        reads = self._between[n]
        if part.least is None or reads is None or not reads <= given.positions:
            return floor
        try:
            return np.maximum(floor, part.least(given, floor))
        except WantedError:
            return floor

    def _read_between(self, part: Timed) -> frozenset[int] | None:
        """The decisions that a part's `least` reads."""
        least = part.least
        return None if least is None else read_by_some(self._space, lambda v: least(v, np.zeros(rows_of(v))))

    def _exact(self, n: int, part: Timed, given: PartialColumns) -> Column | None:
        """A part's time, where all decisions that it reads are made."""
        if not self._reads[n] <= given.positions:
            return None
        name = f"time that reads {sorted(self._reads[n])}"
        try:
            return np.asarray(memoize_columns(given, name, lambda v: (part.exact(v),))[0], np.float64)
        except WantedError:  # what no row that was seen was asked for
            return None


class _Pool:
    """Prefixes that wait for one stage, and their bounds."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Prefixes, Column]] = []
        self.rows = 0

    @property
    def least(self) -> float:
        """The least bound of the waiting prefixes."""
        return min((float(b.min()) for _, b in self._waiting), default=np.inf)

    def add(self, prefixes: Prefixes, bounds: Column) -> None:
        if len(bounds):
            self._waiting.append((prefixes, bounds))
            self.rows += len(bounds)

    def take(self, rows: int, limit_s: float) -> Prefixes | None:
        """Up to so many prefixes of least bound; those above the limit are dropped. None where nothing is left."""
        prefixes = Prefixes.join([p for p, _ in self._waiting])
        bounds = np.concatenate([b for _, b in self._waiting])
        self._waiting, self.rows = [], 0
        alive = np.flatnonzero(bounds * SLACK <= limit_s)
        if not len(alive):
            return None
        if len(alive) > rows:
            order = np.argpartition(bounds[alive], rows)
            alive, rest = alive[order[:rows]], alive[order[rows:]]
            self.add(prefixes[rest], bounds[rest])
        return prefixes[np.sort(alive)]


def _next(pools: Sequence[_Pool], tall: Sequence[int]) -> int:
    """The stage to go on with: the last one that has a block to do, of `tall` prefixes each, else the first that has
    anything, so that later ones fill up."""
    last = (at for at in reversed(range(len(pools))) if pools[at].rows >= tall[at])
    return next(chain(last, (at for at, pool in enumerate(pools) if pool.rows)))


class FastestRows:
    """The `k` best rows so far; `limit_s` is what a further one must not exceed."""

    def __init__(self, k: int, limit_s: float, near: tuple[int, float] | None = None) -> None:
        self._k, self._near = k, near
        self._ids: Ids = np.zeros(0, np.int64)
        self._seconds: Times = np.zeros(0, np.float32)
        self.limit_s = limit_s

    def add(self, ids: Ids, seconds: Times) -> None:
        fast = np.flatnonzero(seconds <= self.limit_s)
        self._ids = np.concatenate([self._ids, ids[fast]])
        self._seconds = np.concatenate([self._seconds, seconds[fast]])
        if len(self._ids) > self._k:
            kept = np.argpartition(self._seconds, self._k - 1)[: self._k]
            self._ids, self._seconds = self._ids[kept], self._seconds[kept]
        if len(self._ids) == self._k:
            self.limit_s = min(self.limit_s, float(self._seconds.max()))
        if self._near is not None and len(self._ids) >= self._near[0]:
            count, factor = self._near
            self.limit_s = min(self.limit_s, factor * float(np.partition(self._seconds, count - 1)[count - 1]))

    def best(self, proved: bool) -> BestRows:
        order = np.lexsort((self._ids, self._seconds))
        order = order[self._seconds[order] <= self.limit_s]
        return BestRows(self._ids[order], self._seconds[order], proved)


def read_by_some(space: Space, quantity: Quantity, rows: Ids | None = None) -> frozenset[int]:
    """Positions of the decisions that a quantity reads, of these legal rows (None: of a few)."""
    rows = space.few if rows is None else rows
    if not len(rows):
        return frozenset()
    reads = read_by(space, quantity, int(rows[0]))
    while True:
        try:
            quantity(PartialColumns(space, reads, rows))
        except WantedError as wanted:
            reads |= wanted.positions
        else:
            return reads


def grouped_stages(
    space: Space, groups: Sequence[frozenset[int]], wanted: frozenset[int] | None = None
) -> tuple[JoinStage, ...]:
    """A join order that decides one group after the other, then the rest (of `wanted`, or of all): what a part of the
    time depends on is together, and its exact value known early."""
    everything = frozenset(range(len(space.decisions))) if wanted is None else wanted
    single = frozenset(d for d in everything if space.radices[d] == 1)  # first: a stage of their own adds nothing
    fixed: set[int] = set()
    steps: list[tuple[tuple[int, ...], tuple[RulePart, ...]]] = []
    pending = [p for p in space.parts if p.depends <= everything]
    for group in (single, *groups, everything):
        here = (group & everything) - fixed
        inside = [p for p in pending if p.depends <= fixed | here]
        for stage in plan_stages(space, inside, here):
            fixed |= set(stage.decisions)
            done = tuple(p for p in pending if p.depends <= fixed)
            pending = [p for p in pending if p not in done]
            if stage.decisions or done:
                steps.append((stage.decisions, done))
    return JoinStage.chain(space, steps)
