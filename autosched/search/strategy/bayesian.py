"""`bayesian`: a Gaussian process over the decisions, and the rows of which it expects the largest improvement.

The process models ln(seconds), or ln(seconds / clock) where the clock tells rows apart. Rows of several plans share it,
their plan being one more coordinate. From scikit-learn.
"""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any

import numpy as np

from autosched.costmodel.learned.learner import load
from autosched.costmodel.learned.one_thread import one_thread
from autosched.costmodel.protocol import CostModel
from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.coordinates import Coordinates, Floats
from autosched.search.strategy.memory import HistoryStrategy, draw, has_clock
from autosched.search.strategy.moves import neighbours
from autosched.search.strategy.process import expected_improvement

_FIRST = 12  # random rows before the first fit
_POOL = 3000  # rows looked at for a batch, half of them the clock's best where there is one, the others random
_NEAR = 0.5  # share of a batch that is chosen among the neighbours of the fastest row
_AROUND = 300  # and mutants of the fastest
_REFIT = 16  # trials after which length scales are sought again; a fit without that is ten times cheaper
_MOST = 400  # trials that the process is fitted to, the fastest first: its cost grows with their cube
_LEAST = 1e-9
_FAILED = 2.0  # ln seconds above the slowest: what a failure counts as


class Bayesian(HistoryStrategy):
    """Batches are small (`batch`), since what one row teaches changes which is best next."""

    batch = 4
    near = _NEAR

    def __init__(self, space: SearchSpace, seed: int, model: CostModel | None) -> None:
        super().__init__(space, seed, model)
        self._coordinates = Coordinates(space, twos=False)
        self._kernel: Any = None
        self._scale = 1.0  # deviation of ln(seconds); the kernel is of the standardised times
        self._sought_at = 0

    def _wanted(self, n: int, rng: np.random.Generator) -> Rows:
        if self._memory.measured < _FIRST or not len(self._memory.fastest(1)):
            return Rows.of(0, [])
        with one_thread():
            return self._improving(n, rng)

    def _improving(self, n: int, rng: np.random.Generator) -> Rows:
        """The rows of largest expected improvement; each makes the process surer of the rows around it."""
        pool = self._pool(rng)
        if not len(pool):
            return pool
        around = neighbours(self._space, self._memory.fastest(1), rng)
        around = around.take(self._memory.free(around))
        pool = Rows.join([around, pool]).distinct()  # `around` comes first
        z = self._coordinates(pool)
        mean, variance, known = self._posterior(z)
        log_s = mean + self._clock(pool)
        chosen: list[int] = []
        for place in range(min(n, len(pool))):
            gain = expected_improvement(log_s, np.sqrt(variance), self._memory.best_log_s)
            gain[chosen] = -np.inf
            if rng.random() < self.near and place < len(around):
                gain[len(around) :] = -np.inf
            i = int(np.argmax(gain))
            chosen.append(i)
            if place + 1 == n:
                break
            # Had row i come out as expected, no mean would move; the variances fall as by any further observation.
            shared = (self._kernel(z[i : i + 1], z)[0] * self._scale**2) - known[:, i] @ known
            known = np.vstack([known, shared / np.sqrt(variance[i])])
            variance = np.maximum(variance - shared**2 / variance[i], _LEAST)
        return pool.take(chosen)

    def _posterior(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        """Mean and variance of the process at these coordinates, and the factors that its covariances are made of."""
        load("scipy.linalg")  # here: nothing in a first second needs it
        from scipy.linalg import cholesky, solve_triangular

        x, y = self._measured()
        self._seek(x, y)
        self._scale = float(y.std()) or 1.0
        factor = cholesky(self._kernel(x) + _LEAST * np.eye(len(x)), lower=True)
        known = solve_triangular(factor, self._kernel(x, z), lower=True)
        mean = y.mean() + known.T @ solve_triangular(factor, y - y.mean(), lower=True)
        variance = np.maximum(self._kernel.diag(z) - np.sum(known**2, axis=0), _LEAST) * self._scale**2
        return mean, variance, known * self._scale

    @cached_property
    def _has_clock(self) -> bool:
        return has_clock(self._space)

    def _pool(self, rng: np.random.Generator) -> Rows:
        parts = [draw(self._space, self._memory, _POOL // 2 if self._has_clock else _POOL, rng)]
        if self._has_clock:
            parts.append(self._space.best(_POOL // 2)[0])
        parents = self._memory.fastest(_AROUND // 20)
        parts.append(self._space.mutate(parents.take(rng.integers(0, len(parents), _AROUND)), rng))
        rows = Rows.join(parts).distinct()
        return rows.take(self._memory.free(rows))

    def _measured(self) -> tuple[Floats, Floats]:
        """Coordinates of the measured rows, and the logarithms of their times over the clock's."""
        rows = self._memory.rows()
        log_s = np.log(self._memory.seconds(rows))
        fine = np.isfinite(log_s)
        log_s[~fine] = log_s[fine].max() + _FAILED
        keep = np.argsort(log_s, kind="stable")[:_MOST]
        rows = rows.take(keep)
        return self._coordinates(rows), log_s[keep] - self._clock(rows)

    def _clock(self, rows: Rows) -> Floats:
        return np.log(np.maximum(np.asarray(self._space.analytic(rows), np.float64), 1e-12))

    def _seek(self, x: Floats, y: Floats) -> None:
        """Find length scales, where that was not done for a while. (Imports are here, since they take a second.)"""
        load("sklearn.gaussian_process")
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        if self._kernel is not None and self._memory.measured < self._sought_at + _REFIT:
            return
        self._sought_at = self._memory.measured
        matern = Matern(np.ones(x.shape[1]), (0.05, 20.0), nu=2.5)
        kernel = ConstantKernel(1.0) * matern + WhiteKernel(1e-2, (1e-5, 1.0))
        process = GaussianProcessRegressor(kernel, optimizer=_search_briefly, normalize_y=True)
        with warnings.catch_warnings(), one_thread():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a scale at its bound: the decision hardly matters
            self._kernel = process.fit(x, y).kernel_


def _search_briefly(objective: Any, start: Floats, bounds: Floats) -> tuple[Floats, float]:
    """A few steps of the optimiser: a batch does not wait for the last digit of a length scale."""
    from scipy.optimize import minimize

    found = minimize(objective, start, method="L-BFGS-B", jac=True, bounds=bounds, options={"maxiter": 12})
    return found.x, float(found.fun)
