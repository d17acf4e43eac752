"""Kernels that are to leave room for other blocks of a core, and cannot: they are compiled without the limit."""

from __future__ import annotations

import numpy as np
from support.cards.block_chains import F16, H200, BlockChain
from support.cards.nvrtc import compiled

from autosched.codegen.cuda import print_cuda
from autosched.codegen.lower import lower
from autosched.tiling.space.tied_groups import settled
from autosched.tiling.steps.gpu.bodies.held_rows import AHEAD, FETCHED, RESIDENT, ROWS
from autosched.tiling.steps.gpu.operands.operand_sources import GLOBAL

WANTED = {ROWS.name: 2, RESIDENT.name: 4, AHEAD.name: FETCHED, "stage_a": GLOBAL}


def test_a_kernel_that_no_allocation_fits_goes_without_the_limit() -> None:
    """ptxas refused it (C7600): sums of two products and operands of calls that run on may not be spilled."""
    sizes = {"h": 4, "n": 512, "l": 512, "d": 64, "tile": 128, "block": 64}
    plan = BlockChain("causal", H200, F16 | sizes).plan
    asked = {
        n: d.domain.index(WANTED[name])
        for n, d in enumerate(plan.space.decisions)
        if (name := d.name.rsplit(".", 1)[-1]) in WANTED
    }
    inner = settled(plan.space, [*asked], [*asked.values()])
    (row,) = inner.thinned(1, np.random.default_rng(0))
    schedule = plan.space.schedule(plan.space.row_of(inner.schedule(int(row)).values))
    source = print_cuda(lower(plan, schedule), plan.target)
    assert "LIMIT_REGISTERS(256, 64)" in source.text
    (taken,) = compiled(source).kernels.values()
    assert taken.registers > 64
    assert not taken.spills
