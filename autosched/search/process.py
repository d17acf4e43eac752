"""A Gaussian process with a Matern 5/2 covariance, one length scale a coordinate, and noise; its scales are found by
the likelihood of what was measured.

Rasmussen and Williams, Gaussian Processes for Machine Learning (2006): covariance (4.17), likelihood (2.30), its
gradient (5.9). scikit-learn has the same, and takes a second to load.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_solve, cholesky

Floats = npt.NDArray[np.float64]

SIGNAL, SCALE, NOISE = (1e-5, 1e5), (0.05, 20.0), (1e-5, 1.0)
"""Bounds of what is sought."""
STEPS = 12
"""Of the descent: a batch does not wait for the last digit of a length scale."""
_LEAST = 1e-10
_HALVINGS = 20


@dataclass(frozen=True)
class Covariance:
    """`signal` is the variance, `scales` are lengths in each coordinate, `noise` is the variance of one measurement."""

    signal: float
    scales: Floats
    noise: float

    def __call__(self, x: Floats, z: Floats | None = None) -> Floats:
        """Between all of `x` and all of `z`; among `x`, with noise, where that is None."""
        far = _distances(x / self.scales, (x if z is None else z) / self.scales)
        found: Floats = self.signal * (1 + far + far * far / 3) * np.exp(-far)
        if z is None:
            found[np.diag_indices_from(found)] += self.noise
        return found

    def diag(self, x: Floats) -> Floats:
        """The variance of a measurement at each of `x`."""
        return np.full(len(x), self.signal + self.noise)


def fitted(x: Floats, y: Floats) -> Covariance:
    """The covariance under which `y` (standardised here) at `x` is likely, after STEPS steps from scales of 1."""
    y = (y - y.mean()) / (float(y.std()) or 1.0)
    count = x.shape[1]
    bounds = np.log(np.array([SIGNAL, *[SCALE] * count, NOISE]))
    start = np.log(np.array([1.0, *[1.0] * count, 1e-2]))
    return covariance(descend(lambda theta: surprise(theta, x, y), start, bounds[:, 0], bounds[:, 1]))


def covariance(theta: Floats) -> Covariance:
    """From the logarithms of signal, scales and noise, in that order."""
    return Covariance(float(np.exp(theta[0])), np.exp(theta[1:-1]), float(np.exp(theta[-1])))


def surprise(theta: Floats, x: Floats, y: Floats) -> tuple[float, Floats]:
    """-ln(likelihood of `y` at `x`) under `covariance(theta)`, and its gradient; infinite where it cannot be told."""
    own = covariance(theta)
    k = own(x)
    try:
        factor = cholesky(k + _LEAST * np.eye(len(x)), lower=True)
    except LinAlgError:
        return np.inf, np.zeros_like(theta)
    alpha = cho_solve((factor, True), y)
    value = 0.5 * y @ alpha + np.log(np.diag(factor)).sum() + 0.5 * len(x) * np.log(2 * np.pi)
    # The derivative by a parameter is half the sum of this, element by element, times that of the covariance.
    pull = cho_solve((factor, True), np.eye(len(x))) - np.outer(alpha, alpha)
    scaled = x / own.scales
    far = _distances(scaled, scaled)
    by_scale = pull * (own.signal * 5 / 3 * (1 + far) * np.exp(-far))
    # Sum of by_scale[i, j] * (scaled[i] - scaled[j])², which is symmetric in i and j.
    along = 2 * (by_scale.sum(axis=1) @ scaled**2 - np.sum(scaled * (by_scale @ scaled), axis=0))
    signal = np.sum(pull * k) - own.noise * np.trace(pull)
    return float(value), 0.5 * np.array([signal, *along, own.noise * np.trace(pull)])


def descend(
    objective: Callable[[Floats], tuple[float, Floats]], start: Floats, low: Floats, high: Floats, steps: int = STEPS
) -> Floats:
    """Lower the objective (value and gradient) within bounds, by quasi-Newton steps on what no bound holds."""
    x = np.clip(start, low, high)
    value, slope = objective(x)
    inverse = np.eye(len(x))  # of the curvature, as the steps so far show it (BFGS)
    for _ in range(steps):
        held = ((x <= low) & (slope > 0)) | ((x >= high) & (slope < 0))
        direction = np.where(held, 0.0, -inverse @ np.where(held, 0.0, slope))
        if direction @ slope >= 0:
            direction, inverse = np.where(held, 0.0, -slope), np.eye(len(x))
        direction /= max(1.0, float(np.abs(direction).max()))  # no parameter by more than a factor of e
        for _ in range(_HALVINGS):
            there = np.clip(x + direction, low, high)
            new, new_slope = objective(there)
            if new <= value + 1e-4 * slope @ (there - x):
                break
            direction = direction / 2
        else:
            return x
        step, turn = there - x, new_slope - slope
        curved = float(step @ turn)
        x, value, slope = there, new, new_slope
        if curved > 1e-10:
            left = np.eye(len(x)) - np.outer(step, turn) / curved
            inverse = left @ inverse @ left.T + np.outer(step, step) / curved
    return x


def _distances(x: Floats, z: Floats) -> Floats:
    """√5 times the distance between all of `x` and all of `z`."""
    squares = (x * x).sum(axis=1)[:, None] + (z * z).sum(axis=1) - 2 * (x @ z.T)
    return np.asarray(np.sqrt(5 * np.maximum(squares, 0.0)), np.float64)
