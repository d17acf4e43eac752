"""The T4 results format, schema 1.0.0, that auto-tuning researchers exchange: read into `Measured`, and written.

A list of results, each with `configuration`, `times` (what was spent), `invalidity` and `measurements`
(kernel_tuner/schema/T4/1.0.0/results-schema.json). Published files say their unit of time in `metadata.timeunit`,
spelled "miliseconds", and call `compilation` what the schema calls `compilation_time`; both are read.
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

VERSION = "1.0.0"
_MS = 1e-3
_UNITS = {
    **dict.fromkeys(("s", "seconds"), 1.0),
    **dict.fromkeys(("", "ms", "milliseconds", "miliseconds"), _MS),  # Kernel Tuner's unit, where none is given
    **dict.fromkeys(("us", "µs", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nanoseconds"), 1e-9),
}
_STATUS = {
    "correct": "ok",
    "timeout": "timeout",
    "compile": "build",
    "runtime": "crash",
    "correctness": "wrong",
    "constraints": "refused",
}
_INVALIDITY = {ours: theirs for theirs, ours in _STATUS.items()}
_COSTS = {
    "build": ("compilation_time", "compilation"),
    "check": ("validation",),
    "framework": ("framework",),
    "search": ("search_algorithm",),
}


def is_t4(value: Any) -> bool:
    """Whether a JSON value looks like T4 results."""
    return isinstance(value, dict) and "results" in value


def from_t4(value: Mapping[str, Any], path: str) -> Measured:
    """What is in the JSON value of a results file. Raises StoreError, naming `path` and the result.

    The format names neither kernel nor device: the file's place and name stand for both, unless `metadata` has them."""
    version = value.get("schema_version")
    if version != VERSION:
        said = "says no schema version" if version is None else f"has schema {version!r}"
        raise StoreError(f"{path}: this file of T4 results {said}", hint=f"schema {VERSION} is known")
    metadata = value.get("metadata") or {}
    results = value["results"]
    if not isinstance(results, list) or not isinstance(metadata, dict):
        raise StoreError(f"{path}: `results` is a list and `metadata` an object in T4 results")
    unit = str(metadata.get("timeunit", "ms")).casefold()
    if unit not in _UNITS:
        raise StoreError(f"{path}: unknown unit of time {unit!r}", hint=f"known: {', '.join(u for u in _UNITS if u)}")
    pairs: list[tuple[Configuration, Measurement]] = []
    for number, result in enumerate(results, start=1):
        try:
            pairs.append((dict(result["configuration"]), _measurement(result, _UNITS[unit])))
        except codec.DAMAGED as error:
            said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise StoreError(f"{path}: result {number}: {said}") from error
    kernel, device = _place(Path(path))
    try:
        return Measured.of(
            str(metadata.get("kernel_name") or kernel), str(metadata.get("device_name") or device), pairs
        )
    except ValueError as error:
        raise StoreError(f"{path}: {error}") from error


def _place(path: Path) -> tuple[str, str]:
    """Kernel and device by where the file lies: `cachefiles/KERNEL/DEVICE_T4.json.gz` in the public hub; elsewhere the
    file's name stands for the kernel."""
    name = path.name.split(".")[0]
    folder = path.absolute().parent
    hub = folder.parent.name == "cachefiles"
    return (folder.name, name.removesuffix("_T4")) if hub else (name, "")


def write_t4(path: Path, measured: Measured) -> None:
    """Write a results file. Raises StoreError where it cannot be written."""
    pairs = zip(measured.configurations, measured.measurements, strict=True)
    metadata = {"timeunit": "miliseconds", "kernel_name": measured.name, "device_name": measured.device}
    results = [_result(configuration, measurement) for configuration, measurement in pairs]
    write_json(path, {"schema_version": VERSION, "metadata": metadata, "results": results})


def _result(configuration: Configuration, measurement: Measurement) -> dict[str, Any]:
    good = measurement.ok and measurement.time_s is not None
    samples = (measurement.samples_s or (measurement.time_s or 0.0,)) if good else ()
    times: dict[str, Any] = {
        _COSTS[ours][0]: spent / _MS for ours, spent in spent_s(measurement, _COSTS, but=sum(samples)).items()
    }
    if good:
        times["runtimes"] = [s / _MS for s in samples]
    value: float | str = (measurement.time_s or 0.0) / _MS if good else measurement.message or measurement.status
    return {
        "timestamp": "",
        "configuration": dict(configuration),
        "objectives": ["time"],
        "times": times,
        "invalidity": _INVALIDITY[measurement.status],
        "correctness": 1 if measurement.ok else 0,
        "measurements": [{"name": "time", "value": value, "unit": "ms"}],
    }


def _measurement(result: Mapping[str, Any], unit: float) -> Measurement:
    invalidity, times = result["invalidity"], result["times"]
    if invalidity not in _STATUS:
        raise ValueError(f"invalidity {invalidity!r} is none of {', '.join(_STATUS)}")
    samples = tuple(finite(t) * unit for t in times.get("runtimes", ()))
    costs = {ours: finite(_first(times, theirs)) * unit for ours, theirs in _COSTS.items()}
    costs["time"] = sum(samples)
    found = {m["name"]: m for m in result.get("measurements", ())}
    if invalidity != "correct":
        message = found.get("time", {}).get("value", invalidity)
        return Measurement(_STATUS[invalidity], message=str(message), costs_s=costs)
    name = "time" if "time" in found else _objective(result, found)
    if name in found:
        own = found[name].get("unit") or None
        if own is not None and own.casefold() not in _UNITS:
            raise ValueError(f"unknown unit of time {own!r}")
        time_s = finite(found[name]["value"]) * (unit if own is None else _UNITS[own.casefold()])
    elif samples:
        time_s = sum(samples) / len(samples)
    else:
        raise ValueError(f"no time among its measurements ({', '.join(found) or 'none'}), nor runtimes")
    if time_s <= 0:
        raise ValueError(f"time {time_s} s is not above 0")
    return Measurement("ok", time_s, samples, spread_of(samples), costs_s=costs)


def _first(times: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((times[name] for name in names if name in times), 0.0)


def _objective(result: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """The name of the time that was minimised, where it is not called `time`. Raises ValueError for an objective that
    is no time."""
    names = [str(name) for name in result.get("objectives", ())]
    timed = [n for n in names if n in found and str(found[n].get("unit") or "").casefold() in _UNITS.keys() - {""}]
    if not timed and names and "time" not in names:
        raise ValueError(f"its objective is {', '.join(names)}, and only times are understood")
    return timed[0] if timed else "time"
