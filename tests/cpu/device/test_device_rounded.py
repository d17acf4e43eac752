"""Kernels by a rewrite that is equal over the reals only: they round other numbers than the program does."""

from __future__ import annotations

from typing import Any

import pytest

from autosched.device.correctness.oracle import slack
from autosched.device.cpu.device import CpuDevice
from autosched.ir.workload import workload
from autosched.machine.detect import detect
from autosched.search.tuning.tune import usable
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.candidate import Candidate
from autosched.tiling.planner.plan_program import plan_program

LARGE = {"h": 2, "n": 96, "l": 700, "d": 40}


@pytest.mark.sampled("few rows")
@pytest.mark.compiler
@pytest.mark.parametrize(
    "sizes",
    [{"mask": "causal", "h": 1, "n": 32, "l": 200, "d": 16}, LARGE | {"mask": "full"}, LARGE | {"mask": "causal"}],
    ids=["few rows", "full", "causal"],
)
def test_one_pass_may_round_other_exponentials(sizes: dict[str, Any]) -> None:
    """Several blocks of keys: an exponential is rounded behind the greatest score so far, and moved afterwards."""
    program = workload("attention_rounded", **sizes, t="bf16")
    target, catalogue = detect(), Catalogue.builtin()
    fitting = usable(catalogue, target, "cpu", None)
    planned = plan_program(program, target, catalogue, fitting, numerics="real")
    plan = next(p for p in planned.every if any(r.name.startswith("online") for r in p.rewrites))
    assert slack(plan).sums > 1
    plain = next(p for p in planned.every if not p.rewrites)
    with CpuDevice(program, target, deadline_s=60) as device:
        for chosen in (plain, plan, plain):  # what was written for one is made as wide as the next one needs it
            found = device.measure(device.build(Candidate(chosen, int(chosen.space.few[0]))))
            assert found.ok, found.message
