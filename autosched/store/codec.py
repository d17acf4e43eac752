"""Trials and studies as plain JSON values, for the database's columns and for JSON lines."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from autosched.store.records import STATUSES, Measurement, StudyRecord, Trial


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
    fields["samples_s"] = tuple(fields.get("samples_s", ()))
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
        schedule=dict(data["schedule"]),
        measurement=measurement_from_dict(data["measurement"]),
        analytic_s=_seconds(data.get("analytic_s")),
        predicted_s=_seconds(data.get("predicted_s")),
        round=str(data.get("round", "search")),
    )


def _seconds(value: Any) -> float | None:
    return None if value is None else float(value)


def study_to_dict(record: StudyRecord) -> dict[str, Any]:
    return asdict(record)


def study_from_dict(data: Mapping[str, Any]) -> StudyRecord:
    """The inverse of `study_to_dict`. Raises TypeError for unknown or missing fields."""
    return StudyRecord(**data)
