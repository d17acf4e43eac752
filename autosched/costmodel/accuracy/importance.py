"""Which features a cost model relies on: how much worse it gets where one of them is shuffled among the rows.

Rows that it was not fitted to are asked, so a column that was merely learnt by heart counts for nothing. Columns that
say nearly the same share their importance, and each alone looks less important than both are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autosched.costmodel.features import Features
from autosched.costmodel.protocol import CostModel, Floats, Samples
from autosched.errors import UsageError

_FEWEST = 16
_SHUFFLES = 5


@dataclass(frozen=True)
class Importance:
    """By how much the error (root mean square, ln units) grows without the feature; `deviation` over the shuffles."""

    feature: str
    unit: str
    rise: float
    deviation: float


@dataclass(frozen=True)
class Relied:
    """Features, the most important first; `error` is that of the model as it is, on `rows` rows that it never saw."""

    features: tuple[Importance, ...]
    error: float
    rows: int


def importance(model: CostModel, samples: Samples, seed: int = 0) -> Relied:
    """Fit the model to a random half of the rows with a time, and shuffle one column after the other of the other half.

    Raises UsageError for fewer than 16 such rows.
    """
    rng = np.random.default_rng(seed)
    fine = rng.permutation(np.flatnonzero(samples.ok))
    if len(fine) < _FEWEST:
        raise UsageError(f"{len(fine)} rows have a time, and it takes {_FEWEST} to judge features")
    learnt, asked = np.sort(fine[: len(fine) // 2]), np.sort(fine[len(fine) // 2 :])
    model.fit(_taken(samples, learnt))
    rest = _taken(samples, asked)
    took, clock = np.log(rest.time_s), rest.analytic_s
    whole = _error(model, rest.features, clock, took)
    found = []
    for column, (name, unit) in enumerate(zip(rest.features.names, rest.features.units, strict=True)):
        values = rest.features.matrix[:, column]
        rises = np.zeros(_SHUFFLES)
        if not _alike(values):
            for turn in range(_SHUFFLES):
                matrix = rest.features.matrix.copy()
                matrix[:, column] = rng.permutation(values)
                shuffled = Features(rest.features.names, rest.features.units, rest.features.version, matrix)
                rises[turn] = _error(model, shuffled, clock, took) - whole
        found.append(Importance(name, unit, float(rises.mean()), float(rises.std())))
    return Relied(tuple(sorted(found, key=lambda i: -i.rise)), whole, len(asked))


def _error(model: CostModel, features: Features, analytic_s: Floats, took: Floats) -> float:
    said = np.asarray(model.predict(features, analytic_s).log_s, np.float64)
    return float(np.sqrt(np.mean(np.square(said - took))))


def _alike(values: npt.NDArray[np.float32]) -> bool:
    """Whether all are one value (or none is there): shuffling changes nothing."""
    return bool(np.all(np.isnan(values)) or np.all(values == values[0]))


def _taken(samples: Samples, rows: npt.NDArray[np.int64]) -> Samples:
    statuses = tuple(samples.status[i] for i in rows)
    return Samples(samples.features.take(rows), samples.analytic_s[rows], samples.time_s[rows], statuses)
