"""`RowAnswer`: what was measured of one row, as a recording keeps it; `answers` measures rows one after the other."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autosched.device.protocol import Build, Device
from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.search.stopwatch import Stopwatch
from autosched.search.tuning.building import Building
from autosched.search.tuning.measuring import Measuring
from autosched.store.numbers import finite
from autosched.store.records import STATUSES, Measurement

CHUNK = 32
"""Rows that are built together, where the device is quicker so."""
LONGEST = 200
"""Characters of a failure's message."""
_PATH = re.compile(r"(?<![\w.])(?:~|[A-Za-z]:)?(?:[/\\][^\s/\\:'\"<>|]+)*[/\\](?=[^\s/\\:'\"<>|])")


@dataclass(frozen=True)
class RowAnswer:
    """`cost_s` are the seconds of building, checking and timing; `repeats` is the number of samples."""

    measurement: Measurement
    cost_s: float
    repeats: int

    @staticmethod
    def of(measurement: Measurement, cost_s: float) -> RowAnswer:
        """Without what recordings must not tell: where files lay on the machine that measured."""
        message = without_folders(measurement.message)[:LONGEST]
        return RowAnswer(replace(measurement, message=message), cost_s, len(measurement.samples_s))

    def as_json(self) -> dict[str, Any]:
        m = self.measurement
        said = {"time_s": m.time_s, "spread": m.spread, "message": m.message or None}
        known = {name: value for name, value in said.items() if value is not None}
        return {"status": m.status, **known, "cost_s": self.cost_s, "repeats": self.repeats}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> RowAnswer:
        """The inverse. Raises what a damaged value raises (`store.codec.DAMAGED`)."""
        status, time_s, spread = value["status"], value.get("time_s"), value.get("spread")
        if status not in STATUSES or (status == "ok") != (time_s is not None):
            raise ValueError(f"a row of status {status!r} and time {time_s!r}")
        measurement = Measurement(
            status,
            time_s=None if time_s is None else finite(time_s),
            spread=None if spread is None else finite(spread),
            message=str(value.get("message", "")),
        )
        return RowAnswer(measurement, finite(value["cost_s"]), int(value["repeats"]))


def answers(space: SearchSpace, device: Device, rows: Rows) -> Iterator[tuple[int, RowAnswer]]:
    """The answer for each row, with its place, in order. Whatever a candidate does is its outcome."""
    building, measuring = Building(device, Stopwatch(time.monotonic)), Measuring(device, None, time.monotonic)
    for first in range(0, len(rows), CHUNK):
        candidates = space.candidates(rows.take(np.arange(first, min(first + CHUNK, len(rows)))))
        for place, build in enumerate(building.all(candidates, together=True), first):
            yield place, _answer(measuring, build)


def _answer(measuring: Measuring, build: Build) -> RowAnswer:
    measurement = measuring.measured(build, "search")
    return RowAnswer.of(measurement, sum(({"build": build.seconds} | measurement.costs_s).values()))


def without_folders(text: str) -> str:
    """The text with files named, and not where they are.

    >>> without_folders("/tmp/autosched-1/k.c:3: error: 1 / 2")
    'k.c:3: error: 1 / 2'
    """
    return _PATH.sub("", text)
