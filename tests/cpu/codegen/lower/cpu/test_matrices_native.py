"""Registers that hold matrices, as machine code, where this machine has them: images and their copies, fewer rows."""

from __future__ import annotations

import pytest
from support.match.agreement import expect
from support.plans import covering_rows
from support.programs.matrices import COPIED, copied, matrix_plans, programs

from autosched.codegen.call.callable import CompiledKernel
from autosched.codegen.llvm.machine.compile import compile_object
from autosched.codegen.llvm.machine.jit import load
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower
from autosched.ir.program import Program
from autosched.machine.host import host_features
from autosched.tiling.plans.plan import Plan

pytestmark = [
    pytest.mark.x86,
    pytest.mark.skipif(not {"amx_tile", "amx_int8", "amx_bf16"} <= host_features(), reason="this machine has no AMX"),
]


def wrong(program: Program, plan: Plan, rows: list[int]) -> str | None:
    expected = expect(program)
    for row in rows:
        kernel = lower(plan, plan.space.schedule(row))
        call = CompiledKernel(kernel, load(compile_object(print_llvm(kernel))))
        found = call(**{n: expected.arrays[n].copy() for n in program.inputs}, **expected.scalars)
        outputs = dict(zip(program.outputs, found if isinstance(found, tuple) else (found,), strict=True))
        if difference := expected.difference(outputs):
            return f"{plan.name}\n{plan.space.schedule(row)}\n{difference}"
    return None


@pytest.mark.parametrize("name", COPIED)
def test_images_fill_them(name: str) -> None:
    plan, rows = copied(name, 4)
    assert wrong(plan.program, plan, rows) is None


@pytest.mark.parametrize("name", [n for n in programs() if n != "matmul_small"])
def test_rows_compute_the_program(name: str) -> None:
    program = programs()[name]
    for plan in matrix_plans(program, threads=2)[:2]:
        assert wrong(program, plan, list(covering_rows(plan, seed=11))[:4]) is None
