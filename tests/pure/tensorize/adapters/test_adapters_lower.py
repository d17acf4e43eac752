"""Adapted programs are laid out, lowered, and compute what the original program does; constants are prepared once."""

from __future__ import annotations

from functools import cache
from itertools import islice

import numpy as np
import pytest
from support.compiled.kernel_check import check_kernel
from support.plans import covering_rows, machine
from support.programs.adapted import adapted_plans, inputs, programs

from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.ir.oracle.interpreter import run
from autosched.tiling.plans.plan import Plan, ScalarPart

PROGRAMS = programs()


@cache
def plans_of(name: str) -> list[Plan]:
    return adapted_plans(PROGRAMS[name], machine())


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_of_adapted_programs(name: str) -> None:
    program = PROGRAMS[name]
    arrays, scalars = inputs(program, 5)
    wanted = run(program, arrays, scalars)
    plans = plans_of(name)
    assert plans, "tuning finds no plan"
    for plan in plans[:3]:
        for row in islice(covering_rows(plan), 3):
            schedule = plan.space.schedule(row)
            kernel = lower(plan, schedule)
            check_kernel(kernel)
            for output, array in run_kernel(kernel, arrays, scalars).items():
                np.testing.assert_array_equal(array, wanted[output], err_msg=f"{plan.name}\n{schedule}")


def test_every_stage_that_needs_a_factor_gets_it_and_such_plans_come_first() -> None:
    first, *_ = plans_of("factored")
    assert first.name.endswith("[factor A_factor[i, p], factor C_factor[i_2, j_2]]")
    assert {part.nest.stage.name for part in first.tensor_parts} == {"C", "D"}


def test_constants_are_prepared_and_no_more() -> None:
    plans = {p.name.rpartition("[")[2]: p for p in plans_of("signed_by_signed")}
    for name, prepared, timed in (("offset-binary A]", "B_sum", "A_u8"), ("offset-binary B]", "B_u8", "A_sum")):
        parts = [p for p in plans[name].parts if isinstance(p, ScalarPart)]
        assert [(p.stage.name, p.prepared) for p in sorted(parts, key=lambda p: p.prepared)] == [
            (timed, False),
            (prepared, True),
        ]
        decisions = {d.name.split(".")[0] for d in plans[name].space.decisions}
        assert decisions == {timed, "C"}
        kernel = lower(plans[name], plans[name].space.schedule(next(covering_rows(plans[name]))))
        assert f"prepare_{prepared}" in {f.name for f in kernel.prepare}
        assert kernel.buffers.get(prepared, kernel.buffers[prepared]).scope == "packed"


def test_a_panel_of_a_prepared_tensor_is_prepared_too() -> None:
    (plan, *_) = (p for p in plans_of("signed_by_signed") if "offset-binary B" in p.name)
    ids = plan.space.enumerate().ids
    values = plan.space.values(ids)
    packs = next(d.name for d in plan.space.decisions if d.name.endswith("pack_a"))
    row = int(ids[values[packs] == 1][0])
    kernel = lower(plan, plan.space.schedule(row))
    check_kernel(kernel)
    assert [f.buffers for f in kernel.prepare][:2] == [("B", "B_u8"), ("B_u8", "B_u8_panel")]
    assert "B" not in kernel.main.buffers
    assert "B_u8" not in kernel.main.buffers


@pytest.mark.slow
def test_the_names_of_plans_are_stable() -> None:
    first, second = ([p.name for p in found] for found in (plans_of("two"), adapted_plans(PROGRAMS["two"], machine())))
    assert first == second
    assert any("offset-binary A" in n and "offset-binary S" in n for n in first), first
