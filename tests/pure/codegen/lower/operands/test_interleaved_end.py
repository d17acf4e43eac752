"""A copy in groups of a tensor that ends before its axis does, as a guard says: groups past its end hold zeros."""

from __future__ import annotations

import numpy as np
import pytest
from support.match.agreement import expect
from support.plans import AVX512, leading, machine, plans_of

from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.ir import parse

TEXT = """
def f(A: s16[{a}, 10], B: s16[{rows}, 19], C: s32[19]):
    for b in range(19):
        C[b] = 0
        for k in range({depth}):
            if k < {rows}:
                C[b] += s32(A[k // 2, b // 2]) * s32(B[k, b])
"""


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "depth"), [(30, 31), (30, 40), (29, 40), (29, 30), (1, 9), (30, 30)])
def test_rows_past_the_end_are_zeros(rows: int, depth: int) -> None:
    program = parse(TEXT.format(a=(depth + 1) // 2, rows=rows, depth=depth), filename="f.py")
    expected, seen = expect(program), 0
    for plan in leading(plans_of(program, machine(AVX512, registers=32, vector_bytes=64), threads=2), 4):
        for row in plan.space.sample(12, np.random.default_rng(0)):
            schedule = plan.space.schedule(int(row))
            seen += "interleaved" in str(schedule)
            found = run_kernel(lower(plan, schedule), expected.arrays)
            assert expected.difference(found) is None, str(schedule)
    assert seen or rows == depth
