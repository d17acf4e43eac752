"""What a study minimises, as the clock sees it: seconds, joules, or joules times seconds.

Energy of a row is first-order: the bytes behind each of the clock's memory terms (seconds times the level's bandwidth)
at the level's joules a byte, and static power for the row's time. Operations and what is read of scratchpads cost the
same in every row: they do not change the order of energies, and in `edp` they are added to all.

Joules of a plan are a sum over its parts, as seconds are, so a space too large to list is searched for them in the
same way (`floors`, `parts`). Joules times seconds are a product of two sums. With E and T of a part, their least
values e and t, and the sums A and B of these over the other parts, the products of parts with each other are at least
E·B + (T - t)·A: what a part adds to a lower bound is E·T + E·B + (T - t)·A, which with one part is the product itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from autosched.costmodel.analytic import clock as clocks
from autosched.costmodel.analytic.clock import Terms, TimedPart, clock
from autosched.ir.work import operations
from autosched.machine.target import Memory, Target
from autosched.tiling.plans.plan import Plan
from autosched.tiling.space.table import tabulate

OBJECTIVES = ("latency", "energy", "edp")
LEVELS = {"l2": "L2", "l3": "L3", "shared": "shared", "dram": "DRAM"}
"""The clock's terms that stand for bytes of a level; `memory` is the outermost one."""

Columns = Mapping[str, npt.NDArray[np.int64]]
Column = npt.NDArray[np.float64]
Sums = tuple[Callable[[Columns], Column], ...]
TermsOf = Callable[[TimedPart, Columns], Terms]


def objective_clock(objective: str) -> Callable[[Plan, Columns], Terms]:
    """The clock with `total` in the objective's unit: seconds, joules or joule-seconds."""
    if objective == "latency":
        return clock

    def costs(plan: Plan, values: Columns) -> Terms:
        terms = clock(plan, values)
        joules = energy_of(plan, terms)
        return terms | {"total": joules * terms["total"] if objective == "edp" else joules}

    return costs


def floors(objective: str) -> Callable[[Plan], Sums]:
    """As `clock.floors`: for each part of a plan what it adds at least to the `total` of `objective_clock`."""
    return clocks.floors if objective == "latency" else partial(_sums, objective, clocks.least_terms)


def parts(objective: str) -> Callable[[Plan], Sums]:
    """As `clock.parts`: they add up to `total`, and to no more than that for `edp` of several parts."""
    return clocks.parts if objective == "latency" else partial(_sums, objective, clocks.part_terms)


def leasts(objective: str) -> Callable[[Plan], Sequence[Callable[[Columns, Column], Column] | None]]:
    """As `clock.leasts`, for latency; of other objectives nothing is said between floors and parts."""
    return clocks.leasts if objective == "latency" else lambda plan: ()


def energy_of(plan: Plan, terms: Terms) -> Column:
    """Joules per row, to first order."""
    return joules_of_terms(plan.target, terms) + joules_of_operations(plan)


def joules_of_operations(plan: Plan) -> float:
    """The same for all rows of a plan."""
    return min(plan.target.energy.values(), default=0.0) * operations(plan.program)


def joules_of_terms(target: Target, terms: Terms) -> Column:
    """Of moving bytes and of the time that it takes."""
    joules = (target.static_watts or 0.0) * terms["total"]
    for name, seconds in terms.items():
        level = _level(name, target)
        if level is not None and level.joules_per_byte and level.bandwidth_bytes_per_s:
            joules = joules + seconds * level.bandwidth_bytes_per_s * level.joules_per_byte
    return np.asarray(joules, np.float64)


def _sums(objective: str, terms_of: TermsOf, plan: Plan) -> Sums:
    found = clocks.timed_parts(plan)
    fixed = [joules_of_operations(plan), *(0.0 for _ in found[1:])]
    if objective == "energy":
        return tuple(partial(_joules, terms_of, p, plan, j) for p, j in zip(found, fixed, strict=True))
    joules, seconds = [0.0], [0.0]
    if len(found) > 1:
        joules = [_least(plan, partial(_joules, clocks.least_terms, p, plan, 0.0)) for p in found]
        joules[0] += fixed[0]
        seconds = [_least(plan, floor) for floor in clocks.floors(plan)]
    others = [(sum(joules) - j, sum(seconds) - s, s) for j, s in zip(joules, seconds, strict=True)]
    return tuple(
        partial(_products, terms_of, p, plan, j, *least) for p, j, least in zip(found, fixed, others, strict=True)
    )


def _joules(terms_of: TermsOf, part: TimedPart, plan: Plan, fixed: float, values: Columns) -> Column:
    return joules_of_terms(plan.target, terms_of(part, values)) + fixed


def _products(
    terms_of: TermsOf,
    part: TimedPart,
    plan: Plan,
    fixed: float,
    joules: float,
    seconds: float,
    least_s: float,
    values: Columns,
) -> Column:
    """What a part adds to joules times seconds, the other parts being of at least `joules` and `seconds`."""
    terms = terms_of(part, values)
    own = joules_of_terms(plan.target, terms) + fixed
    return own * (terms["total"] + seconds) + (terms["total"] - least_s) * joules


def _least(plan: Plan, column: Callable[[Columns], Column]) -> float:
    """The smallest value that a legal row may have; 0 where it reads too many decisions to be tabulated."""
    table = tabulate(plan.space, column, legal=True)
    least = float(table.column.min()) if table is not None else 0.0
    return least if 0 < least < np.inf else 0.0


def _level(term: str, target: Target) -> Memory | None:
    if term == "memory":
        return target.memories[-1]
    return next((m for m in target.memories if m.name == LEVELS.get(term)), None)
