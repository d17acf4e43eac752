"""No unit of any target is busy for less than it is asked for, and no row takes less than its bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autosched.codegen.lower import lower
from autosched.costmodel.analytic.limits import limit
from autosched.device.simulator.device import estimate
from autosched.device.simulator.gpu.gpu_launch import RefusedError
from autosched.device.simulator.walk.walk import facts
from autosched.ir import parse, resolve
from autosched.machine.catalogue import load_target, target_names
from autosched.machine.target import Target
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of
from autosched.tiling.plans.plan import Plan

BYTES = {"a": "s8", "b": "s8", "acc": "s32"}
HALVES = {"a": "f16", "b": "f16", "acc": "f32"}
SIZES = {"m": 72, "n": 40, "k": 56}
UNITS = ("array", "arithmetic", "tensor pipe")
"""What issues instructions, by the simulator's name for it."""


def programs(target: Target) -> list[tuple[str, dict[str, Any]]]:
    """Programs for a machine: products in types that it multiplies, an epilogue, and stages by rows."""
    if "warp_threads" in target.limits:
        types = HALVES
    else:
        types = BYTES if any(m.holds for m in target.memories) else {}
    return [("matmul_bias_relu", SIZES | types), ("softmax", {"m": 20, "n": 40}), ("reduce", {"m": 24, "n": 72})]


def held(plan: Plan, target: Target, rows: int) -> int:
    """How many rows of a plan's space were simulated; each is held to its bound, and each unit to its issues."""
    ids = plan.space.sample(rows, np.random.default_rng(7))
    values = plan.space.values(ids)
    bounds = limit(plan, values, formulas=False)
    done = 0
    for n, row in enumerate(ids):
        kernel, named = lower(plan, plan.space.schedule(int(row))), plan.space.schedule(int(row)).named
        try:
            model = estimate(kernel, [facts(kernel, s) for s in kernel.main.body], target, plan.units).seconds
        except RefusedError:  # too many registers, say
            continue
        assert model["total"] >= bounds[n] * (1 - 1e-9), (plan.name, named)
        at_once = values["threads"][n] if "threads" in values else 1
        assert all(s <= model["total"] * (1 + 1e-9) for s in model.values()), (plan.name, named)
        if len(plan.tensor_parts) == 1 and "warp_threads" not in target.limits:
            (part,) = plan.tensor_parts
            calls = float(np.prod([a.units for a in part.nest.axes]))
            interval = 1 / target.issues(part.nest.intrinsic) / target.clock_hz
            busy = max(model[u] for u in UNITS if u in model)
            assert busy >= calls * interval / at_once * (1 - 1e-9), (plan.name, named)
        done += 1
    return done


@pytest.mark.slow
@pytest.mark.parametrize("name", target_names())
def test_no_row_of_any_target_is_below_its_bound(name: str) -> None:
    target = load_target(name)
    done = 0
    for workload, sizes in programs(target):
        request = TuneRequest(resolve(workload, sizes), target, device="simulator", threads=2)
        plans = plans_of(request)[1]
        for plan in plans[:2]:
            done += held(plan, target, 6)
    assert done > 6


def test_no_ragged_row_of_an_array_is_below_its_bound() -> None:
    target = load_target("gemmini")
    request = TuneRequest(resolve("matmul", {"m": 200, "n": 120, "k": 136, **BYTES}), target, device="simulator")
    (plan, *_) = plans_of(request)[1]
    assert held(plan, target, 30) == 30


DISTANCES = """
def distances(A: f32[n, m], B: f32[n, m], C: f32[n], *, n=16, m=48):
    for i in range(n):
        C[i] = 0
        for j in range(m):
            C[i] += exp(A[i, j] - B[i, j])
"""


@pytest.mark.parametrize("name", ["arm-neoverse-v1", "x86-avx512"])
def test_no_row_of_a_stage_without_an_instruction_is_below_its_bound(name: str) -> None:
    target = load_target(name)
    plans = plans_of(TuneRequest(parse(DISTANCES), target, device="simulator"))[1]
    assert sum(held(plan, target, 6) for plan in plans) >= 6
