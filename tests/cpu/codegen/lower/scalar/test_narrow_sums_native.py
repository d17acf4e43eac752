"""Sums and products in f16 keep their order: another one overflows where the program as written does not."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiled.native import compiled
from support.plans import this_machine

from autosched.codegen.lower import lower
from autosched.ir import parse, run
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of

TEXT = """
def f(A: f16[4, 128], X: f16[128], D: f16[4], Y: f16[4]):
    for i in range(4):
        Y[i] = {init}
        for k in range(128):
            Y[i] {update}
"""
SUMS = {  # terms of 9000 and -9000 in turn: those of every other element add up to 576000
    "sum": ("0.0", "+= A[i, k] * X[k]"),
    "difference": ("0.0", "-= A[i, k] * X[k]"),
    "factor of a row": ("0.0", "+= A[i, k] * X[k] * D[i]"),
    "factor of a group": ("0.0", "+= A[i, k] * D[k // 32] * X[k]"),
    "product": ("1.0", "*= A[i, k] * (X[k] / 625)"),
}


@pytest.mark.sampled(2)
@pytest.mark.x86
@pytest.mark.parametrize("name", SUMS)
def test_what_the_program_keeps_finite_is_finite(name: str) -> None:
    init, update = SUMS[name]
    program = parse(TEXT.format(init=init, update=update), filename="f.py")
    a = np.where(np.arange(128) % 2, 1 / 9, 9) if name == "product" else np.where(np.arange(128) % 2, -100, 100)
    data = {
        "A": np.broadcast_to(a, (4, 128)).astype(np.float16),
        "X": np.full(128, 625 if name == "product" else 90, np.float16),
        "D": np.ones(4, np.float16),
        "Y": np.zeros(4, np.float16),
    }
    wanted = run(program, data)["Y"]
    assert np.isfinite(wanted).all()
    for plan in plans_of(TuneRequest(program, this_machine()))[1]:
        for row in plan.space.sample(4, np.random.default_rng(0)):
            kernel = lower(plan, plan.space.schedule(int(row)))
            assert np.isfinite(compiled(kernel)(**{n: x.copy() for n, x in data.items()})).all(), kernel.schedule
