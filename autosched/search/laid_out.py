"""What is listed of a plan: its legal rows, or a uniform sample of them where they are too many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from autosched.tiling.counting import HUGE

if TYPE_CHECKING:
    from autosched.tiling.plan import Plan

Ids: TypeAlias = npt.NDArray[np.int64]

LIMIT = 10_000_000
"""Legal rows of one plan above which a uniform sample stands for the plan."""
_SAMPLE = 100_000
_FEW = 3_000_000  # legal rows that are listed before they are counted: that takes a moment


@dataclass(frozen=True)
class PlanRows:
    """A plan's legal rows: `ids` sorted, drawn when they are wanted; `complete` is False where a uniform sample stands
    for them. `legal` is how many there are in truth (of the sample, where they could not be counted)."""

    plan: Plan
    draw: Callable[[], Ids]
    rejected: dict[str, int]
    total: int
    complete: bool
    legal: int

    @cached_property
    def ids(self) -> Ids:
        return self.draw()


class Entry:
    """A plan of a study; its rows (see `PlanRows`) are laid out when somebody asks for them: a plan that is slower than
    others by what can be said without need not be, for the first proposals."""

    def __init__(self, plan: Plan, limit: int, seed: Sequence[int]) -> None:
        self.plan = plan
        self._limit, self._seed = limit, seed

    @cached_property
    def laid(self) -> PlanRows:
        return lay_out(self.plan, self._limit, np.random.default_rng(self._seed))

    @property
    def ids(self) -> Ids:
        return self.laid.ids

    @property
    def rejected(self) -> dict[str, int]:
        return self.laid.rejected

    @property
    def total(self) -> int:
        return self.laid.total

    @property
    def complete(self) -> bool:
        return self.laid.complete

    @property
    def legal(self) -> int:
        return self.laid.legal


def lay_out(plan: Plan, limit: int, rng: np.random.Generator) -> PlanRows:
    """List a plan: all of its legal rows up to `limit`, else a sample."""
    space = plan.space
    if space.size > HUGE and space.count is not None and space.count.legal > limit:
        return _drawn(plan, limit, rng)  # to list only the first of them would take longer than to count
    legal = space.enumerate(limit=min(_FEW, limit) + 1)
    if not legal.complete and (space.count is None or space.count.legal <= limit):
        legal = space.enumerate(limit=limit + 1)
    if legal.complete:
        return PlanRows(plan, lambda: legal.ids, dict(legal.rejected), legal.total, True, len(legal.ids))
    return _drawn(plan, limit, rng, legal.rejected)


def _drawn(plan: Plan, limit: int, rng: np.random.Generator, rejected: Mapping[str, int] | None = None) -> PlanRows:
    """A sample for a plan; `rejected` is what is known of it where its rows cannot be counted."""
    space, count = plan.space, plan.space.count

    def draw() -> Ids:
        return np.sort(space.sample(min(_SAMPLE, limit), rng))

    if count is None:
        ids = draw()
        return PlanRows(plan, lambda: ids, dict(rejected or {}), space.size, False, len(ids))
    return PlanRows(plan, draw, dict(count.rejected), space.size, False, count.legal)
