"""Registers that a thread needs at once, counted by hand."""

from __future__ import annotations

from dataclasses import replace

from support.cards.block_chains import HANDED, holding

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Assign, For, Stmt
from autosched.device.simulator.gpu.gpu_launch import OWN_REGISTERS, launch
from autosched.device.simulator.gpu.live_registers import most_live
from autosched.device.simulator.walk.walk import facts
from autosched.ir.dtypes import DTYPES
from autosched.ir.value import Literal, Read, Value
from autosched.logic import Const

F32 = DTYPES["f32"]
SIZES = {"S": 32, "T": 32, "P": 16, "A": 64}


def write(name: str, *reads: str) -> Assign:
    value: Value = Literal(0.0, F32)
    for other in reads:
        value = Read(other, (Const(0),), F32)
    return Assign(name, (Const(0),), value)


def loop(*body: Stmt) -> For:
    return For("k", Const(0), Const(4), body)


def test_what_a_stage_makes_takes_the_place_of_what_it_reads() -> None:
    assert most_live((write("S"), write("T", "S"), write("P", "T")), SIZES) == 32
    assert most_live((write("S"), write("T"), write("P", "T"), write("A", "S")), SIZES) == 64


def test_what_a_loop_carries_is_there_all_the_while() -> None:
    inside = loop(write("S"), write("P", "S"), write("A", "P"), write("A", "A"))
    assert most_live((write("A"), inside, write("O", "A")), SIZES) == 64 + 32
    assert most_live((write("T"), loop(write("S"), write("P", "T"), write("P", "S"))), SIZES) == 32 + 32 + 16


def test_a_buffer_that_is_read_first_comes_from_the_iteration_before() -> None:
    assert most_live((loop(write("P", "A"), write("S"), write("A", "S")),), SIZES) == 64 + 32


def test_rows_that_do_not_fit_spill() -> None:
    """What a thread of held rows needs at one point is known from above alone: NVRTC gives 168 to 255 registers to
    kernels of which 476 were counted, and which were refused."""
    chain = HANDED["four warps"]
    (row, *_) = holding(chain.plan, 1)
    kernel = lower(chain.plan, chain.plan.space.schedule(row))
    (found,) = (facts(kernel, s) for s in kernel.main.body)
    whole = launch(kernel, found, chain.machine)
    assert not whole.spilled
    narrow = launch(kernel, found, replace(chain.machine, limits={**chain.machine.limits, "registers_per_thread": 32}))
    assert narrow.registers == 32
    assert 0 < narrow.spilled <= 32 + OWN_REGISTERS
