"""Rows that the columns of a warpgroup's fragment hold lie in four warps: no shuffle reduces them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from support.cards.checked_kernels import checked
from support.cards.gpu_plans import CATALOGUE
from support.cards.hand_kernels import needs_compiler

from autosched.codegen.cuda import print_cuda
from autosched.codegen.lower import lower
from autosched.errors import UsageError
from autosched.ir import workload
from autosched.machine.catalogue import load_target
from autosched.search.tuning.tune import usable
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans import find_warp_rows
from autosched.tiling.plans.find_warp_rows import rows_inside
from autosched.tiling.plans.plan import Plan, TileLoopsPart
from autosched.tiling.plans.warp_rows import WarpRows

pytestmark = [needs_compiler, pytest.mark.compiler, pytest.mark.slow]


@cache
def plans() -> tuple[Plan, ...]:
    """One pass over keys whose scores have keys along the 64 rows of `wgmma`, four queries along its columns."""
    machine = dataclasses.replace(load_target("nvidia-h200"), cores=3)
    program = workload("attention_rounded", h=1, n=4, l=2048, d=32, mask="full", t="bf16")
    known = usable(CATALOGUE, machine, "simulator", None)
    found = plan_program(program, machine, CATALOGUE, known, numerics="real").every
    return tuple(p for p in found if p.in_tile_loops and "j←i_4" in p.name)


def inside(plan: Plan) -> Iterator[WarpRows]:
    for part in plan.parts:
        if isinstance(part, TileLoopsPart):
            yield from rows_inside(part)
            yield from inside(part.member)


def refusal(plan: Plan, row: int) -> str:
    """What the printer says of a row that it refuses; nothing of the others."""
    try:
        print_cuda(lower(plan, plan.space.schedule(row)), plan.target)
    except UsageError as error:
        return str(error)
    return ""


def test_what_is_reduced_lies_in_one_warp() -> None:
    plan = plans()[0]
    held = [r for r in inside(plan) if r.along == 1]
    assert held
    assert not any(s.reduces for rows in held for s in rows.stages.values())
    checked(plan, [int(r) for r in np.ravel(plan.space.sample(1, np.random.default_rng(1)))], "across_warps")


def test_no_shuffle_is_printed_between_warps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were they held all the same, the text would be refused."""
    monkeypatch.setattr(find_warp_rows._Body, "_in_one_warp", True)
    plan = plans.__wrapped__()[0]
    rows = np.unique(np.ravel(plan.space.sample(12, np.random.default_rng(1))))
    said = [text for row in rows if (text := refusal(plan, int(row)))]
    assert said
    assert all("another warp's registers" in text for text in said)
