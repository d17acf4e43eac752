"""What was said of rows not long ago: a strategy describes a pool, then what it proposes of it, then what was measured.

Describing a few rows costs each plan's fixed share of the clock (milliseconds), and looking them up next to nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from autosched.costmodel.features import Features
from autosched.search.space.rows import Rows

Described = tuple[Features, npt.NDArray[np.float32]]
FEW = 256
"""Rows that are looked up; more are described anew, which their number pays for."""
RECENT = 32
_PLAN_BITS = 14


@dataclass(frozen=True)
class _DescribedRows:
    """Rows by their sorted keys, and where each stands in what was said of them."""

    keys: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    said: Described


class DescriptionCache:
    """The last RECENT answers, and the longest one, which is the pool that a strategy returns to."""

    def __init__(self) -> None:
        self._recent: deque[_DescribedRows] = deque(maxlen=RECENT)
        self._longest: _DescribedRows | None = None

    def described(self, rows: Rows, describe: Callable[[Rows], Described]) -> Described:
        """What `describe` says of the rows, which is asked about those only that are not remembered."""
        keys = _keys(rows)
        if keys is None or not len(rows):
            return describe(rows)
        if len(rows) > FEW:
            said = describe(rows)
            self._keep(keys, said)
            return said
        found = self._found(keys)
        missing = np.flatnonzero([block is None for block, _ in found])
        if len(missing) == len(rows):
            said = describe(rows)
        else:
            said = self._joined(found, missing, describe(rows.take(missing)) if len(missing) else None)
        self._keep(keys, said)
        return said

    def _found(self, keys: npt.NDArray[np.int64]) -> list[tuple[_DescribedRows | None, int]]:
        """For each row a block that holds it, and its place there."""
        found: list[tuple[_DescribedRows | None, int]] = [(None, 0)] * len(keys)
        for block in (*self._recent, *([self._longest] if self._longest else [])):
            at = np.minimum(np.searchsorted(block.keys, keys), len(block.keys) - 1)
            for i in np.flatnonzero(block.keys[at] == keys):
                found[i] = block, int(block.places[at[i]])
        return found

    @staticmethod
    def _joined(
        found: list[tuple[_DescribedRows | None, int]], missing: npt.NDArray[np.int64], anew: Described | None
    ) -> Described:
        some = next(block.said[0] for block, _ in found if block is not None)
        matrix = np.empty((len(found), some.matrix.shape[1]), np.float32)
        seconds = np.empty(len(found), np.float32)
        for i, (block, place) in enumerate(found):
            if block is not None:
                matrix[i], seconds[i] = block.said[0].matrix[place], block.said[1][place]
        if anew is not None:
            matrix[missing], seconds[missing] = anew[0].matrix, anew[1]
        return replace(some, matrix=matrix), seconds

    def _keep(self, keys: npt.NDArray[np.int64], said: Described) -> None:
        order = np.argsort(keys, kind="stable")
        block = _DescribedRows(keys[order], order, said)
        if self._longest is None or len(keys) > len(self._longest.keys):
            self._longest = block
        elif len(keys) < len(self._longest.keys) // 2:  # several as long as a pool would be too much to keep
            self._recent.append(block)


def _keys(rows: Rows) -> npt.NDArray[np.int64] | None:
    """One number a row; None where a plan has more rows than that has room for."""
    if len(rows) and (int(rows.ids.max()) >> (63 - _PLAN_BITS) or int(rows.plan.max()) >> _PLAN_BITS):
        return None
    return rows.ids << _PLAN_BITS | rows.plan
