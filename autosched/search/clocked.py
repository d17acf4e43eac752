"""The space of a study's plans, scored by the analytic clock."""

from __future__ import annotations

from collections.abc import Sequence

from autosched.costmodel import clock as clocks
from autosched.costmodel.limits import limit
from autosched.costmodel.objective import objective_clock
from autosched.search.space import SearchSpace
from autosched.tiling.plan import Plan


def space_of(plans: Sequence[Plan], *, objective: str = "latency", seed: int = 0, threads: int = 2) -> SearchSpace:
    """The legal rows of the plans. `objective` is one of `costmodel.objective.OBJECTIVES`."""
    if objective != "latency":  # what floors and parts add up to is seconds
        return SearchSpace(plans, objective_clock(objective), threads=threads, seed=seed)
    return SearchSpace(
        plans,
        clocks.clock,
        threads=threads,
        seed=seed,
        run_length=clocks.run_length,
        floors=clocks.floors,
        parts=clocks.parts,
        least=limit,
    )
