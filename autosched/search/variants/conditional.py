"""What tuning does with mappings that carry conditions: refuse them, check at run time and fall back, or assume."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autosched.costmodel.analytic import clock as clocks
from autosched.device.correctness.violations import assuming
from autosched.errors import UsageError
from autosched.ir.data import known_values, prepared_data
from autosched.ir.nodes import Assume
from autosched.ir.oracle.inputs import assumed_range
from autosched.ir.program import KnownData, Program
from autosched.tensorize.conditions.origin import at_origin
from autosched.tensorize.match_types import Mapping as Match1
from autosched.tensorize.match_types import Match
from autosched.tiling.plans.fallback import checkable, exchangeable
from autosched.tiling.plans.plan import Otherwise, Plan
from autosched.tiling.space.table import tabulate

MODES = ("refuse", "guard", "assume")
SAMPLED = 2048
"""Rows of an unconditional plan of which the fastest by the clock becomes a fallback."""
FLOOR = 1 - 1e-9
"""Of a lower bound, which adds the same numbers up in another order."""


def usable_as(mapping: Match1, mode: str) -> Match1 | None:
    """The mapping as it may be planned: without conditions as it is; else None (refused), with its conditions (to be
    checked), or with these among its certificate's assumptions."""
    if not mapping.conditions:
        return mapping
    program = mapping.program
    mapping = replace(mapping, conditions=tuple(at_origin(program, c) for c in mapping.conditions))
    # Known values that do not discharge a condition break it in every call.
    broken = any(c.assume is not None and known_values(program, c.assume.subject) for c in mapping.conditions)
    if mode == "refuse" or broken or not checkable(program, mapping):
        return None
    if mode == "guard":
        return mapping
    texts = tuple(f"assumed: {c.text}" for c in mapping.conditions)
    certificate = replace(mapping.certificate, assumptions=(*mapping.certificate.assumptions, *texts))
    return replace(mapping, conditions=(), assumed=mapping.conditions, certificate=certificate)


def candidates_of(matches: Sequence[Match], mode: str = "refuse") -> dict[str, list[Match1]]:
    """The mappings that may be planned, by stage. Portable instructions only stand in for a stage that no instruction
    of the machine's own fits without conditions."""
    by_stage: dict[str, list[Match1]] = {}
    for found in matches:
        for mapping in found.mappings:
            usable = None if mapping.adapters else usable_as(mapping, mode)
            if usable is not None:
                by_stage.setdefault(found.stage, []).append(usable)
    for stage, mappings in by_stage.items():
        free = [m for m in mappings if not m.conditions]
        native = [m for m in free if m.intrinsic.isa != "portable"]
        by_stage[stage] = [*(native or free), *(m for m in mappings if m.conditions and m.intrinsic.isa != "portable")]
    return by_stage


def with_fallbacks(plans: Sequence[Plan], spares: Sequence[Plan]) -> list[Plan]:
    """The plans, those with checks falling back on the spare one without that is fastest by the clock, of those that
    fit into one kernel with them."""
    guarded = [p for p in plans if p.guards]
    fitting = [[g for g in guarded if exchangeable(g, p)] if not p.guards and not p.granted else [] for p in spares]
    floors = {n: _floor_s(p) for n, p in enumerate(spares) if fitting[n]}
    best: dict[str, tuple[float, int, Otherwise]] = {}
    for n in sorted(floors, key=lambda n: floors[n]):
        # No row is faster than the floor: of plans that cannot win, none is sampled.
        asks = [g for g in fitting[n] if g.name not in best or floors[n] <= best[g.name][0]]
        row = _fastest_row(spares[n]) if asks else None
        if row is not None:
            found = row[0], n, Otherwise(spares[n], row[1])
            best |= {g.name: min(found, best.get(g.name, found), key=lambda f: f[:2]) for g in asks}
    return [replace(p, otherwise=best[p.name][2]) if p.guards and p.name in best else p for p in plans]


def _floor_s(plan: Plan) -> float:
    """Seconds by the clock that no row of the plan takes less than."""
    tables = [tabulate(plan.space, floor) for floor in clocks.floors(plan)]
    return FLOOR * sum(float(table.column.min()) for table in tables if table is not None)


def _fastest_row(plan: Plan) -> tuple[float, dict[str, int]] | None:
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
    spare, id_ = plan.otherwise.plan, plan.otherwise.plan.space.row_of(plan.otherwise.values)
    return spare.name, _clocked_s(spare, id_) / _clocked_s(plan, row)


def _clocked_s(plan: Plan, row: int) -> float:
    return float(clocks.clock(plan, plan.space.values(np.array([row])))["total"][0])


def measured_on(program: Program, plans: Iterable[Plan]) -> Program:
    """The program with all that its plans check or assume: data to measure are drawn within that, so that times are
    those of kernels whose checks hold."""
    asked = [c for p in plans for c in (*p.guards, *p.granted)]
    return assuming(program, asked)


def compatible(program: Program, plans: Sequence[Plan]) -> list[Plan]:
    """The plans, in order, without those that ask of some tensor what leaves it fewer than two values with what plans
    before them ask: all are measured on one data set. A check that admits one sign only (weights of -128 to 0) is for
    data that hardly occur, and goes where another plan checks the same tensor and admits both."""
    both = {c.subject for p in plans for c in (*p.guards, *p.granted) if not _one_sided(program, c)}
    plans = [p for p in plans if not any(c.subject in both and _one_sided(program, c) for c in (*p.guards, *p.granted))]
    ranges: dict[str, tuple[float, float]] = {}
    kept = []
    for plan in plans:
        asked: dict[str, tuple[float, float]] = {}
        for c in (*plan.guards, *plan.granted):
            low, high = asked.get(c.subject) or ranges.get(c.subject) or _assumed(program, c.subject)
            asked[c.subject] = (
                low if c.low is None else max(low, c.low),
                high if c.high is None else min(high, c.high),
            )
        if all(low < high for low, high in asked.values()):
            ranges |= asked
            kept.append(plan)
    return kept


def _one_sided(program: Program, condition: Assume) -> bool:
    """Whether it leaves values of one sign of a tensor that has both."""
    low, high = _assumed(program, condition.subject)
    positive = condition.high is None or condition.high > 0
    negative = condition.low is None or condition.low < 0
    return low < 0 < high and not (positive and negative)


def _assumed(program: Program, tensor: str) -> tuple[float, float]:
    low, high = assumed_range(program, tensor)
    least, most = program.tensors[tensor].dtype.limits
    return least if low is None else max(low, least), most if high is None else min(high, most)


def data_of(program: Program, plans: Iterable[Plan]) -> dict[str, dict[str, Any]]:
    """What is known of constant data and of what is prepared from it, as plain values for a stored study."""
    found: dict[str, KnownData] = dict(program.data)
    for plan in plans:
        found |= prepared_data(plan.program) if plan.program.data else {}
    return {
        name: {"sha256": d.sha256, "low": d.low, "high": d.high, "holds": dict(d.holds)} for name, d in found.items()
    }


def with_stored_data(program: Program, data: Mapping[str, Mapping[str, Any]]) -> Program:
    """The program with what a stored study knew of its data: enough to lay out the same plans without the values."""
    known = {n: KnownData(d["sha256"], d["low"], d["high"], None, dict(d["holds"])) for n, d in data.items()}
    return replace(program, data=known) if known else program


def check_mode(mode: str) -> str:
    """The mode; UsageError for an unknown one."""
    if mode not in MODES:
        raise UsageError(f"--conditions {mode}: not a way to treat conditions", hint=f"one of {', '.join(MODES)}")
    return mode


__all__ = [
    "MODES",
    "candidates_of",
    "check_mode",
    "compatible",
    "data_of",
    "measured_on",
    "standing_by",
    "usable_as",
    "with_fallbacks",
    "with_stored_data",
]
