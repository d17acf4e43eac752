"""`Process`: a Gaussian process over coordinates, with length scales that few rows cannot lead astray.

A Matern 5/2 covariance with a length scale for each coordinate, and noise. Scales are those of largest posterior
probability: the likelihood times log-normal priors, since the likelihood alone takes most coordinates for idle after a
dozen rows. Its gradient is written out, so that a fit to 150 rows takes hundredths of a second (Rasmussen and Williams
2006, Gaussian Processes for Machine Learning, sections 2.2, 5.4.1).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.costmodel.learned.learner import load

Floats = npt.NDArray[np.float64]
_SCALE = 0.7  # ln of the length scale that is expected: functions of some coordinates alone, and these smooth
_SPREAD = 1.0  # deviation of ln(length scale) and of ln(amplitude), which is expected to be 0
_NOISE, _NOISE_SPREAD = -4.0, 1.5  # ln of the noise's share of the variance, and its deviation
_JITTER = 1e-6
_STEPS = 15  # of the optimiser: a batch does not wait for the last digit of a length scale
_LEAST = 1e-9


class Process:
    """Over `width` coordinates of about 0 to 1. Values are standardised; `mean` and `variance` are of standardised
    values."""

    def __init__(self, width: int) -> None:
        self._found = np.concatenate([[0.0], np.full(width, _SCALE), [_NOISE]])  # ln amplitude, scales, noise
        self.lowest = 0.0

    def fit(self, x: Floats, y: Floats, seek: bool = True) -> None:
        """To rows `x` (rows, coordinates) with values `y`; with `seek`, length scales are sought from where they
        stand."""
        load("scipy.linalg")  # here: nothing in a first second needs it
        from scipy.linalg import cho_solve, cholesky

        deviation = float(y.std()) or 1.0
        values = (y - y.mean()) / deviation
        if seek:
            self._seek(x, values)
        self._amplitude, self._scales = float(np.exp(self._found[0])), np.exp(self._found[1:-1])
        self._x = x / self._scales
        noise = float(np.exp(self._found[-1])) + _JITTER
        covariance = self._amplitude * _matern(self._x, self._x) + noise * np.eye(len(x))
        self._factor = cholesky(covariance, lower=True)
        self._weights = cho_solve((self._factor, True), values)
        self.lowest = float(values.min())

    def posterior(self, z: Floats) -> Posterior:
        """At these coordinates."""
        load("scipy.linalg")
        from scipy.linalg import solve_triangular

        scaled = z / self._scales
        shared = self._amplitude * _matern(self._x, scaled)
        known = solve_triangular(self._factor, shared, lower=True, check_finite=False)
        variance = np.maximum(self._amplitude - np.sum(known**2, axis=0), _LEAST)
        return Posterior(shared.T @ self._weights, variance, scaled, known, self._amplitude)

    def _seek(self, x: Floats, y: Floats) -> None:
        load("scipy.optimize")
        from scipy.optimize import minimize

        bounds = [(-4.0, 4.0), *[(-3.5, 4.0)] * x.shape[1], (-10.0, 0.0)]
        found = minimize(
            _improbability, self._found, (x, y), "L-BFGS-B", jac=True, bounds=bounds, options={"maxiter": _STEPS}
        )
        self._found = np.asarray(found.x, np.float64)


class Posterior:
    """Means and variances at some coordinates; `seen` tells what another observation among them would change."""

    def __init__(self, mean: Floats, variance: Floats, scaled: Floats, known: Floats, amplitude: float) -> None:
        self.mean, self.variance = mean, variance
        self._scaled, self._known, self._amplitude = scaled, known, amplitude

    def seen(self, i: int) -> None:
        """Row `i` comes out as expected: no mean moves, and variances fall as by any further observation."""
        shared = self._amplitude * _matern(self._scaled[i : i + 1], self._scaled)[0] - self._known[:, i] @ self._known
        self._known = np.vstack([self._known, shared / np.sqrt(self.variance[i])])
        self.variance = np.maximum(self.variance - shared**2 / self.variance[i], _LEAST)


def _distances(a: Floats, b: Floats) -> Floats:
    """sqrt(5) times the distance of each row of `a` from each of `b`."""
    squares = np.sum(a * a, axis=1)[:, None] + np.sum(b * b, axis=1) - 2 * a @ b.T
    return np.asarray(np.sqrt(5 * np.maximum(squares, 0.0)), np.float64)


def _matern(a: Floats, b: Floats) -> Floats:
    far = _distances(a, b)
    return np.asarray((1 + far + far * far / 3) * np.exp(-far), np.float64)


def _improbability(found: Floats, x: Floats, y: Floats) -> tuple[float, Any]:
    """-ln of the posterior density of these hyperparameters, up to a constant, and its gradient."""
    from scipy.linalg import LinAlgError, cho_solve, cholesky

    amplitude, noise = float(np.exp(found[0])), float(np.exp(found[-1]))
    scaled = x / np.exp(found[1:-1])
    far = _distances(scaled, scaled)
    fall = np.exp(-far)
    alike = (1 + far + far * far / 3) * fall
    try:
        factor = cholesky(amplitude * alike + (noise + _JITTER) * np.eye(len(x)), lower=True)
    except LinAlgError:
        return 1e10, np.zeros_like(found)
    weights = cho_solve((factor, True), y)
    off = found / _SPREAD
    off[1:-1] -= _SCALE / _SPREAD
    off[-1] = (found[-1] - _NOISE) / _NOISE_SPREAD
    value = 0.5 * float(y @ weights) + float(np.log(np.diag(factor)).sum()) + 0.5 * float(off @ off)
    pull = cho_solve((factor, True), np.eye(len(x))) - np.outer(weights, weights)
    slope = pull * (amplitude * 5 / 3 * (1 + far) * fall)
    gradient = off / _SPREAD
    gradient[-1] = off[-1] / _NOISE_SPREAD + 0.5 * float(np.trace(pull)) * noise
    gradient[0] += 0.5 * float(np.sum(pull * amplitude * alike))
    gradient[1:-1] += slope.sum(axis=1) @ (scaled * scaled) - np.sum((slope @ scaled) * scaled, axis=0)
    return value, gradient


def expected_improvement(mean: Floats, sigma: Floats, best: float) -> Floats:
    """Below `best`, of a normal distribution."""
    load("scipy.special")
    from scipy.special import ndtr

    sigma = np.maximum(sigma, 1e-9)
    z = (best - mean) / sigma
    density = np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)
    return np.asarray(sigma * (z * ndtr(z) + density), np.float64)
