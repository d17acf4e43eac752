"""What the learned models share: they learn ln(measured / analytic), and failures apart from times.

The clock carries shapes and magnitudes, so a few dozen trials are enough for what is left. Failures go to a classifier,
never into the regression as a large time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from autosched.costmodel.features import FEATURE_VERSION, FeatureMismatchError, Features
from autosched.costmodel.learned.calibration import Doubt
from autosched.costmodel.learned.learner import load
from autosched.costmodel.learned.one_thread import one_thread
from autosched.costmodel.protocol import GENERALISES, Floats, Prediction, Samples

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingClassifier

PRIOR_SIGMA = 0.5  # ln units: without measurements the clock is trusted to within a factor of about 1.6
_FEWEST = 4  # rows below which there is nothing to tell apart; the mean ratio is used then
_SLOWEST_WEIGHT = 0.02  # a row 7 times slower than the best still says where not to look
_ROUNDS = 50

Matrix = npt.NDArray[np.float32]


class ResidualRegressor:
    """A model of ln(measured / analytic). Each kind says how it fits what the mean ratio leaves (`_learn`), and what it
    guesses for rows (`_guess`: mean and standard deviation). `name` is its name and version.

    A kind whose deviations do not say how far off it is gives the errors that it made for rows left out; its deviations
    are widened by them (`costmodel.learned.calibration`)."""

    name = "mean/1"

    def __init__(self, seed: int = 0, threads: int = 2) -> None:
        self._seed = seed
        self._threads = threads
        self._forget()

    @property
    def version(self) -> str:
        return f"{self.name} features/{FEATURE_VERSION}"

    def _learn(self, matrix: Matrix, left: Floats, weight: Floats) -> Floats | None:
        """Fit ln ratios `left`, of weighted mean 0; `weight` falls from 1 for the fastest row. Returns errors for rows
        that were left out when they were guessed, NaN for others; None where `_guess` says all there is to say."""
        return None

    def _guess(self, matrix: Matrix) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the ln ratio, less its mean, for rows; called after `_learn`."""
        return np.zeros(len(matrix)), np.full(len(matrix), PRIOR_SIGMA)

    def _forget(self) -> None:
        self._names: tuple[str, ...] | None = None
        self._shift = 0.0
        self._learnt = False
        self._doubt: Doubt | None = None
        self._failures: HistGradientBoostingClassifier | None = None
        self._present = np.zeros(0, np.bool_)

    def fit(self, samples: Samples) -> None:
        check_version(samples.features)
        self._forget()
        self._names = samples.features.names
        matrix = known(samples.features.matrix)
        ok = samples.ok
        if ok.any():
            self._fit_times(matrix[ok], samples.analytic_s[ok], samples.time_s[ok])
        bad = np.array([status in GENERALISES for status in samples.status], np.bool_)
        if bad.any() and ok.any():
            self._fit_failures(matrix[ok | bad], bad[ok | bad])

    def predict(self, features: Features, analytic_s: Floats) -> Prediction:
        check_version(features)
        if self._names is not None and features.names != self._names:
            missing = [name for name in self._names if name not in features.names]
            raise FeatureMismatchError(f"the model was fitted with other columns (not here: {missing[:5]})")
        rows = len(analytic_s)
        log_s = ln(analytic_s) + np.float32(self._shift)
        sigma = np.full(rows, PRIOR_SIGMA, np.float32)
        matrix = known(features.matrix) if rows else features.matrix
        if self._learnt and rows:
            mean, sigma = (np.asarray(column, np.float32) for column in self._guess(matrix))
            log_s += mean
            if self._doubt is not None:
                sigma = np.sqrt(sigma**2 + self._doubt.at(matrix))
        valid = np.ones(rows, np.float32)
        if self._failures is not None and rows:
            with one_thread():
                valid = self._failures.predict_proba(matrix[:, self._present])[:, 0].astype(np.float32)
        return Prediction(log_s, sigma, valid)

    def _fit_times(self, matrix: Matrix, analytic_s: Floats, time_s: Floats) -> None:
        residual = np.log(time_s) - np.log(np.maximum(analytic_s, 1e-12))
        weight = np.clip((time_s.min() / time_s) ** 2, _SLOWEST_WEIGHT, 1.0)
        self._shift = float(np.average(residual, weights=weight))
        if len(residual) >= _FEWEST:
            errors = self._learn(matrix, residual - self._shift, weight)
            self._doubt = None if errors is None else Doubt.of(matrix, errors, PRIOR_SIGMA)
            self._learnt = True

    def _fit_failures(self, matrix: Matrix, bad: npt.NDArray[np.bool_]) -> None:
        """P(failure) from scikit-learn's boosted trees, which take absent quantities (NaN) as they are."""
        load("sklearn.ensemble")  # here: loading it takes longer than most commands
        from sklearn.ensemble import HistGradientBoostingClassifier

        model = HistGradientBoostingClassifier(
            max_iter=_ROUNDS, max_depth=4, min_samples_leaf=2, early_stopping=False, random_state=self._seed
        )
        # scikit-learn 1.9 refuses a column that is absent in all rows.
        self._present = np.asarray(np.isfinite(matrix).any(axis=0))
        with one_thread():
            self._failures = model.fit(matrix[:, self._present], bad)


def check_version(features: Features) -> None:
    """Raise FeatureMismatchError for features of another version."""
    if features.version != FEATURE_VERSION:
        raise FeatureMismatchError(
            f"features of version {features.version}; this model understands version {FEATURE_VERSION}",
            hint="compute the features again with this version of autosched",
        )


def known(matrix: Matrix) -> Matrix:
    """The features, an infinite one as if it were absent (NaN): a clock that knows no bound for a row is a mistake, but
    learners refuse all rows for it, and a study goes on without."""
    endless = np.isinf(matrix)
    return np.where(endless, np.float32(np.nan), matrix) if endless.any() else matrix


def ln(seconds: Floats) -> npt.NDArray[np.float32]:
    """ln(seconds), float32; zero seconds are taken as a picosecond."""
    return np.log(np.maximum(seconds, 1e-12)).astype(np.float32)
