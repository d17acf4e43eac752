"""Schedules that somebody brings along: found again in this study's plans, held to their rules, and measured first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from autosched.errors import UsageError
from autosched.search.protocol import Strategy
from autosched.search.space.space import SearchSpace
from autosched.search.tuning.completed import completed
from autosched.store.codec import NO_ROW
from autosched.store.records import Trial
from autosched.tiling.candidate import Candidate
from autosched.tiling.space.request import nearest
from autosched.tiling.space.space import Space


def candidate_of(schedule: Trial, space: SearchSpace) -> Candidate:
    """The candidate that a schedule names: its plan by name, its decisions by their labels.

    UsageError where the study has no such plan, the plan no such decision or value, and where the row breaks rules,
    each with the row's numbers: nothing that a rule excludes is ever built. What a schedule leaves open that has no row
    is the clock's choice.
    """
    if schedule.row == NO_ROW:
        return completed(schedule, space)
    number = space.number.get(schedule.plan)
    if number is None:
        known = ", ".join(repr(name) for name in space.number)
        raise UsageError(f"no plan here is called {schedule.plan!r}", hint=f"plans of this study: {known}")
    plan = space.plans[number].plan
    row = int(plan.space.canonical([plan.space.row_of(schedule.schedule)])[0])
    if broken := plan.space.why_not(row):
        said = f"the schedule is not legal for {plan.name!r}: {'; '.join(broken)}"
        raise UsageError(said, hint=_nearest(plan.space, row))
    return Candidate(plan, row)


def without_effect(schedule: Trial, candidate: Candidate) -> tuple[str, ...]:
    """What a schedule asks for that changes nothing beside its other decisions, in words."""
    space, row = candidate.plan.space, candidate.row
    asked = space.schedule(space.row_of(schedule.schedule))
    taken = space.schedule(row)
    return tuple(
        f"{name} = {asked.named[name]} has no effect, and is taken for {taken.named[name]}"
        for name, value in asked.values.items()
        if value != taken.values[name] and (schedule.row != NO_ROW or name in schedule.schedule)
    )


def _nearest(space: Space, row: int) -> str:
    """What to change of an illegal row: how the nearest legal ones differ from it."""
    wanted = space.schedule(row)
    changes = []
    for near in nearest(space, wanted.values, 3):
        other = [name for name, value in near.values.items() if value != wanted.values[name]]
        changes.append(", ".join(f"{name}={near.named[name]}" for name in other))
    return f"the nearest legal ones have {'; or '.join(changes)}" if changes else "no schedule of this plan is legal"


class UserSchedulesFirst:
    """A strategy that proposes the user's schedules first, each once, and then what another strategy does."""

    def __init__(self, first: Iterable[Candidate], then: Strategy) -> None:
        self._first = {c.key: c for c in first}
        self._named = frozenset(self._first)
        self._then = then
        self.batch: int | None = getattr(then, "batch", None)
        self.ahead = bool(getattr(then, "ahead", False))

    def propose(self, n: int) -> list[Candidate]:
        found = [self._first.pop(key) for key in list(self._first)[:n]]
        while len(found) < n and (more := self._then.propose(n - len(found))):
            found += [c for c in more if c.key not in self._named]
        return found

    def observe(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            self._first.pop(trial.key, None)
        self._then.observe(trials)
