"""Groups of decisions that decide alike in several spaces, or in one, are searched once.

A program of two products has a dozen plans, which combine a few ways of each product. The best combinations of one
product's decisions are the same in all plans that compute it the same way, and to find them takes a second. Two
products of the same sizes, of which one has an epilogue, differ by a number of seconds, and by what no time reads:
their best combinations are the same too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from autosched.tiling.space.bounded import BestRows, Bounded, Column, Ids
from autosched.tiling.space.few_rows import Listed
from autosched.tiling.space.known import KnownBest
from autosched.tiling.space.partial_columns import WantedError, masked
from autosched.tiling.space.space import Space
from autosched.tiling.space.values import moved_digits

SOME = 128
"""Rows on which two groups must agree to be taken for alike, at least; what is found is looked at again."""


class Group:
    """The search among combinations of a group of a space's decisions, the others being at their first values.
    `seconds` of rows is the time that these decide; `search` is made when it is needed."""

    def __init__(
        self,
        space: Space,
        positions: frozenset[int],
        seconds: Callable[[Ids], Column],
        search: Callable[[], Bounded | Listed],
    ) -> None:
        self.space, self.seconds = space, seconds
        self.positions = tuple(p for p in sorted(positions) if space.radices[p] > 1)
        self._make = search
        self._sample: tuple[Ids, Column] | None = None
        self._known = KnownBest(lambda k, limit_s: self._search.best(k, limit_s), 1)

    @property
    def rules(self) -> tuple[object, ...]:
        """The values of its decisions, and what rules say of them: equal where the same combinations are legal."""
        place = {p: n for n, p in enumerate(self.positions)}
        subspaces = [(s.space, tuple(place.get(p) for p in s.positions)) for s in self.space.subspaces]
        inside = tuple((rules, at) for rules, at in subspaces if any(n is not None for n in at))
        return inside, tuple(self.space.decisions[p].domain for p in self.positions)

    @property
    def looked_at(self) -> int:
        """Prefixes that were joined so far."""
        return self._search.looked_at if "_search" in self.__dict__ else 0

    @cached_property
    def _search(self) -> Bounded | Listed:
        return self._make()

    def best(self, k: int, limit_s: float = np.inf) -> BestRows:
        """The combinations of least time, of those that take at most `limit_s`, remembered."""
        return self._known.best(k, limit_s)

    def some(self, n: int) -> Ids:
        """Some `n` of its combinations."""
        return masked(self.space, self.space.thinned(n, np.random.default_rng(1)), self.positions)

    def sampled(self, n: int, rng: np.random.Generator) -> tuple[Ids, Column]:
        """Some `n` of its combinations at random, from then on the same, and their seconds."""
        if self._sample is None or len(self._sample[0]) < n:
            ids = masked(self.space, self.space.thinned(n, rng), self.positions)
            self._sample = ids, self.seconds(ids)
        return self._sample

    def here(self, other: Group, ids: Ids) -> Ids:
        """The same combinations as those of another group, digit by digit."""
        return moved_digits(ids, other.space, other.positions, self.space, self.positions)

    def times(self, other: Group, ids: Ids) -> Column | None:
        """Seconds that this group takes for combinations of another one with the same rules; None where they read
        decisions that are not in the group."""
        try:
            return self.seconds(self.here(other, ids))
        except WantedError:
            return None


class Same:
    """A group that is searched elsewhere, where its combinations take `more` seconds less."""

    def __init__(self, group: Group, known: Group, more: float) -> None:
        self._group, self._known, self._more = group, known, more

    @property
    def looked_at(self) -> int:
        return 0

    def best(self, k: int, limit_s: float = np.inf) -> BestRows:
        """What was found there."""
        found = self._known.best(k, limit_s - self._more)
        return BestRows(self._group.here(self._known, found.ids), found.seconds + self._more, found.proved)

    def sampled(self, n: int, rng: np.random.Generator) -> tuple[Ids, Column]:
        """Those that were drawn there."""
        ids, seconds = self._known.sampled(n, rng)
        return self._group.here(self._known, ids), seconds + self._more


class Alike:
    """The groups of several spaces, by the rules that they follow, with the seconds that each takes for the same
    combinations: `some` of the first of them."""

    def __init__(self, some: int = SOME) -> None:
        self._some = some
        self._asked: dict[tuple[object, ...], Ids] = {}
        self._known: dict[tuple[object, ...], list[tuple[Group, Column]]] = {}

    def of(self, group: Group) -> Group | Same:
        """The group, or one that was here before and agrees with it."""
        rules = group.rules
        known = self._known.setdefault(rules, [])
        if not known:
            self._asked[rules] = group.some(self._some)
        times = group.times(known[0][0] if known else group, self._asked[rules])
        if times is None:
            return group
        for other, theirs in known:
            more = float(np.mean(times - theirs)) if len(times) else 0.0
            if np.allclose(times, theirs + more, rtol=1e-9, atol=0.0):
                return Same(group, other, more)
        known.append((group, times))
        return group
