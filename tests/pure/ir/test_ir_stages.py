# ruff: noqa: E501  (programs stand on one line)
"""Stages, merged initial values, and which tensors are inputs, outputs or both."""

from __future__ import annotations

import pytest

from autosched.ir import parse, workload
from autosched.ir.nodes import is_zero
from autosched.ir.program import Program


def program(body: str, extra: str = "") -> Program:
    lines = "\n".join("    " + line for line in body.split("\n"))
    return parse(f"def f(A: f32[8, 8], B: f32[8, 8], C: f32[8, 8], D: f32[8]{extra}):\n{lines}\n")


def names(p: Program) -> list[tuple[str, str, bool]]:
    return [(s.name, s.assign.op, s.init is not None) for s in p.stages]


def test_an_initial_value_just_before_its_reduction_is_merged() -> None:
    (stage,) = workload("matmul").stages
    assert is_zero(stage.init)
    assert [a.name for a in stage.spatial] == ["i", "j"]
    assert [a.name for a in stage.reduction] == ["p"]
    assert [s.name for s in workload("softmax").stages] == ["M", "S", "Y"]
    assert [s.init is not None for s in workload("softmax").stages] == [True, True, False]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("for i in range(8):\n    D[i] = 0\nfor i in range(8):\n    for p in range(8):\n        D[i] += A[i, p]", [("D", "=", False), ("D.2", "+=", False)]),
        ("for i in range(8):\n    D[i] = 0\n    for p in range(8):\n        D[i] += A[i, p]\n    D[i] = D[i] * D[i]", [("D", "+=", True), ("D.2", "=", False)]),
        ("for i in range(8):\n    D[i] = 0\n    for p in range(8):\n        D[i] = A[i, p]", [("D", "=", False), ("D.2", "=", False)]),
        ("for i in range(8):\n    D[i] = 0\n    for p in range(8):\n        D[p] += A[i, p]", [("D", "=", False), ("D.2", "+=", False)]),
        ("for i in range(8):\n    D[i] = D[i] * 2\n    for p in range(8):\n        D[i] += A[i, p]", [("D", "*=", False), ("D.2", "+=", False)]),
        ("for i in range(8):\n    D[i] = 0\n    for p in range(8):\n        if p < i:\n            D[i] += A[i, p]", [("D", "+=", True)]),
        ("for i in range(8):\n    if i > 2:\n        D[i] = 0\n        for p in range(8):\n            D[i] += A[i, p]", [("D", "=", False), ("D.2", "+=", False)]),
        ("for t, i in grid(8, 8):\n    D[i] = 0\n    for p in range(8):\n        D[i] += A[t, p]", [("D", "=", False), ("D.2", "+=", False)]),
        ("for i in range(8):\n    D[i] = 0\n    C[i, 0] = 0\n    for p in range(8):\n        D[i] += A[i, p]\n        C[i, 0] += B[i, p]", [("D", "+=", True), ("C", "+=", True)]),
        ("for i in range(8):\n    D[i] = 0\n    C[i, 0] = D[i]\n    for p in range(8):\n        D[i] += A[i, p]", [("D", "=", False), ("C", "=", False), ("D.2", "+=", False)]),
        ("for i in range(8):\n    D[i] = B[i, 0]\n    B[i, 0] = 0\n    for p in range(8):\n        D[i] += A[i, p]", [("D", "=", False), ("B", "=", False), ("D.2", "+=", False)]),
        ("for i in range(8):\n    D[i] = 0\n    if A[i, i] > 0:\n        D[i] += 1", [("D", "=", False), ("D.2", "+=", False)]),
        ("for i in range(8):\n    D[i] = 0\n    if A[i, i] > 0:\n        for p in range(8):\n            D[i] += A[i, p]", [("D", "+=", True)]),
    ],
)  # fmt: skip
def test_merging(body: str, expected: list[tuple[str, str, bool]]) -> None:
    assert names(program(body)) == expected


@pytest.mark.parametrize(
    ("body", "inputs", "outputs"),
    [
        ("for i in range(8):\n    D[i] = A[i, i]", "ABC", "D"),
        ("for i in range(8):\n    D[i] += A[i, i]", "ABCD", "D"),
        ("for i in range(7):\n    D[i] = A[i, i]", "ABCD", "D"),
        ("for i in range(8):\n    if i != 3:\n        D[i] = A[i, i]", "ABCD", "D"),
        ("for i in range(8):\n    D[7 - i] = A[i, i]", "ABC", "D"),
        ("for i, j in grid(2, 4):\n    D[i * 4 + j] = A[i, j]", "ABC", "D"),
        ("for i, j in grid(2, 4):\n    D[j * 2 + i] = A[i, j]", "ABC", "D"),
        ("for i, j in grid(2, 4):\n    D[i * 3 + j] = A[i, j]", "ABCD", "D"),
        ("for i, j in grid(2, 3):\n    D[i * 4 + j] = A[i, j]", "ABCD", "D"),
        ("for i, j in grid(4, 2):\n    D[i + j * 3] = A[i, j]", "ABCD", "D"),
        ("for i, j in grid(8, 8):\n    D[j] = A[i, j]", "ABC", "D"),
        ("for i in range(8):\n    D[i] = 0\n    C[i, 0] = D[i]", "ABC", "CD"),
        ("for i in range(8):\n    D[i] = 0\n    B[i, 0] = D[7 - i]", "ABCD", "BD"),
        ("for i in range(8):\n    D[i] = 0\nfor i in range(8):\n    B[i, 0] = D[7 - i]", "ABC", "BD"),
        ("for i in range(8):\n    for j in range(8):\n        C[i, j] = A[i, j]\n    for j in range(8):\n        D[j] = C[i, 7 - j]", "AB", "CD"),
        ("for i in range(1, 8):\n    D[i] = D[i - 1]", "ABCD", "D"),
        ("D[0] = 0\nfor i in range(1, 8):\n    D[i] = D[i - 1]", "ABC", "D"),
    ],
)  # fmt: skip
def test_inputs_and_outputs(body: str, inputs: str, outputs: str) -> None:
    p = program(body)
    assert "".join(p.inputs) == inputs
    assert "".join(p.outputs) == outputs
    assert set(p.inouts) == set(inputs) & set(outputs)


def test_subscripts_that_count_fill_tensors_of_any_size() -> None:
    conv = workload("conv2d", n=32, ci=128, co=128, groups=4, t="f16", out="f16")
    assert conv.inputs == ("X", "W")
    assert conv.outputs == ("Y",)
