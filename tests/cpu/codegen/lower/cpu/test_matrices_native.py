"""Registers that hold matrices, as machine code, where this machine has them: images and their copies, fewer rows."""

from __future__ import annotations

import pytest
from support.compiled.native import check_machine_code
from support.match.agreement import expect
from support.plans import covering_rows
from support.programs.matrices import COPIED, copied, matrix_plans, programs

from autosched.codegen.lower import lower
from autosched.ir.program import Program
from autosched.machine.host import host_features
from autosched.tiling.plans.plan import Plan

pytestmark = [
    pytest.mark.x86,
    pytest.mark.skipif(not {"amx_tile", "amx_int8", "amx_bf16"} <= host_features(), reason="this machine has no AMX"),
]


def check(program: Program, plan: Plan, rows: list[int]) -> None:
    check_machine_code([lower(plan, plan.space.schedule(row)) for row in rows], expect(program))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", COPIED)
def test_images_fill_them(name: str) -> None:
    plan, rows = copied(name, 4)
    check(plan.program, plan, rows)


@pytest.mark.parametrize("name", [n for n in programs() if n != "matmul_small"])
def test_rows_compute_the_program(name: str) -> None:
    program = programs()[name]
    for plan in matrix_plans(program, threads=2)[:2]:
        check(program, plan, list(covering_rows(plan, seed=11))[:4])
