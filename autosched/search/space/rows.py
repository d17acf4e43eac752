"""Rows of the union of a study's plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Ids: TypeAlias = npt.NDArray[np.int64]
Seconds: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Rows:
    """Rows of the union: plan numbers and row ids, both of shape (rows,)."""

    plan: npt.NDArray[np.int32]
    ids: Ids

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, which: npt.ArrayLike) -> Rows:
        chosen = np.asarray(which)
        chosen = chosen if chosen.dtype == np.bool_ else chosen.astype(np.int64)
        return Rows(self.plan[chosen], self.ids[chosen])

    @staticmethod
    def of(plan: int, ids: npt.ArrayLike) -> Rows:
        numbers = np.asarray(ids, np.int64)
        return Rows(np.full(len(numbers), plan, np.int32), numbers)

    @staticmethod
    def join(parts: Sequence[Rows]) -> Rows:
        if not parts:
            return Rows.of(0, [])
        return Rows(np.concatenate([p.plan for p in parts]), np.concatenate([p.ids for p in parts]))

    def distinct(self) -> Rows:
        """Each row once, at its first place."""
        order = np.lexsort((self.ids, self.plan))  # stable: the first of equals comes first
        fresh = np.ones(len(order), np.bool_)
        fresh[1:] = (np.diff(self.plan[order]) != 0) | (np.diff(self.ids[order]) != 0)
        return self.take(np.sort(order[fresh]))


def in_order(parts: Sequence[Rows], seconds: Sequence[Seconds], k: int) -> tuple[Rows, Seconds]:
    """The `k` fastest of these rows."""
    rows = Rows.join(parts)
    total = np.concatenate(seconds) if seconds else np.zeros(0, np.float32)
    order = np.lexsort((rows.ids, rows.plan, total))[:k]
    return rows.take(order), total[order]


def slowest_of(seconds: Sequence[Seconds], k: int) -> float:
    """Seconds of the slowest of the `k` best rows; none is too slow where there are fewer."""
    every = np.concatenate([np.zeros(0, np.float32), *seconds])
    return np.inf if len(every) < k else float(np.partition(every, k - 1)[k - 1])
