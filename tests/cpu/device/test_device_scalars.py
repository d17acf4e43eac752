"""The CPU checks every candidate on several values of run-time scalars, and on integers and floats of all sizes."""

from __future__ import annotations

import numpy as np
import pytest
from support.plans import plans_of, this_machine
from support.programs.mutants import MUTANTS

from autosched.device.correctness.oracle import Oracle
from autosched.device.cpu.device import CpuDevice
from autosched.errors import InternalError, UsageError
from autosched.ir import parse
from autosched.search.tuning.baseline import literal_plan
from autosched.tiling.candidate import Candidate
from autosched.tiling.space.space import Space

NAMES = ("sign of a scalar", "a length that is a scalar", "sum clamped at 2^24", "no epsilon", "entropy of NaN")


@pytest.mark.parametrize("name", NAMES)
def test_mistakes_are_seen(name: str) -> None:
    mutant = next(m for m in MUTANTS if m.name == name)
    target = this_machine()
    with CpuDevice(mutant.right, target, seed=1) as device:
        wrong, right = (Candidate(literal_plan(p, target), 0) for p in (mutant.wrong, mutant.right))
        assert device.measure(device.build(wrong)).status == "wrong"
        assert device.measure(device.build(right)).status == "ok"


def test_a_scalar_without_a_value_is_named() -> None:
    """It was a KeyError."""
    program = parse("def f(X: f32[4], s: f32, Y: f32[4]):\n    for i in range(4):\n        Y[i] = X[i] * s\n")
    given = Oracle({"X": np.zeros(4, np.float32)}, {"Y": np.zeros(4, np.float32)}, {"Y": np.zeros(4)})
    device = CpuDevice(program, this_machine(), oracle=given)
    with device, pytest.raises(UsageError, match="no value of s"):
        device.build(Candidate(literal_plan(program, this_machine()), 0))


def test_a_mistake_of_ours_has_a_name() -> None:
    """A space without the decisions that lowering reads is one."""
    text = "def f(A: f32[8, 8], B: f32[8, 8], C: f32[8, 8]):\n    for i, j in grid(8, 8):\n        C[i, j] = 0\n"
    program = parse(text + "        for k in range(8):\n            C[i, j] += A[i, k] * B[k, j]\n")
    plan = plans_of(program, this_machine())[0]
    object.__setattr__(plan, "space", Space(plan.name, ()))
    with CpuDevice(program, this_machine()) as device, pytest.raises(InternalError, match="#0 failed: KeyError"):
        device.build(Candidate(plan, 0))
