"""Tile loops on a GPU with one nest inside: its clock is that of the whole card, and no less than its limit."""

from __future__ import annotations

import numpy as np
from support.cards.gpu_plans import CATALOGUE

from autosched.costmodel.analytic.clock import clock, floors
from autosched.costmodel.analytic.limits import limit
from autosched.ir import workload
from autosched.machine.catalogue import load_target
from autosched.search.tuning.tune import usable
from autosched.tiling.planner.families import family_of
from autosched.tiling.planner.plan_program import plan_program

SIZES = {"rows": "contiguous", "m": 4096, "n": 2048, "k": 1024, "experts": 8, "block": 128, "t": "bf16"}


def test_the_limit_is_near_below_the_clock() -> None:
    """Every iteration's work is shared by all cores once: not by the loop's share and the nest's own."""
    target = load_target("nvidia-h200")
    found = usable(CATALOGUE, target, "simulator", ["wgmma.m64n64k16.bf16.f32"])
    plans = plan_program(workload("matmul_experts", **SIZES), target, CATALOGUE, found).every
    plan = next(p for p in plans if family_of(p) == "chosen slices")
    values = plan.space.values(plan.space.sample(400, np.random.default_rng(0)))
    times, least = clock(plan, values)["total"], limit(plan, values)
    assert (least <= times).all()
    assert times.min() < 10 * least.max()
    assert (sum(f(values) for f in floors(plan)) <= times * (1 + 1e-9)).all()
