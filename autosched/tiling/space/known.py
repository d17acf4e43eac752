"""`KnownBest`: what a search for the fastest rows found, so that it is searched again only for more or slower ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from autosched.tiling.space.bounded import BestRows


class KnownBest:
    """`search(k, limit_s)` is `Bounded.best`; `at_least` rows are looked for at once."""

    def __init__(self, search: Callable[[int, float], BestRows], at_least: int) -> None:
        self._search, self._at_least = search, at_least
        self.last = BestRows(np.zeros(0, np.int64), np.zeros(0, np.float32), True)
        """What was found last."""
        self._known_s = -np.inf
        """All rows of at most so many seconds are known, as far as a search comes (`BestRows.proved`)."""

    def best(self, k: int, limit_s: float = np.inf) -> BestRows:
        """Up to `k` rows of at most `limit_s`, fastest first."""
        if k > len(self.last.ids) and limit_s > self._known_s:
            wanted = max(k, self._at_least)
            self.last = self._search(wanted, limit_s)
            found = self.last.seconds
            self._known_s = float(found[-1]) if len(found) == wanted else limit_s
        return self.last.up_to(k, limit_s)

    def note(self, found: BestRows) -> None:
        """Take over the result of another search. `found` must have all rows up to its slowest."""
        if len(found.ids) > len(self.last.ids):
            self.last, self._known_s = found, float(found.seconds[-1])
