"""The learned models: `xgb` corrects the analytic clock from measurements, `analytic` takes it as it is.

XGBoost learns ln(measured / analytic), not the time: the clock carries shapes and magnitudes, so a few dozen trials are
enough for what is left. Failures go to a classifier, never into the regression as a large time.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from autosched.costmodel.features import FEATURE_VERSION, FeatureMismatchError, Features
from autosched.costmodel.protocol import GENERALISES, Floats, Prediction, Samples

if TYPE_CHECKING:
    import xgboost
    from sklearn.ensemble import HistGradientBoostingClassifier

_PRIOR_SIGMA = 0.5  # ln units: without measurements the clock is trusted to within a factor of about 1.6
_FEWEST = 4  # rows below which trees have nothing to split; the mean ratio is used then
_LARGE = 20_000  # rows from which threads pay
_SLOWEST_WEIGHT = 0.02  # a row 7 times slower than the best still says where not to look


class AnalyticModel:
    """The clock without learning."""

    version = f"analytic/1 features/{FEATURE_VERSION}"

    def fit(self, samples: Samples) -> None:
        _check_version(samples.features)

    def predict(self, features: Features, analytic_s: Floats) -> Prediction:
        _check_version(features)
        rows = len(analytic_s)
        return Prediction(_ln(analytic_s), np.full(rows, _PRIOR_SIGMA, np.float32), np.ones(rows, np.float32))


class ResidualModel:
    """A bootstrap ensemble of small boosters on ln(measured / analytic).

    The ensemble's spread is the uncertainty. `members` boosters of `rounds` trees keep a fit near 0.1 s at 64 rows, and
    a pass of one booster over a million rows near 0.4 s.
    """

    version = f"xgb/1 features/{FEATURE_VERSION}"

    def __init__(self, seed: int = 0, threads: int = 2, members: int = 5, rounds: int = 50) -> None:
        self._seed = seed
        self._threads = threads
        self._members = members
        self._rounds = rounds
        self._forget()

    def _forget(self) -> None:
        self._names: tuple[str, ...] | None = None
        self._shift = 0.0
        self._sigma = _PRIOR_SIGMA
        self._boosters: list[xgboost.Booster] = []
        self._failures: HistGradientBoostingClassifier | None = None

    def fit(self, samples: Samples) -> None:
        _check_version(samples.features)
        self._forget()
        self._names = samples.features.names
        ok = samples.ok
        if ok.any():
            self._fit_times(samples.features.matrix[ok], samples.analytic_s[ok], samples.time_s[ok])
        bad = np.array([status in GENERALISES for status in samples.status], np.bool_)
        if bad.any() and ok.any():
            self._fit_failures(samples.features.matrix[ok | bad], bad[ok | bad])

    def predict(self, features: Features, analytic_s: Floats) -> Prediction:
        _check_version(features)
        if self._names is not None and features.names != self._names:
            missing = [name for name in self._names if name not in features.names]
            raise FeatureMismatchError(f"the model was fitted with other columns (not here: {missing[:5]})")
        rows = len(analytic_s)
        log_s = _ln(analytic_s) + np.float32(self._shift)
        sigma = np.full(rows, self._sigma, np.float32)
        if self._boosters and rows:
            guesses = np.stack(self._run_all(features.matrix))
            log_s += guesses.mean(axis=0)
            sigma = guesses.std(axis=0)
        valid = np.ones(rows, np.float32)
        if self._failures is not None and rows:
            valid = self._failures.predict_proba(features.matrix)[:, 0].astype(np.float32)
        return Prediction(log_s, sigma, valid)

    def _fit_times(self, matrix: npt.NDArray[np.float32], analytic_s: Floats, time_s: Floats) -> None:
        residual = np.log(time_s) - np.log(np.maximum(analytic_s, 1e-12))
        weight = np.clip((time_s.min() / time_s) ** 2, _SLOWEST_WEIGHT, 1.0)
        self._shift = float(np.average(residual, weights=weight))
        left = residual - self._shift
        if len(left) < _FEWEST:
            return
        rng = np.random.default_rng([self._seed, len(left)])
        for member in range(self._members):
            # A Bayesian bootstrap (exponential weights) keeps every row in every member, which matters at 8 rows.
            own = weight * rng.exponential(size=len(left))
            self._boosters.append(self._train(matrix, left, own, member))

    def _fit_failures(self, matrix: npt.NDArray[np.float32], bad: npt.NDArray[np.bool_]) -> None:
        """P(failure) from scikit-learn's boosted trees, which take absent quantities (NaN) as they are."""
        from sklearn.ensemble import HistGradientBoostingClassifier  # here, for the reason given in _train

        model = HistGradientBoostingClassifier(
            max_iter=self._rounds, max_depth=4, min_samples_leaf=2, early_stopping=False, random_state=self._seed
        )
        self._failures = model.fit(matrix, bad)

    def _train(self, matrix: Any, label: Any, weight: Any, member: int) -> xgboost.Booster:
        import xgboost  # here, since loading it takes longer than most commands that never fit anything

        parameters = {
            "objective": "reg:squarederror",
            "base_score": 0.0,
            "max_depth": 4,
            "eta": 0.12,
            "colsample_bytree": 0.7,
            "tree_method": "hist",
            "nthread": 1,  # a few dozen rows: a second thread only costs, and one thread sums in one order
            "seed": self._seed * 1009 + member,
            "verbosity": 0,
        }
        data = xgboost.DMatrix(matrix, np.asarray(label, np.float32), weight=weight / np.mean(weight), nthread=1)
        return xgboost.train(parameters, data, self._rounds)

    def _run_all(self, matrix: npt.NDArray[np.float32]) -> list[npt.NDArray[np.float32]]:
        """Every member on one thread, the members side by side where that pays: threads of OpenMP wait busily, which
        hurts on a machine that also measures."""
        if len(matrix) < _LARGE or self._threads < 2:
            return [self._run(booster, matrix) for booster in self._boosters]
        with ThreadPoolExecutor(self._threads) as pool:
            return list(pool.map(lambda booster: self._run(booster, matrix), self._boosters))

    @staticmethod
    def _run(booster: xgboost.Booster, matrix: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return np.asarray(booster.inplace_predict(matrix), np.float32)


def _check_version(features: Features) -> None:
    if features.version != FEATURE_VERSION:
        raise FeatureMismatchError(
            f"features of version {features.version}; this model understands version {FEATURE_VERSION}",
            hint="compute the features again with this version of autosched",
        )


def _ln(seconds: Floats) -> npt.NDArray[np.float32]:
    return np.log(np.maximum(seconds, 1e-12)).astype(np.float32)
