"""Where rows lie for a process that compares them by distance: numbers of about 0 to 1.

Speed seldom rises or falls with a size alone: sizes that warps, vectors and lines divide are fast, their neighbours are
not. With `twos` a size has two coordinates: its logarithm, and how often two divides it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.tiling.step import Decision

Floats = npt.NDArray[np.float64]


class Coordinates:
    """Of rows of all plans, which share them: the plan, the place of each decision in its domain (with `twos` that of a
    size on a scale of logarithms) and, with `twos`, how often two divides what is there. Shape (rows, coordinates)."""

    def __init__(self, space: SearchSpace, twos: bool) -> None:
        self._space = space
        decided = [entry.plan.space.decisions for entry in space.plans]
        self._plans, self._widest = len(decided), max((len(d) for d in decided), default=0)
        self._places = [[places(d, twos) for d in decisions] for decisions in decided]
        self._twos = [[evenness(d) if twos else None for d in decisions] for decisions in decided]
        some = {column for plan in self._twos for column, even in enumerate(plan) if even is not None}
        self._columns = {column: place for place, column in enumerate(sorted(some), self._plans + self._widest)}

    def __call__(self, rows: Rows) -> Floats:
        found = np.zeros((len(rows), self._plans + self._widest + len(self._columns)))
        found[np.arange(len(rows)), rows.plan] = 1.0
        for number in np.unique(rows.plan):
            mine = np.flatnonzero(rows.plan == number)
            space = self._space.plans[int(number)].plan.space
            columns = zip(space.rows(rows.ids[mine]).values(), self._places[number], self._twos[number], strict=True)
            for column, (index, place, even) in enumerate(columns):
                found[mine, self._plans + column] = place[index]
                if even is not None:
                    found[mine, self._columns[column]] = even[index]
        return found


def places(decision: Decision, logarithms: bool) -> Floats:
    """Of each value of the domain, from 0 to 1: evenly, or where a size is on a scale of logarithms.

    >>> places(Decision("threads", (16, 32, 64, 256)), True).tolist()
    [0.0, 0.25, 0.5, 1.0]
    """
    values = np.array(decision.domain, np.float64)
    if logarithms and not decision.labels and len(values) > 2 and values.min() > 0:
        values = np.log2(values)
        return np.asarray((values - values.min()) / np.ptp(values), np.float64)
    return np.arange(len(values)) / max(1, len(values) - 1)


def evenness(decision: Decision) -> Floats | None:
    """How often two divides each value of the domain, from 0 to 1; None where that means nothing (labels, values below
    1) or says what the places do.

    >>> evenness(Decision("threads", (16, 32, 48, 64))).tolist()
    [0.0, 0.5, 0.0, 1.0]
    >>> evenness(Decision("threads", (16, 32, 64)))
    """
    values = np.array(decision.domain, np.int64)
    if decision.labels or values.min() < 1:
        return None
    twos = np.log2(values & -values)
    if len(np.unique(np.diff(twos))) < 2:
        return None
    return np.asarray((twos - twos.min()) / np.ptp(twos), np.float64)
