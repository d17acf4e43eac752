"""The models that tuning uses: `xgb` corrects the analytic clock from measurements, `analytic` takes it as it is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from autosched.costmodel.features import FEATURE_VERSION, Features
from autosched.costmodel.learned.calibration import folds
from autosched.costmodel.learned.learner import load
from autosched.costmodel.learned.residual import PRIOR_SIGMA, Matrix, ResidualRegressor, check_version, ln
from autosched.costmodel.protocol import Floats, Prediction, Samples

if TYPE_CHECKING:
    import xgboost

_MEMBERS, _TREES = 5, 50
_LARGE = 20_000  # rows from which threads pay
_TO_SPARE = 10  # rows from which a member can do without a fifth of them
_BELIEF = 0.5  # share of a correction that is believed before any row could be left out to try it


class AnalyticModel:
    """The clock without learning."""

    version = f"analytic/1 features/{FEATURE_VERSION}"

    def fit(self, samples: Samples) -> None:
        check_version(samples.features)

    def predict(self, features: Features, analytic_s: Floats) -> Prediction:
        check_version(features)
        rows = len(analytic_s)
        return Prediction(ln(analytic_s), np.full(rows, PRIOR_SIGMA, np.float32), np.ones(rows, np.float32))


class ResidualModel(ResidualRegressor):
    """A bootstrap ensemble of small boosters on ln(measured / analytic).

    Each row is left out by one of the members. What share of its guess was right is the share of corrections that is
    believed, else the clock is; and what error was left says how far off guesses are. `_MEMBERS` boosters of
    `_TREES` trees keep a fit near 0.1 s at 64 rows, and a pass of one booster over a million rows near 0.4 s.
    """

    name = "xgb/2"

    def __init__(self, seed: int = 0, threads: int = 2) -> None:
        super().__init__(seed, threads)
        self._boosters: list[xgboost.Booster] = []
        self._belief = 1.0

    def _learn(self, matrix: Matrix, left: Floats, weight: Floats) -> Floats | None:
        rng = np.random.default_rng([self._seed, len(left)])
        # A Bayesian bootstrap (exponential weights) keeps the other rows in a member, and all where they are few.
        weights = [weight * rng.exponential(size=len(left)) for _ in range(_MEMBERS)]
        part = folds(len(left), _MEMBERS, rng) if len(left) >= _TO_SPARE else np.full(len(left), -1)
        kept = [part != member for member in range(_MEMBERS)]
        self._boosters = [
            self._train(matrix[rows], left[rows], own[rows], member)
            for member, (rows, own) in enumerate(zip(kept, weights, strict=True))
        ]
        guessed = np.full(len(left), np.nan)
        for rows, booster in zip(kept, self._boosters, strict=True):
            guessed[~rows] = self._run(booster, matrix[~rows])
        self._belief = _belief(guessed, left, weight)
        return left - self._belief * guessed

    def _guess(self, matrix: Matrix) -> tuple[Floats, Floats]:
        guesses = np.stack(self._run_all(matrix))
        return self._belief * guesses.mean(axis=0), guesses.std(axis=0)

    def _train(self, matrix: Any, label: Any, weight: Any, member: int) -> xgboost.Booster:
        load("xgboost")  # here, since loading it takes longer than most commands that never fit anything
        import xgboost

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
        booster = self._booster()(parameters, [data])  # as `xgboost.train` does, less callbacks and a copy: a fifth
        for tree in range(_TREES):
            booster.update(data, tree)
        return booster

    def _run_all(self, matrix: Matrix) -> list[npt.NDArray[np.float32]]:
        """Every member on one thread, the members side by side where that pays: threads of OpenMP wait busily, which
        hurts on a machine that also measures."""
        if len(matrix) < _LARGE or self._threads < 2:
            return [self._run(booster, matrix) for booster in self._boosters]
        with ThreadPoolExecutor(self._threads) as pool:
            return list(pool.map(lambda booster: self._run(booster, matrix), self._boosters))

    @staticmethod
    def _booster() -> type[xgboost.Booster]:
        return _nameless()

    @staticmethod
    def _run(booster: xgboost.Booster, matrix: Matrix) -> npt.NDArray[np.float32]:
        return np.asarray(booster.inplace_predict(matrix), np.float32) if len(matrix) else np.zeros(0, np.float32)


@cache
def _nameless() -> type[xgboost.Booster]:
    """A booster whose columns have no names: by default it asks the data for them before every tree, 14 µs each time on
    a Zen 3, of 140 that a tree takes for 16 rows and 480 for 64. Nothing public leaves it out; properties of the data
    that answer None themselves save half."""
    import xgboost

    class Nameless(xgboost.Booster):
        def _assign_dmatrix_features(self, data: xgboost.DMatrix) -> None:
            pass

    return Nameless


def _belief(guessed: Floats, left: Floats, weight: Floats) -> float:
    """The share of guesses, 0 to 1, that is nearest to what they were of: weighted least squares."""
    if not np.isfinite(guessed).all():
        return _BELIEF
    square = float(np.sum(weight * guessed**2))
    return float(np.clip(np.sum(weight * guessed * left) / square, 0.0, 1.0)) if square > 0 else 0.0
