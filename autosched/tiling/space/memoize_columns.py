"""What depends on few decisions is worked out once for each combination of them that a block of rows has.

A block of 65,000 neighbouring rows has some thousand register tiles and blocks between them, since the last decisions
change most often. So a quantity that does not read those costs a tenth, and a look-up a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.tiling.space.base import Values
from autosched.tiling.space.partial_columns import PartialColumns, WantedError, masked, read_by

Columns = Mapping[str, npt.NDArray[np.int64]]
Column = npt.NDArray[Any]

_FEW = 32
"""Rows below which nothing is gained by looking for what they share."""
_WORTH = 2
"""Rows a combination from which on a look-up costs less than working it out again."""


def memoize_columns(values: Columns, name: str, quantity: Callable[[Columns], Sequence[Column]]) -> list[Column]:
    """`quantity(values)`: columns, each of shape (rows,), or numbers. `name` must tell it from other quantities of the
    space: what it was seen to read is remembered under it. Rows that are not known to come from a space are worked out
    one by one."""
    if not isinstance(values, Values | PartialColumns) or values.space is None:
        return list(quantity(values))
    space, ids = values.space, values.ids
    if len(ids) < _FEW:
        return list(quantity(values))
    if name not in space.reads:
        space.reads[name] = read_by(space, quantity, int(ids[0]))
    while True:
        reads = space.reads[name]
        if isinstance(values, PartialColumns) and not reads <= values.positions:
            raise WantedError(reads)
        keys = masked(space, ids, reads)
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        heads, place = np.unique(keys[starts], return_inverse=True)
        if _WORTH * len(heads) > len(ids):
            return list(quantity(values))
        try:
            found = quantity(PartialColumns(space, reads, heads))
        except WantedError as wanted:
            space.reads[name] = reads | wanted.positions
            continue
        at = np.repeat(place, np.diff(starts, append=len(ids)))
        return [column[at] if column.shape == heads.shape else np.broadcast_to(column, at.shape) for column in found]
