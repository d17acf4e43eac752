"""What a product on a GPU takes at least, by its tiles alone, is no more than the clock says of any of its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autosched
from autosched.costmodel.analytic.clock import floors, least_terms, leasts, part_terms, timed_parts
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of
from autosched.tiling.plans.plan import Plan
from autosched.tiling.space.bounded import Least
from autosched.tiling.space.partial_columns import read_by
from autosched.tiling.space.table import MOST, tabulate

HALVES = {"a": "f16", "b": "f16", "acc": "f32"}
BYTES = {"a": "s8", "b": "s8", "acc": "s32"}
PROGRAMS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "shared memory read by the instruction": ("matmul", {"m": 128, "n": 64, "k": 256, **HALVES}, "nvidia-h100",
                                              "cuda/wgmma.m64n32k16.f16.f32"),
    "rows that begin within lines": ("matmul", {"m": 72, "n": 136, "k": 136, **HALVES}, "nvidia-h200",
                                     "cuda/wgmma.m64n64k16.f16.f32"),
    "fragments": ("matmul", {"m": 256, "n": 256, "k": 128, **HALVES}, "nvidia-a100", "cuda/mma.m16n8k16.f16.f16.f32"),
    "opaque fragments": ("matmul", {"m": 96, "n": 128, "k": 64, **BYTES}, "nvidia-rtx4090", "cuda/wmma.*"),
    "threads": ("conv2d", {"h": 9, "w": 9, "ci": 8, "co": 32, "t": "f32"}, "nvidia-a100", "cuda/fma.f32.v4"),
    "another maker": ("batch_matmul", {"batch": 3, "m": 64, "n": 64, "k": 96, **HALVES}, "amd-mi300x", "hip/mfma.*"),
}  # fmt: skip


def planned(name: str) -> list[Plan]:
    workload, sizes, target, only = PROGRAMS[name]
    request = TuneRequest(autosched.workload(workload, **sizes), autosched.target(target), only=(only,))
    return plans_of(request)[1]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_term_is_above_the_clocks(name: str) -> None:
    for plan in planned(name)[:3]:
        values = plan.space.values(np.sort(plan.space.sample(2000, np.random.default_rng(0))))
        for part in (p for p in timed_parts(plan) if p.part in plan.tensor_parts):
            said, least = part_terms(part, values), least_terms(part, values)
            assert said.keys() == least.keys()
            for term, seconds in said.items():
                assert np.all(least[term] <= seconds * (1 + 1e-9)), (plan.name, term)


def read_between(plan: Plan, least: Least) -> set[str]:
    """Names of the decisions that a bound reads beside the floor that it is given."""
    return {plan.space.decisions[p].name for p in read_by(plan.space, lambda v: least(v, np.zeros(1)))}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_reads_more_stands_between_floor_and_clock(name: str) -> None:
    for plan in planned(name)[:3]:
        values = plan.space.values(np.sort(plan.space.sample(2000, np.random.default_rng(2))))
        for part, floor, least in zip(timed_parts(plan), floors(plan), leasts(plan), strict=True):
            if part.part in plan.tensor_parts:
                assert least is not None
                assert not read_between(plan, least) & {"raster", "group"}
                seconds = part_terms(part, values)["total"]
                assert np.all(np.maximum(floor(values), least(values, floor(values))) <= seconds * (1 + 1e-9))


def test_it_reads_few_decisions_and_says_something() -> None:
    plan = planned("shared memory read by the instruction")[0]
    (floor,) = floors(plan)
    read = {plan.space.decisions[p].name for p in read_by(plan.space, floor)}
    assert not read & {"copy", "stages", "swizzle", "roles", "cluster", "persistent", "raster", "group", "epilogue"}
    table = tabulate(plan.space, floor)
    assert table is not None
    assert len(table.column) < MOST
    ids = np.sort(plan.space.sample(2000, np.random.default_rng(1)))
    (part,) = timed_parts(plan)
    seconds = part_terms(part, plan.space.values(ids))["total"]
    best = int(np.argmin(seconds))
    assert table.look_up(ids)[best] > 0.8 * seconds[best]
