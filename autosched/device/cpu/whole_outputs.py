"""Whole outputs of a data set as the program's loops as written compute them (`run_plain`), as far as these ran."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.device.cpu.arena import Bytes
from autosched.device.job import RowsAlong


@dataclass(frozen=True)
class WholeOutputs:
    """`views` are outputs of which `rows` are known; of the others nothing is."""

    views: Mapping[str, Bytes]
    rows: Mapping[str, tuple[RowsAlong, ...]]
    complete: bool

    def pieces(self, name: str, values: npt.NDArray[Any]) -> list[tuple[RowsAlong, npt.NDArray[Any]]]:
        """The known rows of an array of the output's shape."""
        return [(rows, rows_of(values, rows)) for rows in self.rows[name]]

    def known(self, name: str, box: Sequence[tuple[int, int]]) -> npt.NDArray[np.bool_]:
        """Which elements of a box are known, flat."""
        found = np.zeros([n for _, n in box], np.bool_)
        for rows in self.rows[name]:
            low, n = box[rows.axis] if box else (0, 1)
            inside = (min(max(end - low, 0), n) for end in (rows.low, rows.high))
            rows_of(found, RowsAlong(rows.axis, *inside))[...] = True
        return found.reshape(-1)


def rows_of(values: npt.NDArray[Any], rows: RowsAlong) -> npt.NDArray[Any]:
    """These rows of an array, a view."""
    where = (*(slice(None) for _ in range(rows.axis)), slice(rows.low, rows.high))
    return values[where] if values.shape else values[...]
