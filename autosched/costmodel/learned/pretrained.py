"""A cost model that begins with what earlier studies taught, of other shapes too, and goes on from there.

What was learnt before corrects the clock; the model of the study learns what is left. Both are relative to the clock,
which carries the shapes. So that nothing of a shape is learnt by heart, the clock's terms are given as shares of its
total.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from autosched.costmodel.features import Features, FeatureSchema
from autosched.costmodel.learned.learned import ResidualModel
from autosched.costmodel.learned.residual import ln
from autosched.costmodel.protocol import CostModel, Floats, Prediction, Samples

_TRUST = 0.5
"""Share of the correction (ln units) that is believed of another shape. Of 0.5 and 1 the better one on eight pairs of
recorded spaces: with all of it the first eight rows are worse than the clock's."""


@dataclass(frozen=True)
class Earlier:
    """Measured rows of earlier studies, whose names are `studies`. The seconds of each study are in units of its
    fastest row, so that a short program's rows weigh no more than a long one's."""

    studies: tuple[str, ...]
    samples: Samples

    @staticmethod
    def join(parts: list[Earlier]) -> Earlier:
        """All of them, in the union of their columns. Raises FeatureMismatchError for mixed versions."""
        schema = FeatureSchema.union([p.samples.features for p in parts])
        return Earlier(
            tuple(name for p in parts for name in p.studies),
            Samples(
                schema.stack([p.samples.features for p in parts]),
                np.concatenate([p.samples.analytic_s for p in parts]),
                np.concatenate([p.samples.time_s for p in parts]),
                tuple(status for p in parts for status in p.samples.status),
            ),
        )


class Pretrained:
    """`model` on top of a residual model of `earlier`. Raises FeatureMismatchError for samples of another version."""

    def __init__(self, model: CostModel, earlier: Earlier, seed: int = 0, threads: int = 2) -> None:
        self._model = model
        self._base = ResidualModel(seed, threads)
        features = earlier.samples.features
        self._base.fit(replace(earlier.samples, features=_in_shares(features)))
        self._schema = FeatureSchema(features.names, features.units, features.version)

    @property
    def version(self) -> str:
        return f"{self._model.version} pretrained"

    def fit(self, samples: Samples) -> None:
        corrected = self._corrected(samples.features, samples.analytic_s).seconds
        self._model.fit(replace(samples, analytic_s=corrected))

    def predict(self, features: Features, analytic_s: Floats) -> Prediction:
        before = self._corrected(features, analytic_s)
        said = self._model.predict(features, before.seconds)
        return replace(said, valid=said.valid * before.valid)

    def _corrected(self, features: Features, analytic_s: Floats) -> Prediction:
        said = self._base.predict(_in_shares(self._schema.adopt(features)), analytic_s)
        clock = ln(analytic_s)
        return replace(said, log_s=clock + _TRUST * (said.log_s - clock))


def _in_shares(features: Features) -> Features:
    """The clock's terms as logarithms of their shares of its total."""
    if "clock.total" not in features.names:
        return features
    matrix, total = features.matrix.copy(), features.column("clock.total")
    for column, name in enumerate(features.names):
        if name.startswith("clock."):
            matrix[:, column] -= total
    return replace(features, matrix=matrix)
