"""Trials and studies as plain JSON values, for the database's columns and for JSON lines."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from autosched.store.numbers import finite
from autosched.store.records import STATUSES, Measurement, StudyRecord, Trial

DAMAGED = (ValueError, TypeError, LookupError, AttributeError, OverflowError)
"""What reading a value that is no record raises; each reader turns it into a StoreError with its place."""


def dumps(value: object) -> str:
    """Compact ASCII JSON that any parser reads: numpy scalars become numbers, a float that is not finite null."""
    return json.dumps(_plain(value), separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> Any:
    """The value in terms of JSON's own types; what has no JSON form is written as its text."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return int(value)
        case float():
            return float(value) if math.isfinite(value) else None
        case Mapping():
            return {str(k): _plain(v) for k, v in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_plain(v) for v in value]
    if hasattr(value, "tolist"):  # a numpy scalar or array
        return _plain(value.tolist())
    return str(value)


def measurement_to_dict(measurement: Measurement) -> dict[str, Any]:
    """All fields that say something; `measurement_from_dict` restores the rest."""
    return {k: v for k, v in asdict(measurement).items() if v not in (None, "", (), {})}


def measurement_from_dict(data: Mapping[str, Any]) -> Measurement:
    """The inverse. Raises ValueError or TypeError for data that is no measurement."""
    fields = dict(data)
    if fields.get("status") not in STATUSES:
        raise ValueError(f"status {fields.get('status')!r} is none of {', '.join(STATUSES)}")
    fields["samples_s"] = tuple(finite(s) for s in fields.get("samples_s", ()))
    for name in ("time_s", "spread", "max_abs_error", "tolerance"):
        fields[name] = _figure(fields.get(name), name)
    if fields["time_s"] is not None and fields["time_s"] <= 0:
        raise ValueError(f"a time of {fields['time_s']} seconds")
    fields["costs_s"] = {str(k): finite(v) for k, v in dict(fields.get("costs_s", {})).items()}
    fields["extra"] = dict(fields.get("extra", {}))
    if (cost := fields["extra"].get("cost")) is not None:
        finite(cost)
    fields["message"] = str(fields.get("message", ""))
    return Measurement(**fields)


def trial_to_dict(trial: Trial) -> dict[str, Any]:
    return {
        "number": trial.number,
        "round": trial.round,
        "plan": trial.plan,
        "row": trial.row,
        "schedule": trial.schedule,
        "analytic_s": trial.analytic_s,
        "predicted_s": trial.predicted_s,
        "measurement": measurement_to_dict(trial.measurement),
    }


def trial_from_dict(data: Mapping[str, Any]) -> Trial:
    """The inverse of `trial_to_dict`. Raises KeyError, ValueError or TypeError for data that is no trial."""
    return Trial(
        number=int(data["number"]),
        plan=str(data["plan"]),
        row=int(data["row"]),
        schedule=_schedule(data["schedule"]),
        measurement=measurement_from_dict(data["measurement"]),
        analytic_s=_figure(data.get("analytic_s"), "analytic_s"),
        predicted_s=_figure(data.get("predicted_s"), "predicted_s"),
        round=str(data.get("round", "search")),
    )


NO_ROW = -1
"""The row of a trial that names some decisions."""


def partial_from_dict(data: Mapping[str, Any]) -> Trial:
    """A schedule that names some decisions, and a plan or none. Raises as `trial_from_dict`."""
    plan, schedule = str(data.get("plan") or ""), _schedule(data["schedule"])
    if not schedule:
        raise ValueError("it names no decision")
    return Trial(0, plan, NO_ROW, schedule, Measurement("partial"))


def _schedule(value: Any) -> dict[str, int | str]:
    found = {str(name): choice for name, choice in dict(value).items()}
    for name, choice in found.items():
        if isinstance(choice, bool) or not isinstance(choice, int | str):
            raise TypeError(f"{name} is {dumps(choice)[:80]}, and values are whole numbers and labels")
    return found


def _figure(value: Any, name: str) -> float | None:
    try:
        return None if value is None else finite(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def study_to_dict(record: StudyRecord) -> dict[str, Any]:
    return asdict(record)


def study_from_dict(data: Mapping[str, Any]) -> StudyRecord:
    """The inverse of `study_to_dict`. Raises TypeError for unknown or missing fields, and for values of other types."""
    record = StudyRecord(**data)
    for name in ("name", "program", "program_name", "target", "device", "created"):
        if not isinstance(getattr(record, name), str):
            raise TypeError(f"{name} is no text")
    if isinstance(record.seed, bool) or not isinstance(record.seed, int):
        raise TypeError("seed is no whole number")
    if not all(isinstance(x, str) for pair in record.key.items() for x in pair) or not isinstance(
        record.settings, dict
    ):
        raise TypeError("key is no object of texts, or settings are no object")
    return record
