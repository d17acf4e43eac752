"""`Unlisted`: the fastest rows of a plan whose legal rows are too many to list, by staged joins (`tiling.bounded`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from autosched.tiling.apart import Apart
from autosched.tiling.bounded import Best

Ids = npt.NDArray[np.int64]
Seconds = npt.NDArray[np.float32]

AT_LEAST = 1 << 14
"""Rows looked for at once: who asks for the best one asks for thousands next, and these take hardly longer."""


class Unlisted:
    """Remembers what it found: who asks for fewer or faster rows than somebody before is answered from that."""

    def __init__(self, search: Apart) -> None:
        self._search = search
        self._best = Best(np.zeros(0, np.int64), np.zeros(0, np.float32), True)
        self._known_s = -np.inf
        """All rows of at most so many seconds are known, as far as a search comes (`Best.proved`)."""

    @property
    def proved(self) -> bool:
        """Whether no better rows than those found last are missing."""
        return self._best.proved

    def best(self, k: int, limit_s: float = np.inf) -> tuple[Ids, Seconds]:
        """Up to `k` rows of at most `limit_s`, fastest first."""
        if k > len(self._best.ids) and limit_s > self._known_s:
            wanted = max(k, AT_LEAST)
            self._best = self._search.best(wanted, limit_s)
            found = self._best.seconds
            self._known_s = float(found[-1]) if len(found) == wanted else limit_s
        fast = self._best.seconds[:k] <= limit_s
        return self._best.ids[:k][fast], np.asarray(self._best.seconds[:k][fast], np.float32)

    def near(self, k: int, limit_s: float, count: int, factor: float) -> Best:
        """Up to `k` rows of at most `limit_s`, those left out that take over `factor` times as long as number `count`;
        fastest first."""
        return self._search.best(k, limit_s, (count, factor))


def merged(first: tuple[Ids, Seconds], second: tuple[Ids, Seconds]) -> tuple[Ids, Seconds]:
    """The rows of both, each once, fastest first."""
    ids, at = np.unique(np.concatenate([first[0], second[0]]), return_index=True)
    seconds = np.concatenate([first[1], second[1]])[at]
    order = np.argsort(seconds, kind="stable")
    return ids[order], seconds[order]
