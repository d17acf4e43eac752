"""The same rows as machine code: what LLVM makes of a loop tree agrees with the oracle, bit for bit where it must.

The interpreter runs these rows too (tests/pure/codegen/lower/test_lower.py) and finds accesses out of bounds before
they can hurt.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.compiled.native import check_machine_code, compiled
from support.match.agreement import expect
from support.plans import covering_rows, leading, machine, plans_of, small_programs, this_machine

from autosched.codegen.lower import lower
from autosched.ir import random_inputs
from autosched.machine.host import host_features
from autosched.tensorize.spec.catalogue import Catalogue

pytestmark = pytest.mark.x86
PROGRAMS = small_programs()
HERE = this_machine()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_machine_code_computes_the_program(name: str) -> None:
    if "avx2" not in host_features():
        pytest.skip("needs AVX2")
    program = PROGRAMS[name]
    expected = expect(program, 2)
    for plan in leading(plans_of(program, HERE, threads=2), 2):
        for row in covering_rows(plan, seed=3):
            check_machine_code([lower(plan, plan.space.schedule(row))], expected)


def test_every_portable_instruction_has_a_kernel() -> None:
    known = Catalogue.builtin()
    assert any(n.startswith("portable/") for n in known)
    plain = machine(frozenset(), registers=16, vector_bytes=16)
    program = PROGRAMS["matmul_s8s8"]
    arrays = random_inputs(program, np.random.default_rng(4))
    plans = plans_of(program, plain)
    assert plans
    assert all(i.startswith("portable/") for p in plans for i in p.intrinsics)
    want = arrays["A"].astype(np.int64) @ arrays["B"].astype(np.int64)
    for plan in plans:
        kernel = lower(plan, plan.space.schedule(next(iter(covering_rows(plan)))))
        assert np.array_equal(compiled(kernel)(arrays["A"], arrays["B"]), want)
