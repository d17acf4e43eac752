"""Two independent executions of an intrinsic's semantics under its numerics agree, and so do hand-picked facts."""

import numpy as np
import pytest

from autosched.codegen.emulate import Emulator
from autosched.tensorize.catalogue import Catalogue
from autosched.tensorize.check import same_bits
from autosched.tensorize.check_values import cases
from autosched.tensorize.numerics.model import issue

CATALOGUE = Catalogue.builtin()
EXACT = [n for n, i in CATALOGUE.items() if i.numerics.accumulate != "unordered" and ".v4" not in n and ".v8" not in n]


def _bf16(low, high, c):
    """vdpbf16ps on one pair, told by its lane 0."""
    made = CATALOGUE["x86/vdpbf16ps.zmm"]
    a = np.zeros((1, 16, 2), made.operands["a"].dtype.numpy)
    a[0, 0] = low, high
    ones = np.ones_like(a)
    accumulator = np.zeros((1, 16), np.float32)
    accumulator[0, 0] = c
    return float(issue(made, {"a": a, "b": ones, "c": accumulator})[0, 0])


@pytest.mark.parametrize(
    ("low", "high", "c", "expected"),
    [
        (1, -(2.0**24), 2.0**24, 1.0),  # the odd element is added first
        (-(2.0**24), 1, 2.0**24, 0.0),
        (0, 0, 1e-40, 0.0),  # a subnormal accumulator counts as zero
        (1e-39, 0, 0, 0.0),  # so does a subnormal input
        (-(2.0**-126), 2.0**-126, 2.0**-127, 0.0),
        (2.0**-126, 0, 0, 2.0**-126),
    ],
)
def test_vdpbf16ps_facts_from_silicon(low, high, c, expected):
    assert _bf16(low, high, c) == expected


@pytest.mark.parametrize("name", EXACT)
def test_the_kernel_interpreters_emulator_agrees(name):
    made = CATALOGUE[name]
    arrays = {n: a[:: max(1, len(a) // 60)] for n, a in cases(made, np.random.default_rng(5)).items()}
    expected = issue(made, arrays)
    emulator = Emulator(made)
    for case in range(len(expected)):
        registers = {}
        for operand in made.operands.values():
            image, _ = operand.order.points()
            registers[operand.name] = np.ascontiguousarray(arrays[operand.name][case][tuple(image)])
        image, _ = made.accumulator.order.points()
        with np.errstate(all="ignore"):
            got = np.asarray(emulator(registers))
        assert same_bits(expected[case][tuple(image)], got, made.accumulator.dtype).all(), case
