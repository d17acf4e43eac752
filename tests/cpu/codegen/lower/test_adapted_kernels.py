"""Adapted programs as machine code, compiled from LLVM IR and from exported C: the answers of the original program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.compiled.c_build import build, call, missing_features, needs_compiler
from support.compiled.native import check_machine_code
from support.match.agreement import Expected
from support.plans import covering_rows, this_machine
from support.programs.adapted import adapted_plans, inputs, programs

from autosched.codegen.c import print_c
from autosched.codegen.lower import lower
from autosched.ir import random_inputs
from autosched.ir.oracle.inputs import split_inputs
from autosched.ir.oracle.interpreter import run
from autosched.machine.host import host_features

pytestmark = pytest.mark.x86
PROGRAMS = programs()
HERE = this_machine()


def _needs_vnni() -> None:
    if not {"avx512_vnni", "avx_vnni"} & host_features():
        pytest.skip("needs AVX512-VNNI or AVX-VNNI")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_machine_code_computes_the_original(name: str) -> None:
    _needs_vnni()
    program = PROGRAMS[name]
    arrays, scalars = inputs(program, 6)
    wanted = run(program, arrays, scalars)
    expected = Expected(arrays, scalars, wanted, dict.fromkeys(wanted, 0))
    for plan in adapted_plans(program, HERE)[:2]:
        for row in list(covering_rows(plan, seed=4))[:5]:
            check_machine_code([lower(plan, plan.space.schedule(row))], expected)


@pytest.mark.slow
@needs_compiler
@pytest.mark.compiler
def test_exported_c_prepares_and_computes(tmp_path: Path) -> None:
    _needs_vnni()
    program = PROGRAMS["signed_by_signed"]
    arrays, scalars = split_inputs(program, random_inputs(program, np.random.default_rng(7)))
    wanted = run(program, arrays, scalars)
    for n, plan in enumerate(adapted_plans(program, HERE)):
        kernel = lower(plan, plan.space.schedule(next(covering_rows(plan, seed=5))))
        if missing_features(kernel):
            continue
        folder = tmp_path / str(n)
        folder.mkdir()
        found = call(build([print_c(kernel)], folder), kernel, arrays, scalars)
        np.testing.assert_array_equal(found["C"], wanted["C"], err_msg=plan.name)
