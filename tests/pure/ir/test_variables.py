"""What values, conditions and subscripts depend on, told apart by evaluating them."""

from __future__ import annotations

import pytest

from autosched.ir import parse
from autosched.ir.variables import condition_vars, index_vars, value_vars

VALUES = {
    "A[i]": "i",
    "s32(i + 2 * j)": "ij",
    "A[i] if j == k else 0": "ijk",
    "A[0] if A[1] > 0 and j < k else A[i]": "ijk",
    "A[0] if (A[1] if j == k else 0) > 0 else 0": "jk",
    "A[n - 1]": "",
}


@pytest.mark.parametrize(("value", "names"), VALUES.items())
def test_of_a_value(value: str, names: str) -> None:
    text = f"def f(A: s32[9], C: s32[3, 3, 3], *, n=3):\n for i, j, k in grid(n, n, n):\n  C[i, j, k] = {value}\n"
    (stage,) = parse(text).stages
    assert value_vars(stage.assign.value) == set(names)
    assert index_vars(stage.assign.index) == {"i", "j", "k"}


def test_of_a_guard() -> None:
    text = "def f(A: s32[9], C: s32[3]):\n for i, j in grid(3, 3):\n  if (A[0] if i == j else 0) > 0:\n   C[i] += 1\n"
    (stage,) = parse(text).stages
    assert condition_vars(stage.guards[0]) == {"i", "j"}
