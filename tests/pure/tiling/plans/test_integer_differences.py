"""Differences of narrow integers as floats, without conversions: bit for bit what they are with them."""

from __future__ import annotations

import numpy as np
import pytest

from autosched import ir
from autosched.ir.dtypes import DTYPES
from autosched.ir.printer import print_value
from autosched.ir.program import Program
from autosched.tiling.plans.integer_differences import integer_differences, map_differences

NARROW = ("b1", "u4", "s4", "u8", "s8", "u16", "s16")


def differences(value: str, a: str, b: str, n: int) -> tuple[Program, Program]:
    """A program that takes a difference of each pair, and the same with the new value."""
    head = f"def f(A: {a}[{n}], B: {b}[{n}], Y: f32[{n}])"
    before = ir.parse(f"{head}:\n    for i in range({n}):\n        Y[i] = {value}\n")
    (stage,) = before.stages
    after = integer_differences(stage.assign.value)
    text = str(before).replace(print_value(stage.assign.value), print_value(after))
    return before, ir.parse(text)


def edges(name: str) -> np.ndarray:
    low, high = DTYPES[name].limits
    if high - low <= 256:
        return np.arange(low, high + 1)
    return np.array([low, low + 1, low // 2, 0, 1, high // 2, high - 1, high])


@pytest.mark.parametrize("a", NARROW)
@pytest.mark.parametrize("b", NARROW)
def test_all_pairs(a: str, b: str) -> None:
    pairs = np.array([(x, y) for x in edges(a) for y in edges(b)])
    before, after = differences("f32(A[i]) - f32(B[i])", a, b, len(pairs))
    assert "bits_f32" in str(after)
    data = {"A": pairs[:, 0].astype(DTYPES[a].numpy), "B": pairs[:, 1].astype(DTYPES[b].numpy)}
    expected, got = ir.run(before, data)["Y"], ir.run(after, data)["Y"]
    np.testing.assert_array_equal(expected.view(np.uint32), got.view(np.uint32))


@pytest.mark.parametrize("value", ["f32(A[i]) - 8.0", "3.0 - f32(A[i])", "f32(A[i]) - -65535.0"])
@pytest.mark.parametrize("a", NARROW)
def test_literals(value: str, a: str) -> None:
    numbers = edges(a)
    before, after = differences(value, a, "u8", len(numbers))
    assert "bits_f32" in str(after)
    data = {"A": numbers.astype(DTYPES[a].numpy), "B": np.zeros(len(numbers), np.uint8)}
    expected, got = ir.run(before, data)["Y"], ir.run(after, data)["Y"]
    np.testing.assert_array_equal(expected.view(np.uint32), got.view(np.uint32))


@pytest.mark.parametrize("value", ["f32(A[i]) - 0.5", "f32(A[i]) - 65536.0", "f32(A[i]) + f32(B[i])", "f32(A[i])",
                                   "f32(A[i]) - f32(u32(B[i]))", "f32(A[i]) - inf", "-0.0 - f32(A[i])"])  # fmt: skip
def test_others_stay(value: str) -> None:
    before, after = differences(value, "u8", "s8", 4)
    assert str(before) == str(after)


@pytest.mark.parametrize("dtype", ["e2m1", "bf16", "u32"])
def test_floats_and_wide_integers_by_hand_are_no_such_differences(dtype: str) -> None:
    """What is rounded to an integer first has other bits, and more of them."""
    value = "bits_f32(s32(A[i]) + 0x4B400000) - 12582912.0"
    (stage,) = ir.parse(f"def f(A: {dtype}[4], Y: f32[4]):\n    for i in range(4):\n        Y[i] = {value}\n").stages
    asked: list[object] = []
    assert map_differences(stage.assign.value, lambda a, b: asked.append((a, b))) == stage.assign.value
    assert asked == []
