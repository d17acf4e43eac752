"""`gp`: a Gaussian process on the residual, from scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

from autosched.costmodel.learned.learner import load
from autosched.costmodel.learned.one_thread import one_thread
from autosched.costmodel.learned.residual import Matrix, ResidualRegressor
from autosched.costmodel.protocol import Floats

_BLOCK = 10_000  # rows whose covariances are held at a time


class GaussianModel(ResidualRegressor):
    """A Gaussian process (Matern 5/2 and noise) on the residual over standardised features; absent quantities stand at
    the mean. For some hundreds of rows: fitting takes the cube of their number."""

    name = "gp/1"

    def _learn(self, matrix: Matrix, left: Floats, weight: Floats) -> None:
        load("sklearn.gaussian_process")
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        present = np.where(np.isfinite(matrix), matrix, 0.0).sum(axis=0) / np.maximum(
            np.isfinite(matrix).sum(axis=0), 1
        )
        self._mean = present
        scale = np.sqrt(np.mean((self._filled(matrix) - present) ** 2, axis=0))
        self._scale = np.where(scale > 0, scale, 1.0)
        # Slow rows matter less: their noise is larger by what their weight is smaller.
        kernel = ConstantKernel(0.1) * Matern(length_scale=8.0, nu=2.5) + WhiteKernel(1e-2)
        process = GaussianProcessRegressor(kernel, alpha=1e-3 / weight, random_state=self._seed)
        with warnings.catch_warnings(), one_thread():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a scale at its bound: that quantity hardly matters
            self._process = process.fit(self._standard(matrix), left)

    def _guess(self, matrix: Matrix) -> tuple[Floats, Floats]:
        parts = np.array_split(matrix, max(1, len(matrix) // _BLOCK))
        with one_thread():
            found = [self._process.predict(self._standard(part), return_std=True) for part in parts]
        return np.concatenate([mean for mean, _ in found]), np.concatenate([sigma for _, sigma in found])

    def _filled(self, matrix: Matrix) -> npt.NDArray[np.float64]:
        return np.where(np.isfinite(matrix), matrix, self._mean)

    def _standard(self, matrix: Matrix) -> npt.NDArray[np.float64]:
        found: npt.NDArray[np.float64] = (self._filled(matrix) - self._mean) / self._scale
        return found
