"""A plug-in's cost model, held to its protocol: one finite prediction a row."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from autosched.costmodel.features import Features
from autosched.costmodel.protocol import CostModel, Floats, Prediction, Samples
from autosched.errors import AutoschedError, PluginError


class CheckedModel:
    """`model`, which a package offers under `name`. Raises PluginError for what it does wrong."""

    def __init__(self, name: str, model: CostModel) -> None:
        for method in ("fit", "predict"):
            if not callable(getattr(model, method, None)):
                raise PluginError(f"the cost model {name!r} has no method {method}", hint="see docs/python.md")
        self.name, self.model = name, model

    @property
    def version(self) -> str:
        said: object = getattr(self.model, "version", None)
        if not isinstance(said, str):
            raise self._fault(f"its version is {said!r}, and should be a text")
        return said

    def fit(self, samples: Samples) -> None:
        try:
            self.model.fit(samples)
        except AutoschedError:
            raise
        except Exception as error:
            raise self._fault(f"fit raised {type(error).__name__}: {error}") from error

    def predict(self, features: Features, analytic_s: Floats) -> Prediction:
        try:
            said: object = self.model.predict(features, analytic_s)
        except AutoschedError:
            raise
        except Exception as error:
            raise self._fault(f"predict raised {type(error).__name__}: {error}") from error
        if not isinstance(said, Prediction):
            raise self._fault(f"predict answered a {type(said).__name__}, which is no Prediction")
        known = np.isfinite(np.asarray(analytic_s, np.float64))  # of others nothing is expected
        found = {name: self._column(name, getattr(said, name), known) for name in ("log_s", "sigma", "valid")}
        if (found["sigma"] < 0).any():
            raise self._fault("predict answered with a sigma below 0")
        if ((found["valid"] < 0) | (found["valid"] > 1)).any():
            raise self._fault("predict answered with a `valid` outside of 0 to 1, which is a probability")
        return Prediction(**found)

    def _column(self, name: str, values: object, known: npt.NDArray[np.bool_]) -> Floats:
        try:
            column = np.asarray(values, np.float64)
        except (TypeError, ValueError) as error:
            raise self._fault(f"predict answered with a {name} that is no array of numbers: {error}") from None
        if column.shape != known.shape:
            raise self._fault(f"predict answered with a {name} of shape {column.shape} for {len(known)} rows")
        if (wrong := known & ~np.isfinite(column)).any():
            at = int(np.flatnonzero(wrong)[0])
            raise self._fault(f"predict answered with a {name} of {column[at]} for row {at}")
        return column

    def _fault(self, what: str) -> PluginError:
        return PluginError(f"the cost model {self.name!r} is at fault: {what}")
