"""The rows of a plan that a search lists: its legal rows, or a uniform sample where there are too many."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from autosched.search.space.answer_cache import AnswerCache
from autosched.tiling.space.counting import HUGE

if TYPE_CHECKING:
    from autosched.tiling.plans.plan import Plan

Ids: TypeAlias = npt.NDArray[np.int64]

LIMIT = 10_000_000
"""The most legal rows of one plan that are listed; of a larger plan a uniform sample is."""
_SAMPLE = 1 << 15
_FEW = 3_000_000
"""The most rows that are listed without being counted first, since counting takes time too."""


@dataclass(frozen=True)
class PlanRows:
    """A plan's legal rows. `ids`: sorted, drawn at the first use. `complete`: False where they are a uniform sample.
    `legal`: how many legal rows there are (those of the sample, where they could not be counted). `listed`: how many
    `ids` there are."""

    plan: Plan
    draw: Callable[[], Ids]
    rejected: dict[str, int]
    total: int
    complete: bool
    legal: int
    listed: int

    @cached_property
    def ids(self) -> Ids:
        return self.draw()


class PlanEntry:
    """A plan of a study; its rows (see `PlanRows`) are listed at the first use. The first proposals do not need those
    of a plan whose bound is already slower than other plans."""

    def __init__(self, plan: Plan, limit: int, seed: Sequence[int], kept: AnswerCache | None = None) -> None:
        self.plan = plan
        self._limit, self._seed = limit, seed
        self._kept, self._name = kept or AnswerCache(), f"plan {seed[-1]}"

    @cached_property
    def laid(self) -> PlanRows:
        """The plan's rows, listed anew or from the answers in the store."""
        rules = tuple(dict.fromkeys(rule.name for rule in self.plan.space.rules))
        known = self._kept.find(f"{self._name}, laid out")
        if known is None:
            laid = self._laid_out()
            numbers = [laid.total, laid.complete, laid.legal, laid.listed]
            rejected = [laid.rejected.get(rule, -1) for rule in rules]
            self._kept.put(f"{self._name}, laid out", (np.array([*numbers, *rejected], np.int64),))
        else:
            total, complete, legal, listed, *rejected = (int(number) for number in known[0])
            removed = {rule: count for rule, count in zip(rules, rejected, strict=True) if count >= 0}
            laid = PlanRows(self.plan, lambda: self._laid_out().ids, removed, total, bool(complete), legal, listed)
        if laid.listed > _SAMPLE:
            return laid
        return replace(laid, draw=lambda: self._kept.answer(f"{self._name}, rows", lambda: (laid.draw(),))[0])

    def _laid_out(self) -> PlanRows:
        return lay_out(self.plan, self._limit, np.random.default_rng(self._seed))

    @property
    def ids(self) -> Ids:
        return self.laid.ids

    @property
    def listed(self) -> int:
        return self.laid.listed

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


def lay_out(plan: Plan, limit: int, rng: np.random.Generator, few: int = _FEW) -> PlanRows:
    """List a plan: all of its legal rows up to `limit`, else a sample. Up to `few` rows are listed without being
    counted first."""
    space = plan.space
    if space.size > HUGE and space.count is not None and space.count.legal > limit:
        return _drawn(plan, limit, rng)  # listing the first of them would take longer than counting all
    legal = space.enumerate(limit=min(few, limit) + 1)
    if not legal.complete and (space.count is None or space.count.legal <= limit):
        legal = space.enumerate(limit=limit + 1)
    if legal.complete:
        count = len(legal.ids)
        return PlanRows(plan, lambda: legal.ids, dict(legal.rejected), legal.total, True, count, count)
    return _drawn(plan, limit, rng, legal.rejected)


def _drawn(plan: Plan, limit: int, rng: np.random.Generator, rejected: Mapping[str, int] | None = None) -> PlanRows:
    """A sample of a plan's rows; `rejected`: the counts of rejected rows, for where rows cannot be counted."""
    space, count = plan.space, plan.space.count
    rows = min(_SAMPLE, limit)

    def draw() -> Ids:
        return np.sort(space.sample(rows, rng))

    if count is None:
        ids = draw()
        return PlanRows(plan, lambda: ids, dict(rejected or {}), space.size, False, len(ids), len(ids))
    return PlanRows(plan, draw, dict(count.rejected), space.size, False, count.legal, min(rows, count.legal))
