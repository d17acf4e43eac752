"""A large batch has rows of every plan whose time, by the clock, is near the best one's."""

from __future__ import annotations

from functools import cache

import numpy as np

from autosched.ir.workload import workload
from autosched.machine.catalogue import load_target
from autosched.search.request import TuneRequest
from autosched.search.space.rows import Rows
from autosched.search.space.scored_space import space_of
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.model_guided import Auto
from autosched.search.tuning.tune import plans_of

TIED, PLACES = 1.25, 6


@cache
def space() -> SearchSpace:
    program = workload("matmul", m=64, n=64, k=64, t="f16", out="f32")
    request = TuneRequest(program, load_target("nvidia-a100"), device="simulator")
    return space_of(plans_of(request)[1], seed=0)


def test_plans_that_are_near_share_places() -> None:
    first = int(space().best(1)[0].plan[0])
    rows = Auto(space(), 0, None)._of_other_plans(Rows.of(first, [0]), PLACES)
    limit = TIED * float(space().best(1)[1][0])
    others = [p for p in space().plausible if p != first]
    near = [p for p in others if float(space().best(1, p)[1][0]) <= limit][:PLACES]
    assert near
    assert sorted(set(rows.plan.tolist())) == sorted(near)
    assert len(rows) <= PLACES
    counts = np.bincount(rows.plan)[near]
    assert counts.max() - counts.min() <= 1


def test_they_have_some_of_many_rows() -> None:
    limit = TIED * float(space().best(1)[1][0])
    near = {p for p in space().plausible if float(space().best(1, p)[1][0]) <= limit}
    asked = Auto(space(), 0, None).propose(4 * PLACES)
    names = {space().plans[p].plan.name for p in near}
    assert len(names & {c.plan.name for c in asked}) >= min(len(near), 1 + PLACES)
    assert len({(c.plan.name, c.row) for c in asked}) == 4 * PLACES
