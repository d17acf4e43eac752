"""`forest`: a random forest on the residual, from scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np

from autosched.costmodel.learned.learner import load
from autosched.costmodel.learned.residual import Matrix, ResidualRegressor
from autosched.costmodel.protocol import Floats

_TREES = 100


class ForestModel(ResidualRegressor):
    """A random forest on the residual; how far off it is, is told by the trees that did not see a row."""

    name = "forest/2"

    def _learn(self, matrix: Matrix, left: Floats, weight: Floats) -> Floats | None:
        load("sklearn.ensemble")
        from sklearn.ensemble import RandomForestRegressor

        forest = RandomForestRegressor(
            _TREES, max_features=0.5, min_samples_leaf=2, random_state=self._seed, bootstrap=True, oob_score=True
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a row that every tree drew: its guess counts as none
            self._forest = forest.fit(matrix, left, weight)
        return np.asarray(left - self._forest.oob_prediction_)

    def _guess(self, matrix: Matrix) -> tuple[Floats, Floats]:
        guesses = np.stack([tree.predict(matrix) for tree in self._forest.estimators_])
        return guesses.mean(axis=0), guesses.std(axis=0)
