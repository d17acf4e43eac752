"""The Gaussian process against scikit-learn's: the same covariance, likelihood and gradient, and scales as likely."""

from __future__ import annotations

import numpy as np
import pytest

from autosched.search.process import NOISE, SCALE, SIGNAL, Covariance, covariance, descend, fitted, surprise

RNG = np.random.default_rng(0)
X = RNG.random((40, 5))
Y = np.sin(4 * X[:, 0]) + 0.5 * X[:, 1] + 0.02 * RNG.standard_normal(40)
Y = (Y - Y.mean()) / Y.std()


def theirs() -> object:
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    return ConstantKernel(1.0, SIGNAL) * Matern(np.ones(5), SCALE, nu=2.5) + WhiteKernel(1e-2, NOISE)


@pytest.mark.parametrize("seed", range(4))
def test_covariance_likelihood_and_gradient_are_those_of_scikit_learn(seed: int) -> None:
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    theta = np.random.default_rng(seed).uniform(-2, 1, 7)
    kernel = theirs().clone_with_theta(theta)  # type: ignore[attr-defined]
    own, z = covariance(theta), RNG.random((9, 5))
    np.testing.assert_allclose(own(X), kernel(X), atol=1e-10)
    np.testing.assert_allclose(own(X, z), kernel(X, z), atol=1e-7)
    np.testing.assert_allclose(own.diag(z), kernel.diag(z))
    process = gaussian_process.GaussianProcessRegressor(kernel, optimizer=None).fit(X, Y)
    value, gradient = process.log_marginal_likelihood(theta, eval_gradient=True)
    found, slope = surprise(theta, X, Y)
    assert found == pytest.approx(-value, rel=1e-6)
    np.testing.assert_allclose(slope, -gradient, rtol=1e-4, atol=1e-4)


def test_scales_are_as_likely_as_scikit_learn_finds_them() -> None:
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    best = gaussian_process.GaussianProcessRegressor(theirs()).fit(X, Y).log_marginal_likelihood_value_
    found = fitted(X, Y)
    theta = np.log(np.array([found.signal, *found.scales, found.noise]))
    assert surprise(theta, X, Y)[0] < -best + 1.0
    assert found.scales[0] < found.scales[3], "what does not matter has a long scale"


def test_descent_stays_within_bounds() -> None:
    low, high = np.array([-1.0, -1.0]), np.array([1.0, 0.5])

    def bowl(x: np.ndarray) -> tuple[float, np.ndarray]:
        return float((x[0] - 0.2) ** 2 + 10 * (x[1] - 3.0) ** 2), np.array([2 * (x[0] - 0.2), 20 * (x[1] - 3.0)])

    np.testing.assert_allclose(descend(bowl, np.zeros(2), low, high), [0.2, 0.5], atol=1e-4)


def test_equal_times_and_equal_rows_are_no_trouble() -> None:
    found = fitted(np.zeros((6, 2)), np.ones(6))
    assert isinstance(found, Covariance)
    assert np.isfinite(found(np.zeros((6, 2)))).all()
