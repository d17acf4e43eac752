"""What a call works in: one number, in the exported header and in the JSON; scalars stand behind the arrays."""

from __future__ import annotations

import re

from support.plans import machine, plans_of

from autosched.codegen.c.export.files import print_c
from autosched.codegen.intermediates import working_bytes
from autosched.codegen.lower import lower
from autosched.ir import parse

TWO = """
def two(X: f32[m, k], gain: f32, W: f32[k, n], Y: f32[m, n], *, m=3, k=5, n=7):
    A: f32[m, n]
    M: f32[m]
    for i, j in grid(m, n):
        A[i, j] = 0
        for p in range(k):
            A[i, j] += X[i, p] * W[p, j]
    for i in range(m):
        M[i] = -inf
        for j in range(n):
            M[i] = max(M[i], A[i, j])
    for i, j in grid(m, n):
        Y[i, j] = (A[i, j] - M[i]) * gain
"""


def test_the_header_and_the_json_say_the_same() -> None:
    plan = plans_of(parse(TWO), machine())[0]
    kernel = lower(plan, plan.space.schedule(next(iter(plan.space.enumerate().ids.tolist()))))
    code = print_c(kernel)
    declared = re.search(r"TWO_WORKSPACE_BYTES = (\d+)", code.header)
    assert declared is not None
    assert int(declared[1]) == code.workspace_bytes == working_bytes(kernel)
    assert working_bytes(kernel) % 64 == 0  # each buffer begins on a line
    assert working_bytes(kernel) >= 4 * (3 * 7 + 3)


def test_scalars_stand_behind_the_arrays_and_the_header_says_so() -> None:
    plan = plans_of(parse(TWO), machine())[0]
    header = print_c(lower(plan, plan.space.schedule(next(iter(plan.space.enumerate().ids.tolist()))))).header
    assert " * gain: f32, by value, behind the arrays\n" in header
    names = re.findall(r"(\w+)[,)]", header[header.index("void two(") :].split(";")[0])
    assert names == ["X", "W", "Y", "gain", "workspace"]
