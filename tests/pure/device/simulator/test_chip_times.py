"""Whole chips on the simulator: rows compute the program bit for bit, no time passes a roofline, units add up."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest
from support.chips import CHIPS, SMALL, measured, planned, program

from autosched.codegen.lower import lower
from autosched.costmodel.analytic.clock import clock
from autosched.costmodel.analytic.limits import limit
from autosched.device.simulator.device import estimate
from autosched.device.simulator.spatial.requests import SERVERS
from autosched.device.simulator.walk.walk import facts
from autosched.report.units import statements_lines, statements_of
from autosched.tiling.plans.plan import Plan


@cache
def plans(name: str, of: str) -> list[Plan]:
    return planned(name, of)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CHIPS)
@pytest.mark.parametrize("of", SMALL)
def test_rows_are_the_program_bit_for_bit(name: str, of: str) -> None:
    found = plans(name, of)
    for plan in (found[0], found[-1]) if name == "systolic" else found[:1]:
        for row, m in measured(plan, 1):
            assert m.ok, (plan.name, row, m.message)
            assert m.extra["verified"], m.extra["verified_by"]
            assert m.max_abs_error == 0, (plan.name, row)


def roofline(plan: Plan) -> float:
    """Seconds that a chip takes at least: the multiplications of the program on its array at its rate, and each
    parameter once over its bus."""
    target = plan.target
    arrays = [t for t in plan.tensor_parts if t.nest.intrinsic.accumulates and len(t.nest.intrinsic.inputs) > 1]
    cycles = 0.0
    for t in arrays:
        points = np.prod([a.extent for a in t.nest.stage.axes])
        each = np.prod([a.extent for a in t.nest.intrinsic.axes])
        cycles += points / each / target.issues(t.nest.intrinsic)
    tensors = [t for t in plan.program.tensors.values() if not t.intermediate]
    size = sum(np.prod(t.extents) * t.dtype.bits / 8 for t in tensors)
    return float(max(cycles / target.clock_hz, size / (target.memories[-1].bandwidth_bytes_per_s or 1.0)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CHIPS)
@pytest.mark.parametrize("of", SMALL)
def test_no_row_is_faster_than_the_bound_or_the_roofline(name: str, of: str) -> None:
    for plan in plans(name, of)[:1]:
        found = measured(plan, 3, seed=1)
        bounds = limit(plan, plan.space.values([row for row, _ in found]))
        for (row, m), bound in zip(found, bounds, strict=True):
            assert m.time_s is not None, (row, m.message)
            assert m.time_s >= max(bound, roofline(plan)), (plan.name, row)
            busy = {k: v for k, v in m.extra["model_s"].items() if k in SERVERS}
            assert max(busy.values()) <= m.time_s


def test_large_rows_come_near_the_roofline_and_stay_above() -> None:
    plan = planned("systolic", program("layer", m=256, n=256, k=256))[0]
    ids = plan.space.sample(300, np.random.default_rng(0))
    best = int(ids[np.argmin(clock(plan, plan.space.values(ids))["total"])])
    time_s = _time(plan, best)
    assert roofline(plan) < time_s < 2 * roofline(plan)


def _time(plan: Plan, row: int) -> float:
    kernel = lower(plan, plan.space.schedule(row))
    parts = [facts(kernel, s) for s in kernel.main.body]
    return float(estimate(kernel, parts, plan.target, plan.units).seconds["total"])


def best_time(plan: Plan) -> float:
    ids = plan.space.sample(200, np.random.default_rng(0))
    return _time(plan, int(ids[np.argmin(clock(plan, plan.space.values(ids))["total"])]))


APART = """
isa: systolic
requires: [systolic_16x16]
intrinsics:
  - name: less.f32
    semantics: |
      def less(x: f32[16, 16], m: f32[16], e: f32[16, 16]):
          for i, j in grid(16, 16):
              e[i, j] = x[i, j] - m[i]
    timing: {latency: 20, interval: 96}
  - name: exponential.f32
    semantics: |
      def exponential(x: f32[16, 16], e: f32[16, 16]):
          for i, j in grid(16, 16):
              e[i, j] = exp(x[i, j])
    timing: {latency: 40, interval: 128}
"""


def test_an_instruction_that_does_two_steps_saves_time() -> None:
    softmax = program("softmax", m=64, n=64)
    both = planned("systolic", softmax, more=APART)
    apart = planned("systolic", softmax, without=r"exp\.f32", more=APART)
    assert all("systolic/exp.f32" in p.name for p in both[:1])
    assert "E_s: systolic/less.f32" in apart[0].name
    assert best_time(both[0]) < best_time(apart[0])


def test_units_overlap_and_compete() -> None:
    """A layer of blocks takes less than its units one after the other, and more than the busiest; a slower bus, which
    loads and stores share, makes it longer."""
    plan = plans("systolic", "layer")[0]
    for _, m in measured(plan, 6, seed=3):
        (statement,) = (s for s in m.extra["statements"] if list(s["writes"]) == ["D"])
        assert statement["seconds"] >= max(statement["units"].values())
    large = planned("systolic", program("layer", m=128, n=128, k=128))[0]
    ids = large.space.sample(200, np.random.default_rng(0))
    row = int(ids[np.argmin(clock(large, large.space.values(ids))["total"])])
    memories = large.target.memories
    slow = dataclasses.replace(memories[-1], bandwidth_bytes_per_s=(memories[-1].bandwidth_bytes_per_s or 0) / 4)
    slower = dataclasses.replace(large, target=dataclasses.replace(large.target, memories=(*memories[:-1], slow)))
    (_, m), *_ = measured(large, 1)
    busy = {k: v for k, v in m.extra["model_s"].items() if k in SERVERS}
    assert _time(large, row) < sum(busy.values())
    assert _time(slower, row) > 1.5 * _time(large, row)


def test_statements_say_their_instructions_and_share() -> None:
    (_, m), *_ = measured(plans("systolic", "attention")[0], 1)
    found = statements_of(m.extra)
    assert [s["writes"][0] for s in found] == ["S", "M", "E", "Z", "P", "O"]
    assert list(found[-1]["instructions"]) == ["systolic/matmul", "systolic/out.scale.s8"]
    start = m.extra["model_s"]["start"]
    assert sum(s["seconds"] for s in found) + start == pytest.approx(m.time_s)
    assert sum(s["share"] for s in found) == pytest.approx(1 - start / (m.time_s or 1))
    lines = statements_lines(m.extra)
    assert lines[2].split()[:2] == ["E", "systolic/exp.s32"]
    assert statements_lines({}) == []
