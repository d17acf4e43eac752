"""Instructions with an axis that the program does not have: what they read of shared memory is there all the same."""

import numpy as np
import pytest
from pure.gpu_plans import H200, plans

from autosched.codegen.cuda.emulation import run_printed
from autosched.codegen.lower import lower
from autosched.ir.inputs import random_inputs, split_inputs
from autosched.ir.interpreter import run

ONE_ROW = {"m": 1, "n": 72, "k": 96, "a": "bf16", "b": "bf16", "acc": "f32", "out": "f32"}


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
