"""What a worker says of a candidate, as a measurement."""

from __future__ import annotations

from autosched.device.cpu.timing import spread
from autosched.device.job import Outcome
from autosched.device.protocol import Build
from autosched.store.records import Measurement


def measurement(build: Build, outcome: Outcome, took_s: float) -> Measurement:
    """The median of the outcome's samples, with what the build says; `took_s` is the time of it all, in seconds."""
    costs = {"build": build.seconds} | (outcome.costs_s or {"check": took_s})
    time_s = None
    if outcome.status == "ok":
        ordered = sorted(outcome.samples_s)
        middle = len(ordered) // 2
        time_s = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    return Measurement(
        status=outcome.status,
        time_s=time_s,
        samples_s=outcome.samples_s,
        spread=spread(outcome.samples_s),
        max_abs_error=outcome.max_abs_error,
        tolerance=outcome.tolerance,
        message=outcome.message,
        kernel_sha=build.kernel_sha,
        costs_s=costs,
        extra=build.extra | outcome.extra,
    )


def unbuilt(build: Build) -> Measurement:
    """The measurement of a build that failed."""
    return Measurement("build", message=build.error or "nothing was built", costs_s={"build": build.seconds})


def number_of(stage: str) -> int:
    """The job's number in a stage such as `check 3`."""
    last = stage.split(" ")[-1]
    return int(last) if last.isdigit() else 0
