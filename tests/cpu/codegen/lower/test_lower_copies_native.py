"""Copies of operands as machine code: what the interpreter is held to
(tests/pure/codegen/lower/test_lower_copies.py)."""

from __future__ import annotations

import numpy as np
import pytest
from pure.codegen.lower.test_lower_copies import BORDERED, INTERLEAVED, ONLY, SHUFFLED
from support.plans import plans_of, this_machine
from support.programs.copies import rows_with

from autosched.codegen.call.callable import CompiledKernel
from autosched.codegen.llvm.machine.compile import compile_object
from autosched.codegen.llvm.machine.jit import load
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.lower import lower
from autosched.ir import random_inputs, run_with_error
from autosched.machine.host import host_features

pytestmark = pytest.mark.x86
HERE = this_machine()


@pytest.mark.slow
@pytest.mark.parametrize("name", INTERLEAVED | SHUFFLED | BORDERED)
def test_copies_as_machine_code(name: str) -> None:
    if "avx2" not in host_features():
        pytest.skip("needs AVX2")
    program = (INTERLEAVED | SHUFFLED | BORDERED)[name]
    arrays = random_inputs(program, np.random.default_rng(2))
    (output,) = program.outputs
    wanted, tolerance = run_with_error(program, arrays, fused_stages=frozenset(s.name for s in program.stages))
    for plan in plans_of(program, HERE, threads=2, only=ONLY)[:3]:
        for kind in ("interleaved", "padded", "direct"):
            for row in rows_with(plan, kind, 1):
                kernel = lower(plan, plan.space.schedule(row))
                call = CompiledKernel(kernel, load(compile_object(print_llvm(kernel))))
                found = call(**{n: arrays[n] for n in program.inputs})
                error = np.abs(found.astype(np.float64) - wanted[output].astype(np.float64))
                assert np.all(error <= tolerance[output]), f"{plan.name}\n{plan.space.schedule(row)}"
