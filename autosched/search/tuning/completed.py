"""A schedule that names some decisions: what it leaves open is what the clock would choose beside them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from autosched.errors import UsageError
from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.store.records import Trial
from autosched.tiling.candidate import Candidate
from autosched.tiling.space.request import narrowed
from autosched.tiling.space.space import Space

LISTED = 1 << 24
"""Rows of a space, legal or not, up to which all legal ones are looked at."""
LEADING = 1 << 12
"""Rows of a larger space that the clock ranks first: among these the search looks for one with all that was asked."""
OTHERS = 1 << 16
"""Rows that are looked at where none of those is one."""

Ids = npt.NDArray[np.int64]


def completed(schedule: Trial, space: SearchSpace) -> Candidate:
    """The fastest row by the clock, as far as is looked, with the decisions that a schedule names, of its plan or of
    all that have such decisions. UsageError where no plan has them, or no row: then with the rules that stand in the
    way."""
    asked = _asked(schedule, space)
    parts = [Rows.of(number, ids) for number, values in asked.items() if len(ids := _found(number, values, space))]
    if not parts:
        plan = space.plans[min(asked)].plan
        why = narrowed(plan.space, asked[min(asked)]).explain()
        said = f"no schedule of {plan.name!r} has all that was asked for"
        raise UsageError(said if why is None else f"{said}: {' and '.join(why.sentences)}", hint=_elsewhere(asked))
    best: tuple[float, Candidate] | None = None
    for rows in parts:
        seconds = space.analytic(rows)
        at = int(np.argmin(seconds))
        found = float(seconds[at]), Candidate(space.plans[int(rows.plan[at])].plan, int(rows.ids[at]))
        best = found if best is None or found[0] < best[0] else best
    assert best is not None
    return best[1]


def _elsewhere(asked: Mapping[int, object]) -> str:
    return f"nor has any of {len(asked) - 1} other plans" if len(asked) > 1 else "leave one of them out"


def _asked(schedule: Trial, space: SearchSpace) -> dict[int, dict[str, int]]:
    """The plans that a schedule may be of, each with the values of the decisions that are named. UsageError where none
    has these decisions and values."""
    numbers = range(len(space.plans))
    if schedule.plan:
        if schedule.plan not in space.number:
            known = ", ".join(repr(name) for name in space.number)
            raise UsageError(f"no plan here is called {schedule.plan!r}", hint=f"plans of this study: {known}")
        numbers = range(space.number[schedule.plan], space.number[schedule.plan] + 1)
    found: dict[int, dict[str, int]] = {}
    first: UsageError | None = None  # it names the decision or value, and what is spelt like it
    for number in numbers:
        plan = space.plans[number].plan.space
        try:
            taken = plan.schedule(plan.row_of(schedule.schedule)).values
        except UsageError as error:
            first = first or error
            continue
        found[number] = {name: taken[name] for name in schedule.schedule}
    if not found and first is not None:
        raise first
    return found


def _found(number: int, asked: Mapping[str, int], space: SearchSpace) -> Ids:
    """Legal rows of a plan with the values asked for: all, or of its leading rows, the best of which with other values
    in place is one more; and where there is none, of others."""
    plan = space.plans[number].plan.space
    if not space.has_legal(number):
        return np.zeros(0, np.int64)
    if plan.size <= LISTED:
        return _with(plan, space.plans[number].ids, asked)
    leading = space.best(LEADING, number)[0].ids
    found = _with(plan, leading, asked)
    changed = plan.canonical([plan.row_of({**plan.schedule(int(leading[0])).values, **asked})])
    found = np.union1d(found, _with(plan, changed[plan.legal(changed)], asked))
    return found if len(found) else narrowed(plan, asked).enumerate(limit=OTHERS).ids


def _with(space: Space, ids: Ids, asked: Mapping[str, int]) -> Ids:
    """Those of the rows that have the values asked for."""
    rows = space.rows(ids)
    here = np.ones(len(ids), np.bool_)
    for name, value in asked.items():
        here &= rows[name] == space.decision(name).domain.index(value)
    return ids[here]
