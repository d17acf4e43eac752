"""A wish for a schedule: the legal rows that have what is wanted, else why there are none and which come nearest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import numpy.typing as npt

from autosched.logic import Var, to_z3
from autosched.logic.solver import proving, z3
from autosched.tiling.space.explain import Explanation, z3_reading
from autosched.tiling.space.schedule import Schedule
from autosched.tiling.space.space import Space
from autosched.tiling.step import Rule, Step

ASKED_MS = 200
"""Time of z3 for one question."""
GIVEN_UP = 2
"""Up to so many wishes every choice of them is given up in turn, which finds the nearest rows of any space."""
LOOKED_AT = 2_000_000
"""Where more have to go: legal rows among which the nearest are looked for, all of them in smaller spaces."""


@dataclass(frozen=True)
class RequestAnswer:
    """`row` is a legal row with all that was wanted, or None: then `why` says which rules contradict the wish, and
    `nearest` holds legal rows that give up as few wishes as possible, then move as little as possible. `wanted` are the
    values that were asked for."""

    row: int | None
    why: Explanation | None = None
    nearest: tuple[Schedule, ...] = ()
    wanted: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.row is not None:
            return f"row {self.row}"
        lines = [str(self.why) if self.why else "no schedule"]
        return "\n".join(dict.fromkeys([*lines, *(f"  nearest: {self._given_up(s)}" for s in self.nearest)]))

    def _given_up(self, near: Schedule) -> str:
        """What is wanted and another row has otherwise."""
        other = [name for name, value in self.wanted.items() if near.values[name] != value]
        return "  ".join(f"{name}={near.named[name]}" for name in other)


def request(space: Space, wanted: Mapping[str, int | str], most: int = 3) -> RequestAnswer:
    """The legal row that has the values (or labels) wanted. UsageError and UnknownNameError for what no row has."""
    asked = {name: space.schedule(space.row_of({name: value})).values[name] for name, value in wanted.items()}
    wished = narrowed(space, asked)
    found = wished.enumerate(limit=1).ids
    if len(found):
        return RequestAnswer(int(found[0]))
    why = wished.explain()
    apart = frozenset(name for name in asked if why is not None and _wish(name) in why.rules)
    return RequestAnswer(None, why, nearest(space, asked, most, apart), asked)


def nearest(
    space: Space, wanted: Mapping[str, int], most: int, apart: frozenset[str] = frozenset()
) -> tuple[Schedule, ...]:
    """Legal rows that miss the fewest wishes; among those, by the sum of steps along the domains. Of the wishes `apart`
    one has to be given up, if that is known."""
    ids = _that_miss_few(space, wanted, most, apart)
    rows = space.rows(ids)
    missed, steps = np.zeros(len(ids), np.int64), np.zeros(len(ids), np.int64)
    for name, value in wanted.items():
        away = np.abs(rows[name].astype(np.int64) - space.decision(name).domain.index(value))
        missed += away > 0
        steps += away
    order = np.lexsort((ids, steps, missed))[:most]
    return tuple(space.schedule(int(ids[k])) for k in order)


def _that_miss_few(
    space: Space, wanted: Mapping[str, int], most: int, apart: frozenset[str]
) -> npt.NDArray[np.int64]:
    """Legal rows, each once; the nearest are among them where these miss `GIVEN_UP` wishes at most."""
    whole = len(wanted) == len(space.decisions)
    found = np.zeros(0, np.int64)
    may_be = _anything if whole or space.size <= LOOKED_AT else _Possible(space).may_be
    for count in range(1, min(GIVEN_UP, len(wanted)) + 1):
        for gone in combinations(wanted, count):
            if apart and not apart & set(gone):
                continue
            kept = {name: value for name, value in wanted.items() if name not in gone}
            rows = _varied(space, kept, gone) if whole else _near(space, kept, wanted, gone, most, may_be)
            found = np.union1d(found, rows)
        if len(found) >= most:
            return found
    return np.union1d(found, space.enumerate(limit=LOOKED_AT).ids)


def _varied(space: Space, kept: Mapping[str, int], gone: Sequence[str]) -> npt.NDArray[np.int64]:
    """The legal ones of the rows that say `kept`, where that leaves only the decisions `gone` open."""
    rows = np.array([space.row_of(kept)], np.int64)
    for name in gone:
        stride = space.strides[space.position[name]]
        rows = (rows[:, None] + stride * np.arange(len(space.decision(name).domain))).ravel()
    return rows[space.legal(rows)]


class _Possible:
    """What z3 knows of the legal rows of a space that takes long to enumerate."""

    @proving
    def __init__(self, space: Space) -> None:
        self._names, domains = z3_reading(space)
        self._solver = z3.Solver()
        self._solver.set("timeout", ASKED_MS)
        self._solver.add(*domains, *(to_z3(rule.holds, self._names) for rule in space.rules))

    @proving
    def may_be(self, values: Mapping[str, int]) -> bool:
        """Whether a legal row may have these values: what z3 does not decide may be."""
        return bool(self._solver.check(*(self._names[name] == value for name, value in values.items())) != z3.unsat)


def _anything(values: Mapping[str, int]) -> bool:
    return True


def _near(
    space: Space,
    kept: Mapping[str, int],
    wanted: Mapping[str, int],
    gone: Sequence[str],
    most: int,
    may_be: Callable[[Mapping[str, int]], bool],
) -> npt.NDArray[np.int64]:
    """Legal rows that say `kept`, `most` of them where there are as many: those whose values of `gone` are the fewest
    steps from the wanted ones."""
    none = np.zeros(0, np.int64)
    if not may_be(kept) or not len(narrowed(space, kept).enumerate(limit=1).ids):
        return none
    domains = [space.decision(name).domain for name in gone]
    centre = [d.index(wanted[name]) for d, name in zip(domains, gone, strict=True)]

    def steps(place: tuple[int, ...]) -> int:
        return sum(abs(a - b) for a, b in zip(place, centre, strict=True))

    found = none
    for place in sorted(np.ndindex(*map(len, domains)), key=steps):
        values = {name: d[i] for name, d, i in zip(gone, domains, place, strict=True)}
        if not may_be({**kept, **values}):
            continue
        found = np.concatenate((found, narrowed(space, {**kept, **values}).enumerate(limit=most).ids))
        if len(found) >= most:
            break
    return found


def _wish(name: str) -> str:
    """The rule that a decision is as wanted."""
    return f"wanted {name}"


def narrowed(space: Space, wanted: Mapping[str, int]) -> Space:
    """The rows with these values: each wish is one more rule."""
    wishes = []
    for name, value in wanted.items():
        label = space.decision(name).label(value)
        wishes.append(Rule(_wish(name), Var(name).eq(value), f"{name} = {label} is wanted"))
    return Space(f"{space.name}, as wanted", [*space.steps, Step("wanted", (), tuple(wishes))], space.constants)
