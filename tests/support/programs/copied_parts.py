"""Programs whose operands are copied a part at a time, on a machine whose first cache they outgrow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from support.plans import machine, plans_of

from autosched.ir import workload
from autosched.machine.target import Target
from autosched.tiling.plans.plan import Plan
from autosched.tiling.steps import EACH_PART

BYTES = {"a": "u8", "b": "s8", "acc": "s32"}
PROGRAMS = {
    "channels": workload("depthwise_conv2d", h=5, w=18, c=7, layout="nchw"),
    "channels_of_bytes": workload("depthwise_conv2d", h=7, w=37, c=5, layout="nchw", stride=2, **BYTES),
    "images_and_channels": workload("depthwise_conv2d", h=4, w=18, c=5, n=2, layout="nchw"),
    "interleaved_images": workload("conv2d", h=2, w=18, ci=6, co=3, n=3, layout="nchw", **BYTES),
}
ONLY = ("x86/vfmadd.f32.*", "x86/vpdpbusd.*")


def parted(name: str, target: Target | None = None) -> tuple[Plan, list[int]]:
    """A plan that may copy parts, and rows of one and of two threads that do."""
    target = target or machine()
    small = replace(target, memories=tuple(replace(m, bytes=256) if m.name == "L1" else m for m in target.memories))
    for plan in plans_of(PROGRAMS[name], small, threads=2, only=ONLY):
        columns = [d.name for d in plan.space.decisions if d.name.startswith("copy_")]
        if columns:
            ids = plan.space.enumerate().ids
            values = plan.space.values(ids)
            rng = np.random.default_rng(1)
            mine = [ids[(values[columns[0]] == EACH_PART) & (values["threads"] == n)] for n in (1, 2)]
            return plan, [int(r) for some in mine for r in rng.choice(some, size=2, replace=False)]
    raise AssertionError(f"no plan of {name} copies parts")
