"""Products on narrow weights with few rows: memory takes longer than lanes of warps, by which a plan computes then."""

from __future__ import annotations

import numpy as np
import pytest
from support.cards.checked_kernels import checked
from support.cards.gpu_plans import CATALOGUE
from support.cards.hand_kernels import needs_compiler

from autosched import ir
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
    plans = plan_program(program, machine, CATALOGUE, known, numerics="real").every
    found = [p for p in plans if by_lanes(p)]
    assert found, [p.name for p in plans]
    for plan in found[:1]:
        rows = np.unique(np.ravel(plan.space.sample(2, np.random.default_rng(5))))
        checked(plan, [int(r) for r in rows], f"narrow_{kind}")


FORMS = {
    "along rows": """
def f(X: t[m, n], Y: f32[m], *, m=5, n=77, t="u4"):
    for i in range(m):
        Y[i] = 0
        for j in range(n):
            Y[i] += f32(X[i, j]) * 3.0
""",
    "along results": """
def f(X: t[k, n], Y: f32[n], *, k=9, n=96, t="u4"):
    for j in range(n):
        Y[j] = 0
        for p in range(k):
            Y[j] += f32(X[p, j])
""",
    "each element": """
def f(X: t[m, n], Z: t[n], Y: f32[m, n], *, m=6, n=64, t="u4"):
    for i, j in grid(m, n):
        Y[i, j] = f32(X[i, j]) - f32(Z[j])
""",
    "two stages": """
def f(X: t[m, n], Y: f32[m, n], *, m=6, n=64, t="u4"):
    M: f32[m]
    for i in range(m):
        M[i] = -inf
        for j in range(n):
            M[i] = max(M[i], f32(X[i, j]))
    for i, j in grid(m, n):
        Y[i, j] = f32(X[i, j]) - M[i]
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["u4", "s4", "e2m1", "e2m3", "e3m2", "b1"])
def test_lanes_read_elements_of_less_than_a_byte(dtype: str, form: str) -> None:
    machine = load_target("nvidia-h200")
    program = ir.parse(FORMS[form].replace("u4", dtype))
    known = usable(CATALOGUE, machine, "simulator", None)
    plans = plan_program(program, machine, CATALOGUE, known, numerics="rescaled").plans
    plan = next(p for p in plans if any(isinstance(q, WarpCooperativePart) for q in p.parts))
    checked(plan, [int(r) for r in np.ravel(plan.space.sample(1, np.random.default_rng(7)))], "narrow_lanes")
