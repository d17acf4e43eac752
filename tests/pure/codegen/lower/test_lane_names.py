"""An axis of the program may have the name that lowering has for lanes."""

from __future__ import annotations

import numpy as np
import pytest
from support.match.agreement import disagreement, expect
from support.plans import machine

from autosched.ir import parse
from autosched.search.tuning.tune import usable
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.plan_program import plan_program

TEXT = """
def f(S: f32[n, n], M: f32[n], V: f32[n, d], O: f32[n, d], *, n=12, d=32):
    P: f32[n, n]
    for i, j in grid(n, n):
        P[i, j] = exp(S[i, j] - M[i])
    for i, e in grid(n, d):
        O[i, e] = 0
        for j in range(n):
            O[i, e] += P[i, j] * V[j, e]
"""


@pytest.mark.parametrize("place", ["in the load", "in packing"])
def test_operands_computed_on_the_way(place: str) -> None:
    program, catalogue, target = parse(TEXT, filename="f.py"), Catalogue.builtin(), machine()
    planned = plan_program(program, target, catalogue, usable(catalogue, target, "cpu", ("x86/vfmadd.f32.*",)))
    plans = [p for p in planned.every if place in p.name]
    expected = expect(program)
    for plan in plans[:1]:
        ids = plan.space.sample(6, np.random.default_rng(0)).tolist()
        assert disagreement(plan, ids, expected) is None
    if place == "in the load":
        assert plans
