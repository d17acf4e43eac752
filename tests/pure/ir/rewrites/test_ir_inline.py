"""An intermediate used once is computed where it is used: the same bits, and only where nothing changes in between."""

from __future__ import annotations

import numpy as np
import pytest
from support.match.agreement import disagreement, expect
from support.plans import covering_rows
from support.programs.scalar_programs import scalar_plans

from autosched.ir import parse, random_inputs, run
from autosched.ir.rewrites.inline import inline_intermediates

TEXT = """
def chain(X: f32[m, n], G: f32[n], Y: f32[m, n], W: f32[m, n], *, m=5, n=21):
    T: f32[m, n]
    U: f32[m, n]
    for i, j in grid(m, n):
        T[i, j] = X[i, j] * G[j]
    {between}
    for a, b in grid(m, n):
        U[a, b] = T[{row}, b] + {other}
    for a, b in grid(m, n):
        Y[a, b] = U[a, b] * 2.0
"""
PLAIN = {"between": "W[0, 0] = 1", "row": "a", "other": "1.0"}


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({}, "T, U inline"),
        ({"row": "m - 1 - a"}, "T, U inline"),
        ({"other": "T[a, b]"}, "T, U inline"),
        ({"other": "T[a, 0]"}, "U inline"),
        ({"between": "X[0, 0] = 1"}, "U inline"),
        ({"between": "W[0, 0] = T[1, 1]"}, "U inline"),
    ],
)
def test_what_is_filled_in(change: dict[str, str], name: str) -> None:
    program = parse(TEXT.format(**(PLAIN | change)), filename="f.py")
    found = inline_intermediates(program)
    assert found is not None
    assert found.name == name
    arrays = random_inputs(program, np.random.default_rng(0))
    before, after = run(program, arrays), run(found.after, arrays)
    for output in program.outputs:
        np.testing.assert_array_equal(before[output], after[output])


def test_what_would_be_computed_again_is_kept() -> None:
    text = "def f(X: f32[n], Y: f32[m, n], *, m=3, n=9):\n    T: f32[n]\n    for j in range(n):\n"
    text += "        T[j] = exp(X[j])\n"
    program = parse(text + "    for i, j in grid(m, n):\n        Y[i, j] = T[j]\n", filename="f.py")
    assert inline_intermediates(program) is None


def test_a_chain_is_one_stage_of_a_plan() -> None:
    program = parse(TEXT.format(**PLAIN), filename="f.py")
    (plan,) = [p for p in scalar_plans(program) if p.name == "scalar [T, U inline]"]
    assert [part.stage.name for part in plan.parts] == ["W", "Y"]
    assert disagreement(plan, covering_rows(plan), expect(program)) is None
