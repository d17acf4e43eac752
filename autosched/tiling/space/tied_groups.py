"""The rows of least time where a few decisions tie parts that share nothing else: for each of their values apart.

Two nests of a chain run for the same rows at a time. Once that number is settled, the time of either says nothing of
the other's decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Protocol

import numpy as np

from autosched.tiling.space.bounded import BestRows, FastestRows, Ids, Times
from autosched.tiling.space.space import Space
from autosched.tiling.space.subspace import groups_of
from autosched.tiling.space.values import moved_digits
from autosched.tiling.step import Step

MOST_VALUES = 32
"""Combinations of the values of decisions that tie: each is searched by itself."""


def tying(space: Space, reads: Sequence[frozenset[int]]) -> tuple[int, ...]:
    """The decisions that several parts of the time read, where these are few and leave groups that are apart;
    else none."""
    several = [d for d in range(len(space.radices)) if space.radices[d] > 1 and sum(d in r for r in reads) > 1]
    if not several or prod(space.radices[d] for d in several) > MOST_VALUES:
        return ()
    groups = groups_of(settled(space, several, [0] * len(several)), reads)
    return tuple(several) if sum(any(g & r for r in reads) for g in groups) > 1 else ()


def settled(space: Space, positions: Sequence[int], digits: Sequence[int]) -> Space:
    """The rows of a space in which the decisions at these positions have the values of these numbers."""
    decisions = list(space.decisions)
    for position, digit in zip(positions, digits, strict=True):
        decisions[position] = replace(decisions[position], domain=(decisions[position].domain[digit],), labels=())
    return Space(space.name, [Step("all", tuple(decisions), space.rules, space.derived)], space.constants)


class Search(Protocol):
    """What is asked of a search of one of these spaces; see `Bounded`."""

    @property
    def looked_at(self) -> int: ...

    def best(self, k: int, limit_s: float = np.inf, near: tuple[int, float] | None = None) -> BestRows: ...


class TiedGroups:
    """A search for the fastest rows of `space`, as `Bounded` is: one, which `search` makes of a space and the seconds
    of its rows, for each combination of values of the decisions at `positions`."""

    def __init__(
        self,
        space: Space,
        positions: Sequence[int],
        seconds: Callable[[Ids], Times],
        search: Callable[[Space, Callable[[Ids], Times]], Search],
    ) -> None:
        self._space, self._positions, self._seconds = space, tuple(positions), seconds
        self._make = search
        self._searches: dict[tuple[int, ...], tuple[Space, Search]] = {}

    @property
    def looked_at(self) -> int:
        """Prefixes that were joined so far."""
        return sum(search.looked_at for _, search in self._searches.values())

    def best(self, k: int, limit_s: float = np.inf, near: tuple[int, float] | None = None) -> BestRows:
        """See `Bounded.best`."""
        found, proved = FastestRows(k, limit_s, near), True
        for digits in product(*(range(self._space.radices[p]) for p in self._positions)):
            inner, search = self._of(digits)
            best = search.best(k, found.limit_s, near=near)
            proved &= best.proved
            if len(best.ids):
                found.add(self._outside(inner, digits, best.ids), best.seconds)
        return found.best(proved)

    def _of(self, digits: tuple[int, ...]) -> tuple[Space, Search]:
        if digits not in self._searches:
            inner = settled(self._space, self._positions, digits)
            search = self._make(inner, lambda ids: self._seconds(self._outside(inner, digits, ids)))
            self._searches[digits] = inner, search
        return self._searches[digits]

    def _outside(self, inner: Space, digits: tuple[int, ...], ids: Ids) -> Ids:
        """The rows of the whole space that rows of one of these spaces are."""
        places = [p for p in range(len(inner.radices)) if inner.radices[p] > 1]
        own = sum(d * self._space.strides[p] for d, p in zip(digits, self._positions, strict=True))
        return moved_digits(ids, inner, places, self._space, places) + own
