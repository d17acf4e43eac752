"""Machine code behind guarded loads: multiply-adds stand where their operands are loaded."""

from __future__ import annotations

import re

import pytest
from support.plans import machine, plans_of
from support.programs.copies import UNPACKED, rows_with

from autosched.codegen.llvm.machine.compile import assembly
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower
from autosched.ir import parse, workload

WIDE = machine(frozenset({"avx2", "fma", "avx512f"}), registers=32, vector_bytes=64)


@pytest.mark.x86
def test_what_guarded_loads_brought_does_not_wait_on_the_stack() -> None:
    """28 accumulators and three weights leave room for one position of the image at a time. Vectors went through the
    stack 111 and 99 times where multiply-adds had sunk below the loads, 2 and 17 times since."""
    program = workload("depthwise_conv2d", h=28, w=56, c=32)
    space = (plan := next(p for p in plans_of(program, WIDE, only=("*zmm",)) if p.tensor_parts)).space
    ids = space.enumerate(limit=1_000_000).ids
    values = space.values(ids)
    chosen = (values["reg_y"] * values["reg_x"] * values["reg_o"] == 28) & (values["loads"] == 1)
    for edges in (0, 1):
        row = ids[chosen & (values["edges"] == edges)][0]
        text = assembly(print_llvm(lower(plan, space.schedule(row))), "znver4")
        assert text.count("vfmadd") >= 84
        assert len(re.findall(r"zmm.*\(%rsp|\(%rsp\).*zmm", text)) < 20


@pytest.mark.x86
def test_no_lane_has_a_branch_of_its_own_where_weights_end_the_sum() -> None:
    """Three taps in groups of four: the mask is on the weights' loads, once a line of the window. With one on the image
    too, a register of it took 32 branches: 1,486 us a depthwise convolution of 144 56x56 images on Zen 3, 99 since."""
    program = parse(UNPACKED, sizes={"h": 9, "w": 40})
    for plan in (p for p in plans_of(program, only=("x86/v*",)) if "←s" in p.name):
        for row in rows_with(plan, "padded"):
            kernel = print_llvm(lower(plan, plan.space.schedule(row)))
            assert "lane.load" not in kernel
            assert len(re.findall("call .*@llvm.masked.load", kernel)) <= kernel.count("@llvm.x86.avx512")


@pytest.mark.slow
def test_no_lane_has_a_branch_of_its_own_where_a_group_lies_in_one_pixel() -> None:
    """A depth of two fused axes, in groups that end where the inner one does: a register's lanes are at one place of
    the window. Asked lane by lane, an int8 convolution of 28x28x128 took 187 ms on Zen 3 and takes 3.2."""
    program = workload("conv2d", h=5, w=6, ci=8, co=16, a="u8", b="s8", acc="s32")
    fused = [p for p in plans_of(program, only=("x86/v*",)) if "←s.c" in p.name]
    assert fused
    for plan in fused:
        for row in rows_with(plan, "direct"):
            assert "lane.load" not in print_llvm(lower(plan, plan.space.schedule(row)))
