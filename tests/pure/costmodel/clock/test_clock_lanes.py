"""What the clock knows of lanes that each ask if their element is real: measured pairs of schedules."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from support.plans import plans_of

from autosched.costmodel.analytic.clock import clock
from autosched.costmodel.analytic.cpu.nest_cycles import LANE_CYCLES
from autosched.ir import workload
from autosched.machine.catalogue import load_target
from autosched.tiling.plans.plan import Plan
from autosched.tiling.steps.cpu.by_lane import asked_by_lane, copied_by_lane

ZEN = load_target("amd-zen4")
BYTES = {"a": "u8", "b": "s8", "acc": "s32"}


def plan_of(pad: int, stride: int = 1, **types: str) -> Plan:
    """A depthwise convolution with channels first, a register's lanes along a line of the image."""
    program = workload("depthwise_conv2d", h=56, w=56, c=128, pad=pad, stride=stride, layout="nchw", **types)
    return next(p for p in plans_of(program, ZEN) if "zmm(i←x" in p.name or "zmm(j←x" in p.name)


def seconds(plan: Plan, **chosen: int | str) -> float:
    base: dict[str, int | str] = {d.name: d.domain[0] for d in plan.space.decisions}
    row = plan.space.row_of({**base, **chosen})
    assert plan.space.legal(np.array([row])).all(), plan.space.why_not(row)
    return float(clock(plan, plan.space.values(np.array([row])))["total"][0])


@pytest.mark.slow
def test_bytes_beyond_a_border_are_asked_for_one_by_one() -> None:
    """u8·s8 56x56x128 on Zen 5: 1,140 us straight from the image, 27 to 35 from a copy with its border."""
    plan = plan_of(1, **BYTES)
    direct = seconds(plan, reg_y=8, reg_x=3, pack_a="direct", pack_b="panel", loads="r s", prefetch_out="yes")
    padded = seconds(plan, reg_y=8, reg_x=3, pack_a="padded", pack_b="panel", loads="r s", prefetch_out="yes")
    assert direct > 10 * padded


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("pad", "stride", "types", "expected"),
    [(1, 1, BYTES, True), (0, 1, BYTES, True), (1, 1, {}, False), (0, 1, {}, False), (1, 2, {}, True)],
)
def test_who_asks_lane_by_lane(pad: int, stride: int, types: dict[str, str], expected: bool) -> None:
    """Three bytes of four for each lane, or every second f32 up to a border; neighbours come by masked loads."""
    nest = plan_of(pad, stride, **types).tensor_parts[0].nest
    image = next(o.name for o in nest.intrinsic.inputs if nest.mapping.operands[o.name].tensor == "X")
    assert asked_by_lane(nest, image) == expected


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("types", "stride", "share"), [(BYTES, 2, 0.0), ({"t": "bf16"}, 1, 0.5), ({"t": "bf16"}, 2, 0.0)]
)
def test_copies_are_asked_lane_by_lane_where_both_factors_are_masked(
    types: dict[str, str], stride: int, share: float
) -> None:
    """Three taps in two pairs of floats, of which the second has one that is none. With such a mask on its copy the
    image of bytes took 1,486 us at stride 2 (144 channels, 2.9 cycles a lane on Zen 3) and 99 us without; the clock had
    said 45."""
    plan = plan_of(1, stride, **types)
    nest = plan.tensor_parts[0].nest
    image = next(o for o, read in nest.mapping.operands.items() if read.tensor == "X")
    assert copied_by_lane(nest, image) == share
    chosen = {f"pack_{o}": "padded" if o == image else "panel" for o in ("a", "b")}
    plain, asked = seconds(plan, **chosen), share * LANE_CYCLES / ZEN.clock_hz
    assert plain > 16 * prod(a.units for a in nest.axes) * asked
    assert share or plain < nest.points * LANE_CYCLES / ZEN.clock_hz / 10
