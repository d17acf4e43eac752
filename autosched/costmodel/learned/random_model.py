"""`random`: no model at all, which others have to beat."""

from __future__ import annotations

from typing import Any

import numpy as np

from autosched.costmodel.features import FEATURE_VERSION, Features
from autosched.costmodel.learned.residual import PRIOR_SIGMA, check_version, ln
from autosched.costmodel.protocol import Floats, Prediction, Samples


class RandomModel:
    """Chance: what a model has to beat. A row's guess depends on the seed and the row's features alone."""

    version = f"random/1 features/{FEATURE_VERSION}"

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def fit(self, samples: Samples) -> None:
        check_version(samples.features)

    def predict(self, features: Features, analytic_s: Floats) -> Prediction:
        check_version(features)
        rng = np.random.default_rng(self._seed)
        mix = np.nan_to_num(features.matrix.astype(np.float64)) @ rng.normal(size=features.matrix.shape[1])
        chance: Any = np.modf(np.abs(np.sin(mix) * 43758.5453))[0]
        log_s = np.median(ln(analytic_s)) + (chance - 0.5) if len(analytic_s) else np.zeros(0)
        rows = len(analytic_s)
        return Prediction(
            np.asarray(log_s, np.float32), np.full(rows, PRIOR_SIGMA, np.float32), np.ones(rows, np.float32)
        )
