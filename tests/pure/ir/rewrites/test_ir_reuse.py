"""What is computed twice is kept in an output: the same bits, and only where nothing comes between."""

from __future__ import annotations

import numpy as np
import pytest

from autosched.ir import parse, random_inputs, run, workload
from autosched.ir.rewrites.reuse import keep_common


def test_softmax_keeps_its_exponentials() -> None:
    program = workload("softmax", m=5, n=23)
    found = keep_common(program)
    assert found is not None
    assert str(found).startswith("kept in Y: both statements run over the same points (j_2 is j_3)")
    assert [s.name for s in found.after.stages] == ["M", "Y", "S", "Y.2"]
    assert found.after.inputs == program.inputs
    assert keep_common(found.after) is None
    arrays = random_inputs(program, np.random.default_rng(0))
    np.testing.assert_array_equal(run(program, arrays)["Y"], run(found.after, arrays)["Y"])


def test_another_dtype_would_round() -> None:
    assert keep_common(workload("softmax", m=5, n=23, t="bf16")) is None


TWICE = """
def twice(X: f32[m, n], Z: f32[m, n], Y: f32[m, n], W: f32[m, n], *, m=4, n=6):
    S: f32[m]
    for i in range(m):
        S[i] = 0
        for j in range(n):
            S[i] += exp({first})
        {between}
        for j in range({end}):
            Y[i, j] = exp({second}) * S[i]
    {after}
"""
PLAIN = {"first": "X[i, j]", "second": "X[i, j]", "between": "S[i] = S[i] + 1", "end": "n", "after": "W[0, 0] = 1"}


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({}, True),
        ({"second": "X[i, n - 1 - j]"}, False),
        ({"end": "n - 1"}, False),
        ({"between": "X[i, 0] = 2"}, False),
        ({"first": "S[i] + X[i, j]", "second": "S[i] + X[i, j]"}, False),
        ({"after": "W[0, 0] = Y[1, 1]"}, False),
        ({"between": "Z[i, 0] = 2"}, True),
    ],
)
def test_only_where_nothing_comes_between(change: dict[str, str], kept: bool) -> None:
    program = parse(TWICE.format(**(PLAIN | change)), filename="f.py")
    found = keep_common(program)
    assert (found is not None) == kept
    if found is not None:
        arrays = random_inputs(program, np.random.default_rng(1))
        before, after = run(program, arrays), run(found.after, arrays)
        for name in program.outputs:
            np.testing.assert_array_equal(before[name], after[name])
