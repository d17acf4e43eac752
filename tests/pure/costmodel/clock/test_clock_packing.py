"""What tile loops have packed in front of them is timed for each nest by itself, so that nests are searched apart."""

from __future__ import annotations

import numpy as np
import pytest

from autosched import api
from autosched.costmodel.analytic.clock import clock, floors, parts, timed_parts
from autosched.costmodel.analytic.cpu.prepared_outside import prepares
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.plan import Plan, TileLoopsPart
from autosched.tiling.space.bounded import read_by_some, timed
from autosched.tiling.space.independent_groups import IndependentGroups

SIZES = {"swiglu": {"m": 96, "k": 768, "f": 2048, "n": 768}, "attention": {"h": 2, "n": 256, "l": 256, "d": 64}}


@pytest.fixture(scope="module", params=SIZES)
def plan(request: pytest.FixtureRequest) -> Plan:
    target, known = api.target("x86-avx512"), api.catalogue()
    asked = known.of_isa(target.isa, features=target.features, kind="compute")
    found = plan_program(api.workload(request.param, **SIZES[request.param]), target, known, asked).plans
    return next(p for p in found if any(isinstance(q, TileLoopsPart) for q in p.parts) and len(p.tensor_parts) > 1)


def test_no_part_reads_decisions_of_two_nests(plan: Plan) -> None:
    nests = [t.names.prefix for t in plan.tensor_parts]
    packs = 0
    for part, seconds in zip(timed_parts(plan), parts(plan), strict=True):
        reads = {plan.space.decisions[d].name for d in read_by_some(plan.space, seconds)}
        assert sum(any(name.startswith(prefix) for name in reads) for prefix in nests) <= 1
        packs += part.packed is not None and any("pack_" in name for name in reads)
    loops = next(q for q in plan.parts if isinstance(q, TileLoopsPart))
    assert packs == sum(prepares(loops, plan.program, t) for t in plan.tensor_parts)
    assert packs == (2 if plan.program.name == "attention" else 0)  # constants are packed before the call


def test_parts_add_up_to_the_clock_and_the_best_row_is_found(plan: Plan) -> None:
    rows = plan.space.thinned(200, np.random.default_rng(0))
    values = plan.space.values(rows)
    total = clock(plan, values)["total"]
    assert np.allclose(total, sum(seconds(values) for seconds in parts(plan)))
    both = timed(parts(plan), floors(plan))
    search = IndependentGroups(plan.space, both, lambda ids: clock(plan, plan.space.values(ids))["total"])
    assert search.several
    best = search.best(1, float(total.min()))
    assert len(best.ids) == 1
    assert best.seconds[0] <= total.min() * (1 + 1e-9)
