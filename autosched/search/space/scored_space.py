"""The space of a study's plans, scored by the analytic clock."""

from __future__ import annotations

from collections.abc import Sequence

from autosched.costmodel import objective as objectives
from autosched.costmodel.analytic import clock as clocks
from autosched.costmodel.analytic.limits import limit
from autosched.search.space.answer_cache import AnswerCache
from autosched.search.space.space import LARGE, SearchSpace
from autosched.tiling.plans.plan import Plan


def space_of(
    plans: Sequence[Plan],
    *,
    objective: str = "latency",
    seed: int = 0,
    threads: int = 2,
    kept: AnswerCache | None = None,
    large: int = LARGE,
) -> SearchSpace:
    """The legal rows of the plans. `objective` is one of `costmodel.objective.OBJECTIVES`; `kept` may hold what an
    earlier space of them was asked; `large` is `SearchSpace`'s."""
    return SearchSpace(
        plans,
        objectives.objective_clock(objective),
        threads=threads,
        seed=seed,
        run_length=clocks.run_length,
        floors=objectives.floors(objective),
        parts=objectives.parts(objective),
        leasts=objectives.leasts(objective),
        least=limit if objective == "latency" else None,  # it is in seconds
        kept=kept,
        large=large,
    )
