"""`throughput`: XGBoost on speed alone, without a clock, as MetaSchedule's cost model is set: what others have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from autosched.costmodel.features import FEATURE_VERSION, Features
from autosched.costmodel.learned.learner import load
from autosched.costmodel.learned.residual import PRIOR_SIGMA, Matrix, check_version, known
from autosched.costmodel.protocol import GENERALISES, Floats, Prediction, Samples

if TYPE_CHECKING:
    import xgboost

# TVM 0.20, python/tvm/s_tir/meta_schedule/cost_model/xgb_model.py: depth 10, gamma 0.001, child weight 0, eta 0.2; the
# label is fastest / time, failures are 0, and a row weighs as much as its label. It stops where the training error no
# longer falls, which it does after about so many trees.
_TREES = 100
_SLOWEST = 1e-3  # of the fastest row's speed: what a row is taken for of which less is predicted
_CLOCKS = ("clock.", "limit.")


class ThroughputModel:
    """Predicts fastest / time from what describes a schedule. Before any row came out right all rows are equal; the
    seconds that it names are in proportion to the fastest row's. MetaSchedule scores the first hundred rows at random
    and learns from batches of 64; this one learns from the first batch on."""

    version = f"throughput/1 features/{FEATURE_VERSION}"

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed
        self._booster: xgboost.Booster | None = None
        self._fastest_s = 1.0

    def fit(self, samples: Samples) -> None:
        check_version(samples.features)
        self._booster = None
        fine = samples.ok
        heard = fine | np.array([status in GENERALISES for status in samples.status], np.bool_)
        if not fine.any():
            return
        self._fastest_s = float(samples.time_s[fine].min())
        label = np.where(fine, self._fastest_s / np.where(fine, samples.time_s, 1.0), 0.0)[heard]
        load("xgboost")
        import xgboost

        parameters: dict[str, Any] = {
            "objective": "reg:squarederror",
            "max_depth": 10,
            "gamma": 0.001,
            "min_child_weight": 0,
            "eta": 0.2,
            "tree_method": "hist",
            "nthread": 1,
            "seed": self._seed,
            "verbosity": 0,
        }
        rows = _described(samples.features)[heard]
        data = xgboost.DMatrix(rows, label.astype(np.float32), weight=np.maximum(label, _SLOWEST), nthread=1)
        self._booster = xgboost.train(parameters, data, _TREES)

    def predict(self, features: Features, analytic_s: Floats) -> Prediction:
        check_version(features)
        rows = len(features)
        speed = np.ones(rows, np.float32)
        if self._booster is not None and rows:
            speed = np.asarray(self._booster.inplace_predict(_described(features)), np.float32)
        log_s = np.log(self._fastest_s) - np.log(np.maximum(speed, _SLOWEST))
        return Prediction(log_s, np.full(rows, PRIOR_SIGMA, np.float32), np.ones(rows, np.float32))


def _described(features: Features) -> Matrix:
    """The columns that do not come of the clock."""
    own = [i for i, name in enumerate(features.names) if not name.startswith(_CLOCKS)]
    return known(features.matrix[:, own])
