"""Where loops stand, as far as that decides how often something runs: exact classes of places, and samples beyond MOST.

Bounds and conditions may read the loops around. A loop that one of them reads is followed value by value; values that
all of them answer alike are one class, so that a ragged last block is a class beside that of the whole ones, and counts
are exact. Only where more than MOST classes come together are they expectations over SAMPLES of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from autosched.codegen.tree.kernel import For, If, Stmt, bodies
from autosched.logic import Bool, Const, Int, evaluate, free_vars

MOST = 4096
"""Classes of places that are told apart."""
LOOKED_AT = 1 << 15
"""Places that are looked at one by one to find their classes."""
SAMPLES = 64

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Question: TypeAlias = tuple[Int | Bool, frozenset[str]]
"""A bound or a condition, and the variables that it reads."""


def questions(stmt: Stmt) -> dict[int, tuple[Question, ...]]:
    """For each loop inside a statement, by its identity, the bounds and conditions inside that read its variable."""
    found: dict[int, tuple[Question, ...]] = {}
    _collect(stmt, found)
    return found


def _collect(stmt: Stmt, found: dict[int, tuple[Question, ...]]) -> list[Question]:
    inside = [q for body in bodies(stmt) for inner in body for q in _collect(inner, found)]
    own: list[Int | Bool] = []
    if isinstance(stmt, For):
        if inside and (mine := tuple(q for q in inside if stmt.var in q[1])):
            found[id(stmt)] = mine
        own = [stmt.lower, stmt.upper]
    elif isinstance(stmt, If):
        own = [stmt.condition]
    return [*inside, *((q, frozenset(read)) for q in own if not isinstance(q, Const) and (read := free_vars(q)))]


@dataclass(frozen=True, slots=True)
class LoopClasses:
    """Classes of places: `runs` of each in all, and where each loop around stands in it, one of its places being there
    for all. Numbers in place of arrays are the same in every class."""

    runs: float | Floats = 1.0
    values: Mapping[str, int | Ints] = field(default_factory=dict)

    @property
    def often(self) -> float:
        """Runs of all classes together."""
        return float(self.runs.sum()) if isinstance(self.runs, np.ndarray) else self.runs

    def where_most(self) -> dict[str, int]:
        """Where the loops stand in the class that runs most."""
        if not isinstance(self.runs, np.ndarray):
            return {}
        n = int(np.argmax(self.runs))
        return {name: int(v[n]) for name, v in self.values.items() if isinstance(v, np.ndarray)}

    def value(self, var: str) -> int:
        """Where a loop stands in the class that runs most."""
        found = self.values[var]
        return found if isinstance(found, int) else self.where_most()[var]

    def fixed(self, var: str) -> LoopClasses:
        """Inside a loop of one trip, whose variable is 0."""
        return LoopClasses(self.runs, {**self.values, var: 0})

    def where(self, condition: Bool) -> LoopClasses | None:
        """Only where the condition holds; None where it never does."""
        kept = evaluate(condition, self.values)
        if not isinstance(kept, np.ndarray):
            return self if kept else None
        return self._only(np.asarray(kept, np.bool_)) if kept.any() else None

    def inside(self, loop: For, asked: Sequence[Question], depth: int) -> LoopClasses | None:
        """Inside a loop that so many others are around; `asked` are the questions that read it. None where it has no
        trips."""
        lower, upper = evaluate(loop.lower, self.values), evaluate(loop.upper, self.values)
        trips = -(-(upper - lower) // loop.step)
        if not isinstance(trips, np.ndarray):
            if trips <= 0:
                return None
        elif not (trips > 0).all():
            kept = self._only(trips > 0)
            return kept.inside(loop, asked, depth) if (trips > 0).any() else None
        if not asked or (not isinstance(trips, np.ndarray) and trips == 1):
            return LoopClasses(self.runs * trips, {**self.values, loop.var: lower + trips // 2 * loop.step})
        size = len(self.runs) if isinstance(self.runs, np.ndarray) else 1
        each = np.broadcast_to(np.asarray(trips, np.int64), (size,))
        low = np.broadcast_to(np.asarray(lower, np.int64), (size,))
        found = self._classes(loop, each, low, asked) if int(each.sum()) <= LOOKED_AT else None
        return self._sampled(loop, each, low, depth) if found is None else found

    def _classes(self, loop: For, trips: Ints, lower: Ints, asked: Sequence[Question]) -> LoopClasses | None:
        """Every value of the loop, those that are answered alike as one class; None where there are more than MOST."""
        from_class = np.repeat(np.arange(len(trips)), trips)
        nth = np.arange(len(from_class)) - np.repeat(np.cumsum(trips) - trips, trips)
        every = self._taken(from_class)
        place = lower[from_class] + nth * loop.step
        known = {**every.values, loop.var: place}
        key = from_class
        for question, read in asked:
            answer = np.asarray(evaluate(question, known), np.int64) if read <= known.keys() else place
            _, number = np.unique(np.broadcast_to(answer, place.shape), return_inverse=True)
            _, key = np.unique(key * (int(number.max()) + 1) + number, return_inverse=True)
        count = np.bincount(key)
        if len(count) > MOST:
            return None
        middle = np.argsort(key, kind="stable")[np.cumsum(count) - count + count // 2]
        taken = LoopClasses(every.runs, known)._taken(middle)
        return LoopClasses(np.asarray(taken.runs * count, np.float64), taken.values)

    def _sampled(self, loop: For, trips: Ints, lower: Ints, depth: int) -> LoopClasses:
        """One value of the loop for each of SAMPLES places and more."""
        copies = -(-SAMPLES // len(trips))
        several = np.tile(np.arange(len(trips)), copies)
        taken = self._taken(several)
        place = lower[several] + np.floor(_shares(depth, len(several)) * trips[several]).astype(np.int64) * loop.step
        return LoopClasses(taken.runs * trips[several] / copies, {**taken.values, loop.var: place})

    def _taken(self, which: Ints) -> LoopClasses:
        """The classes with these numbers, in this order, each as often as it is named."""
        runs = self.runs[which] if isinstance(self.runs, np.ndarray) else np.full(len(which), self.runs)
        return LoopClasses(runs, {n: v[which] if isinstance(v, np.ndarray) else v for n, v in self.values.items()})

    def _only(self, kept: npt.NDArray[np.bool_]) -> LoopClasses:
        return self if kept.all() else self._taken(np.flatnonzero(kept))


@lru_cache(maxsize=64)
def _shares(depth: int, samples: int) -> Floats:
    """Where each sample stands in a loop inside `depth` others, as a share of its trips: additive recurrences with
    irrational steps spread samples evenly over every pair of loops."""
    return np.asarray((np.arange(samples) * (np.sqrt(_prime(depth)) % 1.0) + 0.5) % 1.0)


def _prime(k: int) -> int:
    return (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53)[k % 16]
