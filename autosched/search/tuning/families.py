"""What became of each family of plans in a study: how good the clock thought it, and what was measured of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from autosched.ir.work import operations, within_peak
from autosched.search.tuning.tune import Tuning
from autosched.store.records import Measurement, Trial
from autosched.tiling.planner.families import NOT_ASKED, family_of, not_planned, weaker_levels

REASONS_S = 5.0
"""What finding out why a family has no plan may take."""


@dataclass(frozen=True)
class PlanFamily:
    """`trials` of its `plans` were measured, `failed` of them in vain; `clock` and `measured` are its best time over
    the best of all, by the clock and as measured (None: not known), without times that cannot be. `reason`: why it
    has no plan; `level`: the level of numerics at which it has plans, or more of them (None: the study's does not keep
    any out)."""

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
    ratios = over_best(
        [t for t in study.searched if can_be(t.measurement, work, peak)],
        [t for t in study.finals if can_be(t.measurement, work, peak)],
    )
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
        fine = [ratios[t.key] for t in trials if t.key in ratios]
        known = [clock[n] for n in numbers if n in clock]
        found.append(
            PlanFamily(
                name,
                len(numbers),
                len(trials),
                sum(not t.measurement.ok for t in trials),
                min(known) / best_clock if known and best_clock > 0 else None,
                min(fine, default=None),
                level=levels.get(name),
            )
        )
    found.sort(key=lambda f: (f.measured or float("inf"), f.clock or float("inf")))
    found += [PlanFamily(n, reason=said, level=levels.get(n)) for n, said in reasons.items() if n not in plans]
    return found if len(found) > 1 else []


def over_best(searched: Sequence[Trial], finals: Sequence[Trial]) -> dict[str, float]:
    """The cost of each candidate over that of the best. Those of a final round are compared by what it measured, and
    the others, by the search's measurements, with the one that won it."""
    last = {t.key: t.measurement.cost for t in finals if t.measurement.cost}
    costs: dict[str, float] = {}
    for trial in searched:
        if trial.measurement.cost:
            costs[trial.key] = min(trial.measurement.cost, costs.get(trial.key, inf))
    least = min(last.values(), default=0.0)
    winner = min(last, key=lambda key: last[key], default="")
    best = costs.get(winner) or min(costs.values(), default=0.0)
    return {key: cost / best for key, cost in costs.items()} | {key: cost / least for key, cost in last.items()}


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
