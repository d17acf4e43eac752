"""Comparing with the oracle by the scale of its tolerance says what comparing without it says."""

import numpy as np
import pytest

from autosched.device.correctness.compare import compare, scale

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("far", [0.0, 0.5, 0.999, 1.0, 1.001, 40.0, np.nan, np.inf])
def test_the_quick_way_agrees(dtype: type, far: float) -> None:
    want = RNG.standard_normal(1000)
    tolerance = np.abs(want) * 0.01 + 0.1
    got = (want + 0.3 * tolerance * RNG.uniform(-1, 1, 1000)).astype(dtype)
    got[417] = want[417] + far * tolerance[417]
    quick, slow = compare(got, want, tolerance, scale(tolerance)), compare(got, want, tolerance)
    assert (quick.ok, quick.index, quick.wrong) == (slow.ok, slow.index, slow.wrong)
    assert quick.error == pytest.approx(slow.error, nan_ok=True)
    assert (quick.tolerance, quick.got, quick.want) == pytest.approx((slow.tolerance, slow.got, slow.want), nan_ok=True)


@pytest.mark.parametrize("worst", [0.0, np.inf, np.nan, 1e-320, -1.0])
def test_a_tolerance_without_a_scale(worst: float) -> None:
    tolerance = np.array([1e-3, worst])
    assert scale(tolerance) is None
    assert scale(tolerance[:1]) is not None


def test_infinities_that_are_wanted() -> None:
    want, tolerance = np.array([1.0, np.inf]), np.array([0.1, 0.1])
    assert compare(np.array([1.0, np.inf], np.float32), want, tolerance, scale(tolerance)).ok
    assert not compare(np.array([1.0, -np.inf], np.float32), want, tolerance, scale(tolerance)).ok
