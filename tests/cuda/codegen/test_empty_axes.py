"""Instructions with an axis that the program does not have: what they read of shared memory is there all the same."""

import numpy as np
import pytest
from support.cards.gpu_plans import H200, plans

from autosched.codegen.cuda.emulation import run_printed
from autosched.codegen.lower import lower
from autosched.ir import parse
from autosched.ir.oracle.inputs import random_inputs, split_inputs
from autosched.ir.oracle.interpreter import run
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of

ONE_ROW = {"m": 1, "n": 72, "k": 96, "a": "bf16", "b": "bf16", "acc": "f32", "out": "f32"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("only", ["wgmma.m64n8k16.bf16.f32", "wgmma.m64n24k16.bf16.f32"])
def test_one_row_has_a_slice_of_all_rows_that_an_instruction_reads(only):
    """A card read past the end of its shared memory."""
    _, found = plans("matmul_nt", only, **ONE_ROW)
    tried = 0
    for plan in (p for p in found if "wgmma" in p.name):
        rng = np.random.default_rng(2)
        arrays, scalars = split_inputs(plan.program, random_inputs(plan.program, rng))
        (name,) = plan.program.outputs
        want = run(plan.program, arrays, scalars)[name]
        for row in plan.space.sample(2, rng):
            got = run_printed(lower(plan, plan.space.schedule(int(row))), H200, arrays, scalars)[name]
            assert np.allclose(got, want, rtol=1e-3, atol=1e-3)
            tried += 1
    assert tried


def test_an_operand_that_is_the_same_in_all_rows_has_them_in_shared_memory():
    """Nothing of it moves along the rows of the result, and the instruction reads as many rows as it has."""
    text = """
def f(A: u8[9, 4], B: u8[4], C: s32[9, 40]):
    for b, i in grid(9, 40):
        C[b, i] = 0
        for r in range(4):
            C[b, i] += s32(A[b, r]) * s32(B[r])
"""
    program, rng = parse(text), np.random.default_rng(2)
    arrays, _ = split_inputs(program, random_inputs(program, rng))
    want = run(program, arrays)["C"]
    _, found = plans_of(TuneRequest(program, H200, device="simulator", only=("cuda/wgmma*",)))
    plan = next(p for p in found if "wgmma" in p.name)
    for row in plan.space.sample(3, rng):
        assert np.array_equal(run_printed(lower(plan, plan.space.schedule(int(row))), H200, arrays)["C"], want)
