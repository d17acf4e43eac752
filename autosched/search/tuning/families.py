"""What became of each family of plans in a study: how good the clock thought it, and what was measured of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from autosched.ir.work import operations, within_peak
from autosched.search.tuning.tune import Tuning
from autosched.store.records import Measurement
from autosched.tiling.planner.families import NOT_ASKED, family_of, not_planned, weaker_levels

REASONS_S = 5.0
"""What finding out why a family has no plan may take."""


@dataclass(frozen=True)
class PlanFamily:
    """`trials` of its `plans` were measured, `failed` of them in vain; `clock` and `measured` are its best time over
    the best of all, by the clock and as measured in the search (None: not known), without times that cannot be.
    `reason`: why it has no plan;
    `level`: the level of numerics at which it has plans, or more of them (None: the study's does not keep any out)."""

    name: str
    plans: int = 0
    trials: int = 0
    failed: int = 0
    clock: float | None = None
    measured: float | None = None
    reason: str = ""
    level: str | None = None


def families(tuning: Tuning) -> list[PlanFamily]:
    """The families, those with the best measured time first; those without plans come last. None where the study has
    plans of one family alone and no reason to give."""
    request, study, space = tuning.request, tuning.study, tuning.study.space
    plans: dict[str, list[int]] = {}
    for number, entry in enumerate(space.plans):
        plans.setdefault(family_of(entry.plan), []).append(number)
    clock = dict(_by_clock(tuning))
    best_clock = min(clock.values(), default=0.0)
    work, peak = operations(request.program), tuning.peak[1] if tuning.peak else None
    measured = ((t.number, t.measurement) for t in study.searched)
    costs = {number: m.cost for number, m in measured if m.cost is not None and can_be(m, work, peak)}
    best = min(costs.values(), default=0.0)
    asked = request.program, request.target, request.numerics
    given = tuning.deadline.within(
        REASONS_S, lambda: (dict(not_planned(*asked, tuning.left_out, request.threads)), dict(weaker_levels(*asked)))
    )
    reasons, levels = given or ({}, {})
    reasons |= {name: f"it needs --numerics {level}" for name, level in levels.items() if name not in reasons}
    reasons = as_asked(reasons, request.families)
    found = []
    for name, numbers in plans.items():
        names = {space.plans[n].plan.name for n in numbers}
        trials = [t for t in study.searched if t.plan in names]
        fine = [costs[t.number] for t in trials if t.number in costs]
        known = [clock[n] for n in numbers if n in clock]
        found.append(
            PlanFamily(
                name,
                len(numbers),
                len(trials),
                sum(not t.measurement.ok for t in trials),
                min(known) / best_clock if known and best_clock > 0 else None,
                min(fine) / best if fine and best else None,
                level=levels.get(name),
            )
        )
    found.sort(key=lambda f: (f.measured or float("inf"), f.clock or float("inf")))
    found += [PlanFamily(n, reason=said, level=levels.get(n)) for n, said in reasons.items() if n not in plans]
    return found if len(found) > 1 else []


def as_asked(reasons: Mapping[str, str], asked: Collection[str]) -> dict[str, str]:
    """Why families have no plans: of those that were not `asked` for (none named: all were) that is the reason."""
    return {n: NOT_ASKED if asked and n.split(",")[0] not in asked else said for n, said in reasons.items()}


def can_be(m: Measurement, work: float, peak: float | None) -> bool:
    """Whether a measurement of so many operations is right, and not a time that was corrected for another machine and
    is now above the `peak` (operations a second; None: not known)."""
    if not m.ok or "level" not in m.extra or peak is None or m.time_s is None:
        return m.ok
    return within_peak(work / m.time_s / peak)


def _by_clock(tuning: Tuning) -> Iterator[tuple[int, float]]:
    """The clock's best of each plan, as far as the search has looked: of a plan that is hopeless the best of a
    sample."""
    space = tuning.study.space
    if space.kept.find("plausible") is None:
        return
    for number in range(len(space.plans)):
        if number in space.plausible:
            yield number, float(space.best(1, number)[1][0])
        elif len(seconds := space.sampled(number)[1]):
            yield number, float(seconds.min())
