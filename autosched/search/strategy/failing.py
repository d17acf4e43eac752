"""Plans whose candidates only fail: a few trials say so, and the others are worth more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import TypeVar

GIVE_UP = 4
"""Failed trials of a plan, none of which came out right."""
PlanT = TypeVar("PlanT", bound=Hashable)


def failing(trials: Iterable[tuple[PlanT, bool]]) -> frozenset[PlanT]:
    """The plans of which GIVE_UP trials failed and none came out right, of trials as pairs of a plan and that."""
    fine: set[PlanT] = set()
    failed: Counter[PlanT] = Counter()
    for plan, ok in trials:
        if ok:
            fine.add(plan)
        else:
            failed[plan] += 1
    return frozenset(plan for plan, count in failed.items() if count >= GIVE_UP and plan not in fine)
