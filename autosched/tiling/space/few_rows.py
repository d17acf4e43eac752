"""The fastest of a few combinations: all of them are scored."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from autosched.tiling.space.bounded import BestRows, Ids, Times, grouped_stages
from autosched.tiling.space.enumerate import Joiner
from autosched.tiling.space.space import Space


class Listed:
    """A search for the fastest combinations of decisions (positions) that rules tie to no others, as `Bounded` with
    `wanted` is. `seconds` of rows is the time that these alone decide."""

    def __init__(self, space: Space, seconds: Callable[[Ids], Times], wanted: frozenset[int]) -> None:
        self._space, self._seconds, self._wanted = space, seconds, wanted
        self.looked_at = 0
        """Combinations that were made so far."""

    def best(self, k: int, limit_s: float = np.inf) -> BestRows:
        """See `Bounded.best`."""
        return self._all.up_to(k, limit_s)

    @cached_property
    def _all(self) -> BestRows:
        joiner = Joiner(self._space, stages=grouped_stages(self._space, (), self._wanted))
        ids = np.concatenate([np.zeros(0, np.int64), *(p.ids for p in joiner.run())])
        self.looked_at += len(ids)
        seconds = self._seconds(ids) if len(ids) else np.zeros(0)
        order = np.lexsort((ids, seconds))
        return BestRows(ids[order], seconds[order], True)
