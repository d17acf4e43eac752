"""The rows of least time in a space of several parts that share nothing: the best of each part, combined.

Two products of one program on a GPU have 10^5 legal rows each and 10^10 together. Where no rule ties the decisions of
one to those of the other and the time is a sum over both, the best rows of the whole are made of best rows of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

import numpy as np

from autosched.tiling.space.alike import Alike, Group, Same
from autosched.tiling.space.base import BLOCK
from autosched.tiling.space.bounded import SLACK, BestRows, Bounded, Column, Ids, Timed, Times, read_by_some
from autosched.tiling.space.few_rows import Listed
from autosched.tiling.space.partial_columns import PartialColumns, WantedError
from autosched.tiling.space.space import Space
from autosched.tiling.space.subspace import groups_of
from autosched.tiling.space.tied_groups import TiedGroups, tying

FEW = 1 << 10
"""Combinations of a group that take less time to list and score than to bound."""
AT_ONCE = 1 << 11
"""Rows of a group that are looked for at once: of 10,000 best sums of two rows some hundred of each are part."""


class IndependentGroups:
    """A search for the fastest rows of `space`, as `Bounded` is: one of those for each group of decisions that shares
    neither a rule nor a part of the time with the others. `parts` and `seconds` are those of `Bounded`; `alike` are
    groups of other spaces, whose results serve here where they are the same. What the parts read is seen in the rows
    `seen` (None: in a few of the space); `at_once` rows of a group are looked for at first, and groups of up to `few`
    combinations are listed."""

    def __init__(
        self,
        space: Space,
        parts: Sequence[Timed],
        seconds: Callable[[Ids], Times],
        block: int = BLOCK,
        alike: Alike | None = None,
        seen: Ids | None = None,
        at_once: int = AT_ONCE,
        few: int = FEW,
    ) -> None:
        self._space, self._parts, self._seconds, self._block = space, tuple(parts), seconds, block
        self._alike, self._at_once, self._few = alike, at_once, few
        self._reads = [read_by_some(space, p.exact, seen) for p in parts]
        self._searches = self._split()

    @property
    def looked_at(self) -> int:
        """Prefixes that were joined so far, in all groups."""
        return sum(search.looked_at for search in self._searches)

    @property
    def several(self) -> bool:
        """Whether there are several groups, as far as is known."""
        return len(self._searches) > 1

    @property
    def tied(self) -> bool:
        """Whether groups are apart once a few decisions are settled."""
        return isinstance(self._searches[0], TiedGroups)

    def best(self, k: int, limit_s: float = np.inf, near: tuple[int, float] | None = None) -> BestRows:
        """See `Bounded.best`."""
        while self.several:
            try:
                combined = self._combined(k, limit_s, near)
            except WantedError:  # some row asks for what no row that was seen was asked for: groups are tied after all
                combined = None
            if combined is not None:
                return combined
            self._alike = None  # or a group of another space is not the same in all its rows
            self._searches = self._split()
        (search,) = self._searches
        assert isinstance(search, Bounded | TiedGroups)
        return search.best(k, limit_s, near=near)

    def sampled(self, n: int, rng: np.random.Generator) -> tuple[Ids, Times] | None:
        """Some `n` legal rows at random, sorted, and their seconds where these are sums over groups; else None.
        Rows that are drawn twice are there once."""
        searches = [s for s in self._searches if not isinstance(s, Bounded | TiedGroups)]
        try:
            drawn = [search.sampled(n, rng) for search in searches]
        except WantedError:
            return None
        if not drawn or not all(len(ids) for ids, _ in drawn):
            return None
        at = [rng.integers(0, len(ids), n) for ids, _ in drawn]
        every = np.sum([ids[chosen] for (ids, _), chosen in zip(drawn, at, strict=True)], axis=0)
        seconds = np.sum([s[chosen] for (_, s), chosen in zip(drawn, at, strict=True)], axis=0)
        ids, first = np.unique(every, return_index=True)
        return ids, seconds[first]

    def _split(self) -> list[Bounded] | list[TiedGroups] | list[Group | Same]:
        """A search for each group that time is read of, and one for all else: groups that are alike but for that are
        searched once. Of one group a search for all values of the decisions that tie it, where a few do."""
        groups = groups_of(self._space, self._reads)
        timed = [g for g in groups if any(g & reads for reads in self._reads)]
        if len(timed) < 2 and (ties := tying(self._space, self._reads)):
            return [TiedGroups(self._space, ties, self._seconds, self._settled)]
        if len(timed) < 2:
            return [Bounded(self._space, self._parts, self._seconds, self._block)]
        rest = [frozenset[int]().union(*(g for g in groups if g not in timed))]
        single = frozenset(d for d, radix in enumerate(self._space.radices) if radix == 1)
        return [self._search(group, single, n == 0) for n, group in enumerate([*timed, *(g for g in rest if g)])]

    def _settled(self, space: Space, seconds: Callable[[Ids], Times]) -> IndependentGroups:
        return IndependentGroups(
            space, self._parts, seconds, self._block, self._alike, at_once=self._at_once, few=self._few
        )

    def _search(self, own: frozenset[int], single: frozenset[int], first: bool) -> Group | Same:
        """The best of a group's combinations; parts that read no decision of several values count in the first, once.
        Decisions of a `single` value are in all groups."""
        group = own | single
        mine = [n for n, reads in enumerate(self._reads) if reads <= group and (reads - single or first)]

        def seconds(ids: Ids) -> Column:
            given = PartialColumns(self._space, group, ids)
            total = np.zeros(len(ids))
            for n in mine:
                try:
                    total += self._parts[n].exact(given)
                except WantedError as wanted:
                    self._reads[n] |= wanted.positions
                    raise
            return total

        if prod(self._space.radices[d] for d in group) <= self._few:
            search: Callable[[], Bounded | Listed] = partial(Listed, self._space, seconds, group)
        else:
            parts = [self._parts[n] for n in mine]
            search = partial(Bounded, self._space, parts, seconds, self._block, wanted=group)
        made = Group(self._space, group, seconds, search)
        return made if self._alike is None else self._alike.of(made)

    def _combined(self, k: int, limit_s: float, near: tuple[int, float] | None) -> BestRows | None:
        """The best sums of one row of each group; None where groups of other spaces do not add up to rows of this."""
        found = self._enough(k, limit_s, near)
        ids, total = _all_sums(found, k)
        seconds = self._seconds(ids)
        if self._alike is not None and not np.allclose(seconds, total, rtol=1e-4):
            return None
        order = np.lexsort((ids, seconds))
        if near is not None and len(order) >= near[0]:  # past it sums are missing, whose rows `_enough` left out
            limit_s = min(limit_s, near[1] * float(seconds[order[near[0] - 1]]))
        order = order[seconds[order] <= limit_s]
        return BestRows(ids[order], seconds[order], all(best.proved for best in found))

    def _enough(self, k: int, limit_s: float, near: tuple[int, float] | None) -> list[BestRows]:
        """Of each group the rows that the best sums are made of. Some rows of each have enough sums to say how much the
        last of these takes at most, and with the fastest rows of the others no row may take more."""
        some = [search.best(min(k, self._at_once)) for search in self._searches]
        if not all(len(best.ids) for best in some):
            return some
        _, total = _all_sums(some, k)
        if len(total) == k:
            limit_s = min(limit_s, float(total[-1]))
        if near is not None and len(total) >= near[0]:
            limit_s = min(limit_s, near[1] * float(total[near[0] - 1]))
        beyond = limit_s / SLACK - sum(float(best.seconds[0]) for best in some)
        return [s.best(k, beyond + float(best.seconds[0])) for s, best in zip(self._searches, some, strict=True)]


def _all_sums(found: Sequence[BestRows], k: int) -> tuple[Ids, Times]:
    """The `k` least sums of a row of each."""
    sums = found[0].ids, found[0].seconds
    for more in found[1:]:
        sums = _sums(sums, (more.ids, more.seconds), k)
    return sums


def _sums(first: tuple[Ids, Times], second: tuple[Ids, Times], k: int) -> tuple[Ids, Times]:
    """The `k` least sums of a row of each, both in order: what the row at `i` and the one at `j` add up to has
    `(i + 1) * (j + 1) - 1` sums before it that are no greater."""
    partners = np.minimum(k // np.arange(1, min(k, len(first[0])) + 1), len(second[0]))
    i = np.repeat(np.arange(len(partners)), partners)
    j = np.arange(len(i)) - np.repeat(np.cumsum(partners) - partners, partners)
    total = first[1][i] + second[1][j]
    order = np.argsort(total, kind="stable")[:k]
    return first[0][i[order]] + second[0][j[order]], total[order]
