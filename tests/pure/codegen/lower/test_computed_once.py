"""A stage between two products is computed behind the first or on the way to the second, not both."""

from __future__ import annotations

import numpy as np
from support.match.agreement import disagreement, expect
from support.plans import machine

from autosched.ir import parse
from autosched.search.tuning.tune import usable
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.plan_program import plan_program

TEXT = """
def between(X: f32[m, k], W: f32[k, n], D: f32[n, o], Y: f32[m, o], *, m=3, k=16, n=17, o=8):
    B: f32[m, n]
    H: f32[m, n]
    for i, j in grid(m, n):
        B[i, j] = 0
        for p in range(k):
            B[i, j] += X[i, p] * W[p, j]
    for i, j in grid(m, n):
        H[i, j] = max(B[i, j], 0)
    for i, j in grid(m, o):
        Y[i, j] = 0
        for p in range(n):
            Y[i, j] += H[i, p] * D[p, j]
"""


def test_what_is_computed_in_the_load_reads_what_reached_memory() -> None:
    program, catalogue, target = parse(TEXT, filename="between.py"), Catalogue.builtin(), machine()
    planned = plan_program(program, target, catalogue, usable(catalogue, target, "cpu", ("x86/vfmadd.f32.*",)))
    plans = [p for p in planned.every if "H in the load" in p.name and p.name.startswith("B: ")]
    assert plans
    assert not any("+H" in p.name for p in plans)
    expected = expect(program)
    for plan in plans:
        ids = plan.space.sample(2, np.random.default_rng(0)).tolist()
        assert disagreement(plan, ids, expected) is None
