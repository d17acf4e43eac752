"""What the clock knows of lanes that each ask if their element is real: measured pairs of schedules."""

from __future__ import annotations

import numpy as np
import pytest
from support.plans import plans_of

from autosched.costmodel.clock import clock
from autosched.ir import workload
from autosched.machine.catalogue import load_target
from autosched.tiling.plan import Plan
from autosched.tiling.steps.layout import asked_by_lane

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


def test_bytes_beyond_a_border_are_asked_for_one_by_one() -> None:
    """u8·s8 56x56x128 on Zen 5: 1,140 us straight from the image, 27 to 35 from a copy with its border."""
    plan = plan_of(1, **BYTES)
    direct = seconds(plan, reg_y=8, reg_x=3, pack_a="direct", pack_b="panel", loads="r s", prefetch_out="yes")
    padded = seconds(plan, reg_y=8, reg_x=3, pack_a="padded", pack_b="panel", loads="r s", prefetch_out="yes")
    assert direct > 10 * padded


@pytest.mark.parametrize(
    ("pad", "stride", "types", "expected"),
    [(1, 1, BYTES, True), (0, 1, BYTES, True), (1, 1, {}, False), (0, 1, {}, False), (1, 2, {}, True)],
)
def test_who_asks_lane_by_lane(pad: int, stride: int, types: dict[str, str], expected: bool) -> None:
    """Three bytes of four for each lane, or every second f32 up to a border; neighbours come by masked loads."""
    nest = plan_of(pad, stride, **types).tensor_parts[0].nest
    image = next(o.name for o in nest.intrinsic.inputs if nest.mapping.operands[o.name].tensor == "X")
    assert asked_by_lane(nest, image) == expected
