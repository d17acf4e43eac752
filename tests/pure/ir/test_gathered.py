"""Operands that data addresses: their elements are copied in order, and an instruction computes the rest."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiled.kernel_check import check_kernel
from support.plans import covering_rows, machine
from support.programs.adapted import adapted_plans, inputs

from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.ir import parse
from autosched.ir.oracle.interpreter import run
from autosched.tensorize.adapters.gathered import gathered
from autosched.tensorize.addresses.stage_facts import StageFacts

HEAD = """
def f(A: u8[9, 13], idx: s32[7], B: s8[13, 18], col: s32[18], C: s32[7, 18]):
    assume(0 <= idx <= 8)
    assume(0 <= col <= 17)
"""
NEST = "    for i, j in grid(7, 18):\n        C[i, j] = 0\n        for k in range({first}, 13):\n            "
BODIES = {
    "rows": "C[i, j] += s32(A[idx[i], k]) * s32(B[k, j])",
    "rows and columns": "C[i, j] += s32(A[idx[i], k]) * s32(B[k, col[j]])",
    "a function of an axis": "C[i, j] += s32(A[s32(i) * s32(i) % 9, k]) * s32(B[k, j])",
    "twice": "C[i, j] += s32(A[idx[idx[i] % 7], k]) * s32(B[k, j])",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("first", [0, 2])
def test_gathered_operands_on_an_instruction(name: str, first: int) -> None:
    program = parse(HEAD + NEST.format(first=first) + BODIES[name] + "\n")
    arrays, scalars = inputs(program, 5)
    wanted = run(program, arrays, scalars)
    plans = adapted_plans(program, machine())
    assert any("gather" in p.name and p.tensor_parts for p in plans)
    for plan in plans[:2]:
        for row in list(covering_rows(plan))[:2]:
            kernel = lower(plan, plan.space.schedule(row))
            check_kernel(kernel)
            np.testing.assert_array_equal(run_kernel(kernel, arrays, scalars)["C"], wanted["C"])


def test_a_guarded_gather_stays_as_it_is() -> None:
    """The guard may be what keeps the index inside."""
    guarded = HEAD + NEST.format(first=0) + "if k < 5:\n                " + BODIES["rows"] + "\n"
    program = parse(guarded)
    assert gathered(StageFacts(program, program.stage("C"))) is None
    plain = parse(HEAD + NEST.format(first=0) + "C[i, j] += s32(A[i, k]) * s32(B[k, j])\n")
    assert gathered(StageFacts(plain, plain.stage("C"))) is None
