"""`Stopwatch`: where the wall time of a run went, by phase."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from autosched.costmodel.features import Features
from autosched.costmodel.protocol import CostModel, Floats, Prediction, Samples

PHASES = ("match", "search", "build", "check", "measure", "model", "other")


class Stopwatch:
    """Adds up seconds by phase; a phase inside another takes its time out of the outer one. `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._started = clock()
        self._spent = dict.fromkeys(PHASES, 0.0)
        self._open: list[str] = []
        self._since = self._started

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self._settle()
        self._open.append(name)
        try:
            yield
        finally:
            self._settle()
            self._open.pop()

    def move(self, source: str, target: str, seconds: float) -> None:
        """Count seconds elsewhere: a device says how much of a measurement was checking."""
        moved = min(seconds, self._spent[source])
        self._spent[source] -= moved
        self._spent[target] += moved

    @property
    def started_s(self) -> float:
        """When the stopwatch was made, by its clock."""
        return self._started

    @property
    def elapsed_s(self) -> float:
        """Seconds since the stopwatch was made."""
        return self.clock() - self._started

    def seconds(self) -> dict[str, float]:
        """Seconds by phase, with `total`; what no phase claimed is in `other`."""
        self._settle()
        return {"total": self._since - self._started, **self._spent}

    def _settle(self) -> None:
        now = self.clock()
        self._spent[self._open[-1] if self._open else "other"] += now - self._since
        self._since = now


class TimedModel:
    """A cost model whose fits and predictions count as the phase `model`."""

    def __init__(self, model: CostModel, watch: Stopwatch) -> None:
        self._model = model
        self._watch = watch

    @property
    def version(self) -> str:
        return self._model.version

    def fit(self, samples: Samples) -> None:
        with self._watch.phase("model"):
            self._model.fit(samples)

    def predict(self, features: Features, analytic_s: Floats) -> Prediction:
        with self._watch.phase("model"):
            return self._model.predict(features, analytic_s)
