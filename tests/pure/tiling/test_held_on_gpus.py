"""Chains of three products on a GPU: what matters little gives way where a space has too many rows, and no more."""

from __future__ import annotations

import numpy as np
import pytest
from support.cards.gpu_plans import CATALOGUE

from autosched.ir import workload
from autosched.machine.catalogue import load_target
from autosched.search.tuning.tune import usable
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.steps.gpu.operands.slice_copies import BULK

MATTERS = {16: ("block_", "stages", "roles", "split"), 4096: ("block_", "stages", "roles", "persistent", "epilogue")}
"""By rows: few tiles share their reductions, and of many none is split."""


@pytest.mark.slow
@pytest.mark.parametrize("m", MATTERS)
def test_producers_and_stages_are_still_decided(m: int) -> None:
    target = load_target("nvidia-h200")
    program = workload("swiglu", m=m, k=4096, f=11008, n=4096, t="bf16")
    found = usable(CATALOGUE, target, "simulator", ["wgmma.m64n64k16.bf16.f32"])
    plans = [p for p in plan_program(program, target, CATALOGUE, found).every if p.name.count("wgmma") == 3]
    assert plans
    for plan in plans[:2]:
        several = [d.name for d in plan.space.decisions if len(d.domain) > 1]
        for nest in plan.tensor_parts:
            own = [n for n in several if n.startswith(nest.names(""))]
            assert all(any(word in name for name in own) for word in MATTERS[m]), (plan.name, own)
        rows = plan.space.sample(20, np.random.default_rng(m))
        copies = {v for r in rows for n, v in plan.space.schedule(int(r)).values.items() if n.endswith(".copy")}
        assert BULK in copies


@pytest.mark.slow
def test_blocks_of_a_core_are_still_decided() -> None:
    """Attention at d = 64 takes 191 µs with two blocks a core, and 289 with one (16 heads, 4096 tokens, an H200)."""
    target = load_target("nvidia-h200")
    program = workload("attention_rounded", h=16, n=4096, l=4096, d=64, mask="full", t="f16")
    found = usable(CATALOGUE, target, "simulator", ["wgmma.m64n64k16.f16.f32"])
    plans = plan_program(program, target, CATALOGUE, found, numerics="real").every
    plan = next(p for p in plans if any(r.name.startswith("online") for r in p.rewrites))
    several = {d.name.rpartition(".")[2] for d in plan.space.decisions if len(d.domain) > 1}
    assert several >= {"held_rows", "ahead", "meeting", "resident"}
    assert {d.domain for d in plan.space.decisions if d.name.endswith("_block.vector")} == {(16,)}
