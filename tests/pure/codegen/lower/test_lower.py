"""Every row lowers and computes the right answer in the loop-tree interpreter, which checks bounds, races and reads of
memory never written. Rows cover every value of every decision; sizes do not divide."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.compiled.kernel_check import check_kernel
from support.plans import CONV, covering_rows, leading, machine, plans_of, small_programs

from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.errors import NoScheduleError
from autosched.ir import parse, random_inputs, run_with_error
from autosched.logic import Var
from autosched.search.space.scored_space import space_of
from autosched.search.tuning.tune import refuse_empty
from autosched.tiling.space.space import Space
from autosched.tiling.step import Decision, Rule, Step

SMALLER = {
    "conv_f32": {"h": 4, "w": 5, "ci": 3, "kh": 2},
    "conv_s32": {"h": 4, "w": 5, "kh": 2, "t": "u8", "u": "s8", "acc": "s32"},
    "conv_strided": {"ci": 3, "kh": 2, "stride": 2, "pad": 2},
}
"""Sizes at which every decision keeps its choices; those of `small_programs` run as machine code, in tests/cpu."""
PROGRAMS = small_programs() | {name: parse(CONV, filename="conv.py", sizes=sizes) for name, sizes in SMALLER.items()}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_covering_rows_compute_the_program(name: str) -> None:
    program = PROGRAMS[name]
    arrays = random_inputs(program, np.random.default_rng(1))
    stages = frozenset(s.name for s in program.stages)
    wanted, tolerance = run_with_error(program, arrays, fused_stages=stages)
    for plan in leading(plans_of(program, threads=2), 2):
        for row in covering_rows(plan):
            schedule = plan.space.schedule(row)
            kernel = lower(plan, schedule)
            check_kernel(kernel)
            found = run_kernel(kernel, arrays)
            for output, want in wanted.items():
                error = np.abs(found[output].astype(np.float64) - want.astype(np.float64))
                assert np.all(error <= tolerance[output]), f"{plan.name}\n{schedule}"


def test_what_dependences_forbid_is_not_offered() -> None:
    for name in ("in_place", "prefix", "together"):
        for plan in plans_of(PROGRAMS[name], threads=2):
            offered = {d.name.split(".")[-1]: d.domain for d in plan.space.decisions}
            assert offered.get("vector", (1,)) == (1,), name
            assert offered["threads"] == (1,), name


def test_columns_of_a_recurrence_may_be_vectors_but_not_its_rows() -> None:
    (plan,) = plans_of(PROGRAMS["columns"], threads=2)
    vectors = [d for d in plan.space.decisions if d.name.endswith("vector")]
    assert any(len(d.domain) > 1 for d in vectors)
    update = next(p for p in plan.parts if getattr(p, "order", ()) and len(p.order) == 2)
    assert update.order == ("i", "j") or update.order[0].startswith("i")
    assert not update.parallel


def test_fused_stages_leave_no_buffer_behind() -> None:
    for plan in plans_of(PROGRAMS["matmul_bias_relu"])[:2]:
        row = next(iter(covering_rows(plan)))
        schedule = plan.space.schedule(row)
        if any(v for k, v in schedule.values.items() if k.startswith("block_")):
            continue
        kernel = lower(plan, schedule)
        assert "workspace" not in {b.scope for b in kernel.buffers.values() if b.origin == b.name}


def test_sixteen_registers_hold_smaller_tiles() -> None:
    narrow = machine(frozenset({"avx2", "fma"}), registers=16, vector_bytes=32)
    for plan in plans_of(PROGRAMS["matmul_f32"], narrow)[:2]:
        assert all("zmm" not in i for i in plan.intrinsics)
        registers = plan.space.values(plan.space.enumerate().ids)["registers"]
        assert int(np.max(registers)) <= 16


def test_an_empty_space_says_why() -> None:
    """Plans fall back to scalar code rather than be empty, so an impossible rule is added by hand."""
    step = Step("s", (Decision("tile", (4, 8)),), (Rule("fits", Var("tile") <= 3, "tile {tile} > 3"),))
    plan = replace(plans_of(PROGRAMS["matmul_f32"])[0], space=Space("none", [step]))
    with pytest.raises(NoScheduleError, match=r"no schedule: tile 4 > 3"):
        refuse_empty(space_of([plan]))
