"""A promoted program as machine code of this CPU: partial sums and their sum, the answers of the original."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiled.native import compiled
from support.plans import covering_rows, this_machine

from autosched.codegen.lower import lower
from autosched.ir import parse
from autosched.ir.oracle.interpreter import run
from autosched.search.tuning.tune import usable
from autosched.tensorize import match
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.variants.conditional import candidates_of

pytestmark = pytest.mark.x86
CATALOGUE = Catalogue.builtin()
PROGRAM = """
def f(A: e4m3[7, 150], B: e4m3[150, 19], C: f32[7, 19]):
    for i, j in grid(7, 19):
        C[i, j] = 0
        for p in range(150):
            C[i, j] += f32(A[i, p]) * f32(B[p, j])
"""


def test_machine_code_of_promoted_programs() -> None:
    program = parse(PROGRAM)
    (found,) = match(program, [CATALOGUE["cuda/wgmma.m64n24k32.e4m3.e4m3.f32"]])
    rng = np.random.default_rng(2)
    shapes = {"A": (7, 150), "B": (150, 19)}
    arrays = {n: rng.integers(-3, 4, s).astype(program.tensors[n].dtype.numpy) for n, s in shapes.items()}
    wanted = run(program, arrays)["C"]
    here = this_machine()
    after = {str(m.program): m.program for m in found.mappings}
    assert len(after) >= 2
    for promoted in list(after.values())[:2]:
        instructions = usable(CATALOGUE, here, "cpu", ["portable/*"])
        plan = make_plans(promoted, here, candidates_of(match(promoted, instructions)), 1)[0]
        for row in list(covering_rows(plan, seed=1))[:1]:
            kernel = lower(plan, plan.space.schedule(row))
            np.testing.assert_array_equal(compiled(kernel)(**{n: a.copy() for n, a in arrays.items()}), wanted)
