"""Registers that hold matrices, filled from an image or a copy of it: what is offered, that rows compute the program,
what the copies are, and what the clock says of them."""

from __future__ import annotations

import numpy as np
import pytest
from support.match.agreement import disagreement, expect
from support.programs.matrices import COPIED, copied, matrix_plans, windows

from autosched.codegen.analysis.matrix_moves import move_of
from autosched.codegen.llvm.machine.compile import assembly
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Assign, Kernel, statements
from autosched.codegen.tree.text import print_kernel
from autosched.costmodel.analytic.clock import clock
from autosched.costmodel.analytic.cpu.copies import register_cycles
from autosched.ir import workload
from autosched.ir.rewrites.rewrite import simplify
from autosched.tiling.steps import PADDED

PROGRAMS = windows()

def a_kernel(name: str) -> Kernel:
    plan, rows = copied(name, 1)
    return lower(plan, plan.space.schedule(rows[0]))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", COPIED)
def test_copies_of_the_image_fill_them(name: str) -> None:
    plan, rows = copied(name, 2)
    assert disagreement(plan, rows, expect(PROGRAMS[name])) is None


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "apart"), [("window", 64), ("window_s2", 128), ("window_thin", 6), ("window_odd", 24)]
)
def test_rows_are_loaded_where_the_copy_has_them(name: str, apart: int) -> None:
    kernel = a_kernel(name)
    moves = [move_of(s, kernel.buffers) for s in statements(kernel.main.body) if isinstance(s, Assign)]
    from_copy = [m for m in moves if m and m.use == "load" and m.memory and m.memory.name == "X_padded"]
    assert {m.stride for m in from_copy} == {apart}


@pytest.mark.slow
def test_channels_first_stand_in_groups_of_those_that_a_register_takes_together() -> None:
    kernel = a_kernel("window_first_odd")
    groups = kernel.buffers["X_groups"]
    assert groups.shape[-1] == 4
    assert groups.shape[1] == 16  # of 64 channels, where the image has 24: zeros behind them
    assert "tileloadd" in assembly(print_llvm(kernel), "sapphirerapids")


@pytest.mark.slow
def test_floats_beside_a_fill_are_zeros_too() -> None:
    """Past a line's window stand other pixels, which may be infinite: no such copy is for floats."""
    for name in ("window_bf16_odd", "window_bf16_thin"):
        for plan in matrix_plans(PROGRAMS[name]):
            kinds = next(d for d in plan.space.decisions if d.name == "pack_a").domain
            assert PADDED not in kinds or "k←c)" in plan.name


def test_an_image_that_is_filled_in_place_is_not_copied() -> None:
    program, _ = simplify(workload("conv2d", h=4, w=32, ci=64, co=32, kh=1, kw=1, pad=0, a="u8", b="s8"))
    for plan in (p for p in matrix_plans(program) if "j←o" in p.name):
        kinds = next(d for d in plan.space.decisions if d.name == "pack_a")
        assert "direct" in kinds.labels
        assert "padded" not in kinds.labels


def test_what_the_end_of_an_axis_cuts_has_panels_of_its_own() -> None:
    plan, rows = copied("point", 100)
    row = next(r for r in rows if plan.space.schedule(r).values["reg_y.x"] == 1)
    kernel = lower(plan, plan.space.schedule(row))
    ends = sorted(b.elements for b in kernel.buffers.values() if b.name.startswith("X_panel"))
    register = 14 * 64  # three times 14 rows are 40 pixels and two more
    assert ends == [2 * register, 3 * register]  # all channels of the last 12 pixels; the last 36 of all pixels


@pytest.mark.slow
def test_the_clock_prices_a_copy_by_its_size_and_its_rows() -> None:
    program = workload("conv2d", h=56, w=56, ci=64, co=64, kh=3, kw=3, pad=1, a="u8", b="s8")
    plan = next(p for p in matrix_plans(program) if "i←x, j←o, k←c)" in p.name)
    ids = plan.space.enumerate().ids
    v = plan.space.values(ids)
    terms = clock(plan, v)
    same = (v["reg_y"] == 1) & (v["reg_x"] == 2) & (v["reg_o"] == 2) & (v["lines"] == 0)
    same &= (v["block_o"] == 0) & (v["block_x"] == 0) & (v["block_c"] == 0) & (v["order"] == 0)
    whole, panel = (int(np.flatnonzero(same & (v["pack_a"] == kind))[0]) for kind in (PADDED, 1))
    assert terms["pack"][whole] * 5 < terms["pack"][panel]  # each pixel once, not nine times
    assert terms["load"][whole] == pytest.approx(terms["load"][panel])  # whole lines both


@pytest.mark.slow
def test_the_clock_knows_what_rows_cost_that_touch_two_lines() -> None:
    """The 7x7 stem on an Emerald Rapids: 528 us where a register of the image serves one product, 282 where two."""
    program = workload("conv2d", h=224, w=224, ci=3, co=64, kh=7, kw=7, stride=2, pad=3, a="u8", b="s8")
    plan = next(p for p in matrix_plans(program) if "i←x, j←o, k←s.c)" in p.name)
    v = plan.space.values(plan.space.enumerate().ids)
    plain = (v["block_o"] == 0) & (v["block_x"] == 0) & (v["reg_x"] == 1) & (v["lines"] == 0)
    seconds = clock(plan, v)["total"]
    tall, square = (seconds[plain & (v["reg_y"] == y) & (v["reg_o"] == o)].min() for y, o in ((6, 1), (2, 2)))
    assert 1.3 * square < tall < 2.2 * square


@pytest.mark.parametrize("name", ["window", "window_bf16_odd"])
def test_rows_of_a_panel_are_copied_whole_along_a_fused_axis(name: str) -> None:
    plan = next(p for p in matrix_plans(PROGRAMS[name]) if "i←y.x, j←o, k←c)" in p.name)
    nest = plan.tensor_parts[0].nest
    assert register_cycles(nest, "a") < 10  # 64 neighbours of one pixel, not 64 elements
    row = int(plan.space.enumerate().ids[0])
    lines = [line.strip() for line in print_kernel(lower(plan, plan.space.schedule(row))).splitlines()]
    filled = next(n for n, line in enumerate(lines) if line.startswith("X_panel["))
    around = [line for line in lines[:filled] if line.startswith("for er")]
    assert around[-1].startswith("for er in 0..14:")  # where a pixel lies is asked once for all its channels
    assert disagreement(plan, [row], expect(PROGRAMS[name])) is None
