"""Layer normalisation on the vector chip's own units: means, a variance as people write it, reciprocal roots."""

from __future__ import annotations

import numpy as np
import pytest
from support.chips import chip, measured, planned, program

from autosched.costmodel.analytic.limits import limit
from autosched.errors import NoScheduleError
from autosched.ir import run
from autosched.ir.value import Literal, Scalar
from autosched.tiling.planner.without_host import missing
from autosched.tiling.plans.plan import ScalarPart, TensorPart

SMALL = {"m": 9, "n": 21}


def test_a_norm_is_on_the_chips_units_bit_for_bit() -> None:
    plan = planned("vector", program("layer_norm", **SMALL))[0]
    assert not list(missing(plan))
    for part in plan.parts:
        if isinstance(part, ScalarPart):  # numbers that commands carry
            assert isinstance(part.stage.assign.value, Literal | Scalar)
        else:
            assert isinstance(part, TensorPart)
            assert part.nest.intrinsic.isa == chip("vector").isa
    found = measured(plan, 2)
    bounds = limit(plan, plan.space.values([row for row, _ in found]))
    for (row, m), bound in zip(found, bounds, strict=True):
        assert m.ok, (row, m.message)
        assert m.max_abs_error == 0
        assert m.time_s is not None
        assert m.time_s >= bound


def test_without_reciprocal_roots_that_is_said() -> None:
    with pytest.raises(NoScheduleError, match=r"R: no instruction computes rsqrt\(f32\)"):
        planned("vector", program("layer_norm", **SMALL), "rsqrt")


def test_the_norm_is_numpys() -> None:
    rng = np.random.default_rng(0)
    data = {n: rng.standard_normal(s).astype(np.float32) for n, s in (("X", (9, 21)), ("G", 21), ("B", 21))}
    x = data["X"].astype(np.float64)
    wanted = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * data["G"] + data["B"]
    assert np.allclose(run(program("layer_norm", **SMALL), data)["Y"], wanted, atol=1e-5)
