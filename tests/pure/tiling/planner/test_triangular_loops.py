"""Triangular loops in every plan: laid out, ranked, lowered, and right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.match.agreement import disagreement, expect
from support.plans import machine
from support.programs.triangles import TRIANGLES

from autosched.costmodel.analytic.clock import clock
from autosched.ir import parse
from autosched.machine.target import Memory
from autosched.tiling.planner.make_plans import make_plans

SMALL = replace(machine(), memories=(Memory("L1", 1 << 9, 2e11), Memory("L2", 1 << 11, 1e11), *machine().memories[2:]))
"""Caches that hold little: what exceeds them is asked for ahead of time."""


@pytest.mark.parametrize("name", TRIANGLES)
def test_plans_of_triangles(name: str) -> None:
    """Where rows of a triangle were asked for ahead of time, their length was taken for a constant."""
    program = parse(TRIANGLES[name])
    expected, rng = expect(program, 3), np.random.default_rng(3)
    for plan in make_plans(program, SMALL, {}):
        rows = plan.space.sample(2, rng)
        assert all(np.isfinite(seconds).all() for seconds in clock(plan, plan.space.values(rows)).values())
        assert disagreement(plan, map(int, rows), expected) is None
