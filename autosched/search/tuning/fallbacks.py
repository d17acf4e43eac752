"""What runs where a kernel's check refuses the data: the fastest schedule of a plan without checks, by the clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from autosched.costmodel.analytic import clock as clocks
from autosched.tiling.plans.fallback import exchangeable
from autosched.tiling.plans.plan import Otherwise, Plan
from autosched.tiling.space.table import tabulate

SAMPLED = 2048
"""Rows of an unconditional plan of which the fastest by the clock becomes a fallback."""
FastestRow = tuple[float, dict[str, int]]
"""The clock's seconds of a row, and its decisions."""
FLOOR = 1 - 1e-9
"""Of a lower bound, which adds the same numbers up in another order."""


def with_fallbacks(
    plans: Sequence[Plan], every: Sequence[Plan], fastest: Callable[[Plan], FastestRow | None] | None = None
) -> list[Plan]:
    """The plans, each with checks given a fallback: of `every` plan without checks that fits into one kernel with it,
    the one that is fastest by the clock. `fastest` finds a plan's row (`fastest_row`)."""
    fastest = fastest or fastest_row
    guarded = [p for p in plans if p.guards]
    fitting = [[g for g in guarded if exchangeable(g, p)] if not p.guards and not p.granted else [] for p in every]
    floors = {n: _floor_s(p) for n, p in enumerate(every) if fitting[n]}
    best: dict[str, tuple[float, int, Otherwise]] = {}
    for n in sorted(floors, key=lambda n: floors[n]):
        # No row is faster than the floor: of plans that cannot win, none is sampled.
        asks = [g for g in fitting[n] if g.name not in best or floors[n] <= best[g.name][0]]
        row = fastest(every[n]) if asks else None
        if row is not None:
            found = row[0], n, Otherwise(every[n], row[1])
            best |= {g.name: min(found, best.get(g.name, found), key=lambda f: f[:2]) for g in asks}
    return [replace(p, otherwise=best[p.name][2]) if p.guards and p.name in best else p for p in plans]


def _floor_s(plan: Plan) -> float:
    """Seconds by the clock that no row of the plan takes less than."""
    tables = [tabulate(plan.space, floor) for floor in clocks.floors(plan)]
    return FLOOR * sum(float(table.column.min()) for table in tables if table is not None)


def fastest_row(plan: Plan) -> FastestRow | None:
    """The clock's seconds and the decisions of the fastest row of a sample; None where no row is legal."""
    legal = plan.space.enumerate(limit=SAMPLED)
    ids = legal.ids if legal.complete else np.sort(plan.space.sample(SAMPLED, np.random.default_rng(0)))
    if not len(ids):
        return None
    seconds = clocks.clock(plan, plan.space.values(ids))["total"]
    best = int(np.argmin(seconds))
    return float(seconds[best]), dict(plan.space.schedule(int(ids[best])).values)


def standing_by(plan: Plan, row: int) -> tuple[str, float] | None:
    """What runs where a check of this row refuses the data, and its time over the row's, by the clock: nobody measures
    it. None where nothing is checked, or each checked part has a scalar fallback of its own."""
    if plan.otherwise is None:
        return None
    fallback = plan.otherwise.plan
    slower = _clock_s(fallback, fallback.space.row_of(plan.otherwise.values)) / _clock_s(plan, row)
    return fallback.name, slower


def _clock_s(plan: Plan, row: int) -> float:
    return float(clocks.clock(plan, plan.space.values(np.array([row])))["total"][0])
