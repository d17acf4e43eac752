"""`rank`: XGBoost on the order of measured rows alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from autosched.costmodel.features import Features
from autosched.costmodel.learned.learner import load
from autosched.costmodel.learned.residual import Matrix, ResidualRegressor, known
from autosched.costmodel.protocol import Floats, Prediction, Samples

if TYPE_CHECKING:
    import xgboost

_TREES = 100
_GRADES = 16  # of speed: finer ones would rank noise


class RankingModel(ResidualRegressor):
    """XGBoost on the order alone (all pairs), with the clock's word among the features; scores are moved to the clock's
    mean and to the scatter of what was measured, so that they read as seconds, and mean no more than an order."""

    name = "rank/1"

    def fit(self, samples: Samples) -> None:
        self._forget()
        super().fit(samples)

    def _fit_times(self, matrix: Matrix, analytic_s: Floats, time_s: Floats) -> None:
        load("xgboost")
        import xgboost

        super()._fit_times(matrix, analytic_s, time_s)
        self._learnt = False
        self._booster: xgboost.Booster | None = None
        log_s = np.log(time_s)
        self._centre, self._spread = float(log_s.mean()), float(log_s.std())
        if len(time_s) < _GRADES // 4 or self._spread == 0:
            return
        places = np.argsort(np.argsort(-log_s, kind="stable"), kind="stable")
        grades = places * _GRADES // len(places)  # the fastest have the highest grade
        data = xgboost.DMatrix(matrix, grades, qid=np.zeros(len(grades), np.int32), nthread=1)
        parameters = {
            "objective": "rank:pairwise",
            "lambdarank_pair_method": "mean",  # the default compares the head alone, and leaves the rest in any order
            "lambdarank_num_pair_per_sample": 8,
            "max_depth": 4,
            "eta": 0.12,
            "nthread": 1,
            "seed": self._seed,
            "verbosity": 0,
        }
        self._booster = xgboost.train(parameters, data, _TREES)
        scores = self._booster.inplace_predict(matrix)
        self._score, self._unit = float(scores.mean()), float(scores.std()) or 1.0

    def predict(self, features: Features, analytic_s: Floats) -> Prediction:
        plain = super().predict(features, analytic_s)
        booster = getattr(self, "_booster", None)
        if booster is None or not len(plain.log_s):
            return plain
        scores = np.asarray(booster.inplace_predict(known(features.matrix)), np.float32)
        log_s = self._centre - self._spread * (scores - self._score) / self._unit
        return Prediction(log_s.astype(np.float32), plain.sigma, plain.valid)
