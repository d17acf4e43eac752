"""Rows of several plans as columns: one for each decision, whichever plans have it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.tiling.step import Decision

Column = npt.NDArray[Any]


@dataclass(frozen=True)
class PlanPart:
    """Rows of one plan: `indices` are places in the domains, shape (rows, decisions), `places` where these rows stand
    among those of all plans, shape (rows,)."""

    decisions: Sequence[Decision]
    indices: npt.NDArray[Any]
    places: npt.NDArray[Any]


def decision_columns(rows: int, parts: Iterable[PlanPart], taken: Collection[str] = ()) -> dict[str, Column]:
    """A column of length `rows` for each decision: integers, or what the decision's labels say. Rows of a plan that
    does not have it hold NaN, or None beside labels. A name that is `taken` gets `decision ` in front.

    >>> two = PlanPart((Decision("tile", (1, 4)),), np.array([[1], [0]]), np.array([0, 2]))
    >>> decision_columns(3, [two])["tile"].tolist()
    [4.0, nan, 1.0]
    """
    values: dict[str, list[tuple[Decision, Column, Column]]] = {}
    for part in parts:
        for number, decision in enumerate(part.decisions):
            values.setdefault(decision.name, []).append((decision, part.indices[:, number], part.places))
    found: dict[str, Column] = {}
    for name, pieces in values.items():
        if any(decision.labels for decision, _, _ in pieces):
            column: Column = np.full(rows, None, object)
        else:
            whole = sum(len(places) for _, _, places in pieces) == rows
            column = np.zeros(rows, np.int64) if whole else np.full(rows, np.nan)
        for decision, index, places in pieces:
            said = np.array([decision.label(value) for value in decision.domain], column.dtype)
            column[places] = said[index]
        found[f"decision {name}" if name in taken else name] = column
    return found
