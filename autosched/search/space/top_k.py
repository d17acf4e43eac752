"""`TopK`: the fastest rows of a plan whose legal rows are too many to list, by staged joins
(`tiling.space.bounded`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from autosched.tiling.space.bounded import BestRows
from autosched.tiling.space.independent_groups import IndependentGroups
from autosched.tiling.space.known import KnownBest

Ids = npt.NDArray[np.int64]
Seconds = npt.NDArray[np.float32]

AT_LEAST = 1 << 14
"""Rows that a search fetches at least where nothing is apart: callers ask for thousands next, which take hardly
longer."""


class TopK:
    """Remembers what it found, and answers from that a request for fewer or faster rows than an earlier one."""

    def __init__(self, search: IndependentGroups, at_least: int = AT_LEAST) -> None:
        self._search = search
        self._known = KnownBest(search.best, 1 if search.several or search.tied else at_least)

    @property
    def proved(self) -> bool:
        """Whether no better rows than those found last are missing."""
        return self._known.last.proved

    def best(self, k: int, limit_s: float = np.inf) -> tuple[Ids, Seconds]:
        """Up to `k` rows of at most `limit_s`, fastest first."""
        found = self._known.best(k, limit_s)
        return found.ids, np.asarray(found.seconds, np.float32)

    def sampled(self, n: int, rng: np.random.Generator) -> tuple[Ids, Seconds] | None:
        """See `IndependentGroups.sampled`."""
        found = self._search.sampled(n, rng)
        return None if found is None else (found[0], np.asarray(found[1], np.float32))

    def near(self, k: int, limit_s: float, count: int, factor: float) -> BestRows:
        """Up to `k` rows of at most `limit_s`, those left out that take over `factor` times as long as number `count`;
        fastest first."""
        found = self._search.best(k, limit_s, (count, factor))
        self._known.note(found)
        return found


def merged(first: tuple[Ids, Seconds], second: tuple[Ids, Seconds]) -> tuple[Ids, Seconds]:
    """The rows of both, each once, fastest first."""
    ids, at = np.unique(np.concatenate([first[0], second[0]]), return_index=True)
    seconds = np.concatenate([first[1], second[1]])[at]
    order = np.argsort(seconds, kind="stable")
    return ids[order], seconds[order]
