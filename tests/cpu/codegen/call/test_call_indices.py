"""Indices from data are looked at before a call reads memory by them."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiled.native import compiled

from autosched import ir
from autosched.codegen.call.callable import CompiledKernel
from autosched.codegen.call.index_ranges import index_ranges
from autosched.codegen.lower import lower
from autosched.errors import UsageError
from autosched.ir.program import Program
from autosched.machine.catalogue import load_target
from autosched.search.tuning.baseline import literal_plan

ROWS = """
def rows(I: s32[n], T: f32[w, d], Y: f32[n, d], *, n=6, w=8, d=4):
    ASSUME
    for i, j in grid(n, d):
        Y[i, j] = READ
"""


def text(read: str = "T[I[i], j]", assume: str = "assume(0 <= I <= 7)") -> str:
    return ROWS.replace("READ", read).replace("    ASSUME\n", f"    {assume}\n" if assume else "")


def scalar_kernel(program: Program) -> CompiledKernel:
    plan = literal_plan(program, load_target("x86-avx2"))
    return compiled(lower(plan, plan.space.schedule(0)))


@pytest.mark.parametrize("assume", ["assume(0 <= I <= 7)", "assume(0 <= I)", ""])
@pytest.mark.parametrize("wrong", [-1, 8, 2**31 - 1])
def test_an_index_outside_is_refused_by_name(assume: str, wrong: int) -> None:
    program = ir.parse(text(assume=assume))
    kernel = scalar_kernel(program)
    t = np.arange(32, dtype=np.float32).reshape(8, 4)
    right = np.array([0, 7, 3, 3, 1, 2], np.int32)
    np.testing.assert_array_equal(kernel(right, t), t[right])
    with pytest.raises(UsageError, match=rf"I\[4\] is {wrong}"):
        kernel(np.array([0, 7, 3, 3, wrong, 2], np.int32), t)
    np.testing.assert_array_equal(kernel(I=right, T=t), t[right])


def test_what_a_condition_decides_on_is_left_to_it() -> None:
    """-1 stands for no row here; the range that is assumed holds all the same."""
    chosen = "(T[I[i], j] if I[i] >= 0 else 0)"
    assert index_ranges(ir.parse(text(chosen, ""))) == ()
    (known,) = index_ranges(ir.parse(text(chosen, "assume(-1 <= I <= 7)")))
    assert (known.tensor, known.low, known.high) == ("I", -1, 7)
    kernel = scalar_kernel(ir.parse(text(chosen, "assume(-1 <= I <= 7)")))
    t = np.ones((8, 4), np.float32)
    assert kernel(np.array([0, -1, 3, 3, 1, 2], np.int32), t)[1].tolist() == [0, 0, 0, 0]
    with pytest.raises(UsageError, match=r"I\[0\] is -2, and the program assumes -1 <= I <= 7"):
        kernel(np.array([-2, -1, 3, 3, 1, 2], np.int32), t)


def test_constant_indices_are_looked_at_once() -> None:
    kernel = scalar_kernel(ir.parse(text().replace("I: s32[n]", "I: const[s32[n]]")))
    with pytest.raises(UsageError, match=r"I\[2\] is 9"):
        kernel.prepack(I=np.array([0, 7, 9, 3, 1, 2], np.int32))
    t = np.arange(32, dtype=np.float32).reshape(8, 4)
    assert kernel.prepack(I=np.array([0, 7, 1, 3, 1, 2], np.int32))(t)[2].tolist() == t[1].tolist()
