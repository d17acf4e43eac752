"""Products on narrow weights with few rows: memory takes longer than lanes of warps, by which a plan computes then."""

from __future__ import annotations

import numpy as np
import pytest
from support.cards.checked_kernels import checked
from support.cards.gpu_plans import CATALOGUE
from support.cards.hand_kernels import needs_compiler

from autosched.ir import workload
from autosched.machine.catalogue import load_target
from autosched.search.tuning.tune import usable
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.plan import Plan, WarpCooperativePart

pytestmark = [needs_compiler, pytest.mark.compiler]


def by_lanes(plan: Plan) -> bool:
    """Whether lanes of warps sum the groups up."""
    parts = [p for p in plan.parts if isinstance(p, WarpCooperativePart)]
    return any("Y_group" in [s.assign.tensor for s in p.members] for p in parts)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["int4", "int8", "fp8"])
def test_lanes_of_warps_read_narrow_weights(kind: str) -> None:
    machine = load_target("nvidia-h200")
    program = workload(f"matmul_{kind}", m=1, n=96, k=256, g=64, t="bf16")
    known = usable(CATALOGUE, machine, "simulator", None)
    plans = plan_program(program, machine, CATALOGUE, known, numerics="real").plans
    found = [p for p in plans if by_lanes(p)]
    assert found, [p.name for p in plans]
    for plan in found[:1]:
        rows = np.unique(np.ravel(plan.space.sample(2, np.random.default_rng(5))))
        checked(plan, [int(r) for r in rows], f"narrow_{kind}")
