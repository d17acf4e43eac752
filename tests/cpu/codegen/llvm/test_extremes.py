"""Greatest and least of floats over vectors of partial results: a NaN anywhere in a row is the answer, -0 stays -0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.compiled.llvm_kernels import run

from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.ir import parse
from autosched.machine.catalogue import load_target
from autosched.tiling.planner.make_plans import make_plans

ROWS, LENGTH = 40, 83
TEXT = """
def f(X: {t}[{m}, {n}], Y: {t}[{m}]):
    for i in range({m}):
        Y[i] = {start}
        for j in range({n}):
            Y[i] = {op}(Y[i], X[i, j])
"""


def inputs(dtype: Any) -> Any:
    """Rows without and with NaN, at their ends too, infinities, and zeros of both signs."""
    x = np.random.default_rng(3).normal(size=(ROWS, LENGTH)).astype(dtype)
    places = np.random.default_rng(4).integers(0, LENGTH, 12)
    x[np.arange(12), places] = np.nan
    x[12, 0] = x[13, -1] = x[14, 63] = x[15, 64] = np.nan
    x[16:20, 7], x[20:24, 80], x[23, 2] = np.inf, -np.inf, np.nan
    x[24], x[25], x[26] = -np.inf, np.inf, np.nan
    x[27], x[28] = -0.0, 0.0
    return x


@pytest.mark.sampled(1)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(("op", "start"), [("max", "-inf"), ("min", "inf")])
def test_partial_results_keep_nan(op: str, start: str, dtype: str) -> None:
    x = inputs(np.float32 if dtype == "f32" else np.float64)
    expected = (np.max if op == "max" else np.min)(x, axis=1)
    program = parse(TEXT.format(t=dtype, m=ROWS, n=LENGTH, op=op, start=start))
    (plan,) = make_plans(program, load_target("portable"), {}, threads=1)
    seen = set()
    for row in plan.space.sample(400, np.random.default_rng(0)):
        schedule = plan.space.schedule(int(row))
        named = schedule.named
        key = named["vector"], named["unroll"], named["rows"]
        if named["lanes"] != "j" or named["vector"] == 1 or key in seen or named["vector"] == 32:
            continue
        seen.add(key)
        kernel = lower(plan, schedule)
        assert any(name.endswith("_nan") for name in kernel.buffers)
        for found in (run(kernel, {"X": x})["Y"], run_kernel(kernel, {"X": x})["Y"]):
            np.testing.assert_array_equal(found, expected, err_msg=str(named))
            assert (np.signbit(found) == np.signbit(expected))[~np.isnan(expected)].all(), named
        if len(seen) == 5:
            return
    pytest.fail(f"only {len(seen)} of such rows")
