"""Results of the Kernel Tuning Toolkit (KTT 2), as its tuner saves them in JSON: read into `Measured`.

`Metadata` (with `TimeUnit` and `Device`) and `Results`: for each run of a configuration its `Configuration` (pairs of
`Name` and `Value`), `Status`, `TotalDuration` and overheads (Source/Output/JsonConverters.cpp in KTT 2.2). Each run is
a result of its own: of several runs of one configuration the last one counts, as of any file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autosched.errors import StoreError
from autosched.store import codec
from autosched.store.measured import Configuration, Measured
from autosched.store.numbers import finite
from autosched.store.records import Measurement

UNITS = {"Nanoseconds": 1e-9, "Microseconds": 1e-6, "Milliseconds": 1e-3, "Seconds": 1.0}
_STATUS = {
    "Ok": "ok",
    "ComputationFailed": "crash",
    "ValidationFailed": "wrong",
    "CompilationFailed": "build",
    "DeviceLimitsExceeded": "refused",
}
_COSTS = {
    "build": ("CompilationOverhead",),
    "check": ("ValidationOverhead",),
    "search": ("SearcherOverhead",),
    "framework": ("DataMovementOverhead", "ProfilingOverhead"),
}
"""Our name of a cost to theirs, which older versions have not all of."""


def is_ktt(value: Any) -> bool:
    """Whether a JSON value looks like KTT's results."""
    return isinstance(value, dict) and "Results" in value and "Metadata" in value


def from_ktt(value: Mapping[str, Any], path: str) -> tuple[Measured, ...]:
    """What is in a results file's JSON value, for each kernel. Raises StoreError, naming `path` and the result."""
    metadata, results = value["Metadata"], value["Results"]
    if not isinstance(metadata, dict) or not isinstance(results, list) or not results:
        raise StoreError(f"{path}: `Metadata` is an object and `Results` a list in KTT's results, and not empty")
    unit = metadata.get("TimeUnit")
    if not isinstance(unit, str) or unit not in UNITS:
        raise StoreError(f"{path}: unknown unit of time {unit!r}", hint=f"known: {', '.join(UNITS)}")
    kernels: dict[str, list[tuple[Configuration, Measurement]]] = {}
    for number, result in enumerate(results, start=1):
        try:
            pairs = {pair["Name"]: pair["Value"] for pair in result["Configuration"]}
            if len(pairs) < len(result["Configuration"]):
                raise ValueError("a parameter is there twice")
            kernel = str(result.get("KernelName", "kernel"))
            kernels.setdefault(kernel, []).append((pairs, _measurement(result, UNITS[unit])))
        except codec.DAMAGED as error:
            said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
            raise StoreError(f"{path}: result {number}: {said}") from error
    try:
        return tuple(Measured.of(name, str(metadata.get("Device", "")), pairs) for name, pairs in kernels.items())
    except ValueError as error:
        raise StoreError(f"{path}: {error}") from error


def _measurement(result: Mapping[str, Any], unit: float) -> Measurement:
    status = result["Status"]
    if status not in _STATUS:
        raise ValueError(f"status {status!r} is none of {', '.join(_STATUS)}")
    costs = {ours: sum(finite(result.get(t, 0.0)) * unit for t in theirs) for ours, theirs in _COSTS.items()}
    costs["framework"] += max(0.0, finite(result.get("TotalOverhead", 0.0)) * unit - sum(costs.values()))
    if _STATUS[status] != "ok":
        return Measurement(_STATUS[status], message=status, costs_s=costs)
    time_s = finite(result["TotalDuration"]) * unit
    if time_s <= 0:
        raise ValueError(f"TotalDuration {result['TotalDuration']} is not above 0")
    return Measurement("ok", time_s, (time_s,), costs_s=costs | {"time": time_s})
