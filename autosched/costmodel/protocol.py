"""What a cost model must do: fit to measured rows, predict others, say its version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from autosched.costmodel.features import Features
from autosched.store.records import STATUSES

Floats = npt.NDArray[np.floating]

GENERALISES = frozenset(STATUSES) - {"ok", "refused", "failed"}
"""Failures that tell something of similar schedules; a refusal is the device's and says nothing of the schedule, nor
does a time that cannot be."""


@dataclass(frozen=True)
class Samples:
    """Measured rows. `analytic_s` and `time_s` are seconds, shape (rows,); `time_s` counts where `status` is ok."""

    features: Features
    analytic_s: Floats
    time_s: Floats
    status: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.status)

    @property
    def ok(self) -> npt.NDArray[np.bool_]:
        """Rows with a time that can be learnt from, and one of the clock to hold it against."""
        fine = np.array([status == "ok" for status in self.status], np.bool_)
        return fine & np.isfinite(self.analytic_s) & np.isfinite(self.time_s) & (self.time_s > 0)


@dataclass(frozen=True)
class Prediction:
    """For each row: `log_s` the expected ln(seconds), `sigma` its standard deviation, `valid` P(it runs, correctly)."""

    log_s: Floats
    sigma: Floats
    valid: Floats

    @property
    def seconds(self) -> Floats:
        return np.exp(self.log_s)

    def lower(self, z: float) -> Floats:
        """ln(seconds) that a row may reach with some luck, `z` deviations below the mean; a doubtful row is moved up
        by the logarithm of the expected number of attempts."""
        return self.log_s - z * self.sigma - np.log(np.clip(self.valid, 1e-3, 1.0))


class CostModel(Protocol):
    """Learns from trials. The same samples and seed give the same predictions."""

    @property
    def version(self) -> str:
        """Name and version of the model and its features, as `xgb/1 features/1`."""
        ...

    def fit(self, samples: Samples) -> None:
        """Learn from these rows alone (earlier fits are forgotten). Any number of rows, none too."""
        ...

    def predict(self, features: Features, analytic_s: Floats) -> Prediction:
        """What to expect of rows, also before any fit. Raises FeatureMismatchError for features of another version."""
        ...
