"""What is computed on the way to a product is fused behind no product before it: it has to find its operands."""

from __future__ import annotations

import numpy as np
import pytest
from support.match.agreement import disagreement, expect
from support.plans import machine

from autosched.ir.workload import workload
from autosched.search.tuning.tune import usable
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.plan_program import plan_program


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("mlp", {"m": 9, "k": 20, "f": 40, "n": 24}),
        ("swiglu", {"m": 9, "k": 20, "f": 40, "n": 24}),
        ("swiglu", {"m": 40, "k": 20, "f": 40, "n": 24}),
    ],
)
def test_each_stage_is_computed_once(name: str, sizes: dict[str, int]) -> None:
    program, catalogue, target = workload(name, **sizes), Catalogue.builtin(), machine()
    planned = plan_program(program, target, catalogue, usable(catalogue, target, "cpu", ("x86/vfmadd.f32.*",)))
    plans = [p for p in planned.every if " in the load" in p.name or " in packing" in p.name]
    assert plans
    expected = expect(program)
    for plan in plans[:3]:
        fused = {f.stage.name for t in plan.tensor_parts for f in t.epilogue}
        assert not fused & {c.stage for t in plan.tensor_parts for c in t.nest.computed.values()}
        ids = plan.space.sample(3, np.random.default_rng(0)).tolist()
        assert disagreement(plan, ids, expected) is None, plan.name
