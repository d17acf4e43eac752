"""Kernel Tuner's cache files: read into `Measured`, and written from one.

One JSON object: `tune_params_keys`, and in `cache` an object for each configuration with `time` (milliseconds, or the
name of an error), `times`, and what was spent on it. Schema 1.0.0 to 1.1.0; older files say no version
(doc/source/cache_files.rst and kernel_tuner/schema/cache in Kernel Tuner 1.4).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autosched.errors import StoreError
from autosched.store import codec
from autosched.store.json_file import write_json
from autosched.store.measured import Configuration, Measured, spent_s
from autosched.store.numbers import finite, spread_of
from autosched.store.records import Measurement

VERSIONS = ("1.0.0", "1.0.1", "1.1.0")
_MS = 1e-3
_STATUS = {"InvalidConfig": "refused", "CompilationFailedConfig": "build", "RuntimeFailedConfig": "crash"}
_ERROR = {"build": "CompilationFailedConfig", "refused": "InvalidConfig"}  # any other failure is one while running
_COSTS = {
    "build": "compile_time",
    "check": "verification_time",
    "time": "benchmark_time",
    "framework": "framework_time",
    "search": "strategy_time",
}
"""Our name of a cost to theirs."""
_UNKNOWN = "1970-01-01 00:00:00+00:00"  # the schema wants a time of day, and ours have none


def is_cache(value: Any) -> bool:
    """Whether a JSON value looks like a cache file."""
    return isinstance(value, dict) and "cache" in value


def from_cache(value: Mapping[str, Any], path: str) -> Measured:
    """What is in a cache file's JSON value. Raises StoreError, naming `path` and the entry."""
    version = value.get("schema_version")
    if version is not None and version not in VERSIONS:
        raise StoreError(f"{path}: a cache file of schema {version!r}", hint=f"known: {', '.join(VERSIONS)}, or none")
    keys, cache = value.get("tune_params_keys"), value.get("cache")
    if not isinstance(keys, list) or not isinstance(cache, dict):
        raise StoreError(f"{path}: a cache file has `tune_params_keys` and `cache`, and this one lacks them")
    objective = value.get("objective", "time")
    if objective != "time" and not any(isinstance(e, dict) and "time" in e for e in cache.values()):
        said = f"{path}: a cache of the objective {str(objective)[:80]!r}"
        raise StoreError(said, hint="only times are understood")
    pairs: list[tuple[Configuration, Measurement]] = []
    for name, entry in cache.items():
        try:
            pairs.append(({key: entry[key] for key in keys}, _measurement(entry)))
        except codec.DAMAGED as error:
            said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise StoreError(f"{path}: the entry {name!r} of the cache: {said}") from error
    try:
        return Measured.of(str(value.get("kernel_name", "kernel")), str(value.get("device_name", "")), pairs)
    except ValueError as error:
        raise StoreError(f"{path}: {error}") from error


def write_cache(path: Path, measured: Measured) -> None:
    """Write a cache file of the newest schema. Raises StoreError where it cannot be written."""
    cache = {}
    for configuration, measurement in zip(measured.configurations, measured.measurements, strict=True):
        entry: dict[str, Any] = dict(configuration)
        if measurement.ok and measurement.time_s is not None:
            entry["time"] = measurement.time_s / _MS
            entry["times"] = [s / _MS for s in measurement.samples_s or (measurement.time_s,)]
        else:
            entry["time"] = _ERROR.get(measurement.status, "RuntimeFailedConfig")
        entry |= {_COSTS[ours]: spent / _MS for ours, spent in spent_s(measurement, _COSTS).items()}
        entry["timestamp"] = _UNKNOWN
        cache[",".join(str(v) for v in configuration.values())] = entry
    write_json(
        path,
        {
            "schema_version": VERSIONS[-1],
            "device_name": measured.device,
            "kernel_name": measured.name,
            "problem_size": "",
            "tune_params_keys": list(measured.parameters),
            "tune_params": {p: list(measured.values(p)) for p in measured.parameters},
            "objective": "time",
            "cache": cache,
        },
    )


def _measurement(entry: Mapping[str, Any]) -> Measurement:
    time = entry["time"]
    costs = {ours: finite(entry.get(theirs, 0.0)) * _MS for ours, theirs in _COSTS.items()}
    if isinstance(time, str):
        if time not in _STATUS:
            raise ValueError(f"time {time!r} is neither a number nor one of {', '.join(_STATUS)}")
        return Measurement(_STATUS[time], message=time, costs_s=costs)
    samples = tuple(finite(t) * _MS for t in entry.get("times", ()))
    time_s = finite(time) * _MS
    if time_s <= 0:
        raise ValueError(f"time {time} is not above 0")
    return Measurement("ok", time_s, samples, spread_of(samples), costs_s=costs)
