"""A wish for a schedule: the legal rows that have what is wanted, else why there are none and which come nearest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from autosched.logic import Var
from autosched.tiling.explain import Explanation
from autosched.tiling.schedule import Schedule
from autosched.tiling.space import Space
from autosched.tiling.step import Rule, Step

LOOKED_AT = 2_000_000
"""Legal rows among which the nearest are looked for: all of them, in spaces that are enumerated whole."""


@dataclass(frozen=True)
class Answer:
    """`row` is a legal row with all that was wanted, or None: then `why` says which rules contradict the wish, and
    `nearest` holds legal rows that give up as few wishes as possible, then move as little as possible."""

    row: int | None
    why: Explanation | None = None
    nearest: tuple[Schedule, ...] = ()

    def __str__(self) -> str:
        if self.row is not None:
            return f"row {self.row}"
        lines = [str(self.why) if self.why else "no schedule"]
        return "\n".join([*lines, *(f"  nearest: {s}" for s in self.nearest)])


def request(space: Space, wanted: Mapping[str, int | str], most: int = 3) -> Answer:
    """The legal row that has the values (or labels) wanted. UsageError and UnknownNameError for what no row has."""
    asked = {name: space.schedule(space.row_of({name: value})).values[name] for name, value in wanted.items()}
    wishes = []
    for name, value in asked.items():
        label = space.decision(name).label(value)
        wishes.append(Rule(f"wanted {name}", Var(name).eq(value), f"{name} = {label} is wanted"))
    narrowed = Space(f"{space.name}, as wanted", [*space.steps, Step("wanted", (), tuple(wishes))], space.constants)
    found = narrowed.enumerate(limit=1).ids
    if len(found):
        return Answer(int(found[0]))
    return Answer(None, narrowed.explain(), nearest(space, asked, most))


def nearest(space: Space, wanted: Mapping[str, int], most: int) -> tuple[Schedule, ...]:
    """Legal rows that miss the fewest wishes; among those, by the sum of steps along the domains."""
    ids = space.enumerate(limit=LOOKED_AT).ids
    rows = space.rows(ids)
    missed, steps = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64)
    for name, value in wanted.items():
        away = np.abs(rows[name].astype(np.int64) - space.decision(name).domain.index(value))
        missed += away > 0
        steps += away
    order = np.lexsort((ids, steps, missed))[:most]
    return tuple(space.schedule(int(ids[k])) for k in order)
