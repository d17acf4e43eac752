"""Neighbouring loops are joined where taking them apart again would be right, and only there."""

from __future__ import annotations

import numpy as np
import pytest
from support.match.agreement import disagreement, expect
from support.plans import covering_rows
from support.programs.scalar_programs import scalar_plans

from autosched.ir import parse, random_inputs, run
from autosched.tiling.analysis.join_loops import join_loops

TEXT = """
def normalised(X: f32[m, n], Y: f32[m, n], S: f32[m], *, m=5, n=21):
    for i in range(m):
        S[i] = 0
        for j in range(n):
            S[i] += X[i, j]
    for a, b in grid({end}, n):
        Y[{row}, b] = X[{row}, b] / S[{read}]
"""
PLAIN = {"end": "m", "row": "a", "read": "a"}


@pytest.mark.parametrize(
    ("change", "joined"),
    [
        ({}, True),
        ({"row": "m - 1 - a"}, True),
        ({"read": "m - 1 - a"}, False),
        ({"read": "max(a - 1, 0)"}, True),  # z3 proves that S is written before it is read
        ({"read": "min(a + 1, m - 1)"}, False),
        ({"end": "m - 1"}, False),
    ],
)
def test_loops_are_joined_where_nothing_runs_ahead(change: dict[str, str], joined: bool) -> None:
    program = parse(TEXT.format(**(PLAIN | change)), filename="f.py")
    found = join_loops(program)
    assert (found is not None) == joined
    if found is not None:
        assert len(found.after.body) == 1
        arrays = random_inputs(program, np.random.default_rng(0))
        before, after = run(program, arrays), run(found.after, arrays)
        np.testing.assert_array_equal(before["Y"], after["Y"])


def test_joined_loops_run_as_rows() -> None:
    program = parse(TEXT.format(**PLAIN), filename="f.py")
    plans = scalar_plans(program, threads=2)
    (joined,) = [p for p in plans if p.name == "S+Y: rows of i [loops of i joined]"]
    assert disagreement(joined, covering_rows(joined), expect(program)) is None


def test_a_tensor_written_in_several_loops_is_left_alone() -> None:
    program = parse(
        """
def steps(A: s32[n], S: s32[n], *, n=4):
    for t in range(3):
        for i in range(1, n):
            S[i] = S[i - 1] + A[i]
    for t in range(3):
        for i in range(1, n):
            A[i] = S[i - 1]
    for t in range(3):
        for i in range(1, n):
            S[i] = S[i - 1] + A[i]
""",
        filename="f.py",
    )
    assert join_loops(program) is None
