"""Recordings as files: gzipped JSON, a column at a time, figures to a few digits; some 60 KB for 2,000 rows.

The file names its schema and stands alone: decisions with domains and labels, rows, measurements, program, target.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.errors import StoreError
from autosched.store import codec
from autosched.store.json_file import read_json
from autosched.store.numbers import floats
from autosched.store.recorded_space import Floats, RecordedPlan, RecordedSpace
from autosched.store.records import STATUSES
from autosched.text_file import write_whole
from autosched.tiling.step import Decision

SCHEMA = "autosched/replay/1"
SEVERAL = "autosched/replays/1"
"""Several recordings in one file: `recordings`, a list of them."""
DIGITS = 5
"""Significant digits of a time; timings repeat to three."""
_PLAIN = ("name", "program", "target", "legal", "source", "created")


def write_replay(path: str | Path, recording: RecordedSpace) -> int:
    """Write the file, whole or not at all; returns its size in bytes. Equal recordings give equal files. Raises
    StoreError."""
    return _write(path, _to_dict(recording))


def write_replays(path: str | Path, recordings: Sequence[RecordedSpace]) -> int:
    """As `write_replay`, of several recordings in one file."""
    return _write(path, {"schema": SEVERAL, "recordings": [_to_dict(r) for r in recordings]})


def _to_dict(recording: RecordedSpace) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        **{name: getattr(recording, name) for name in _PLAIN},
        "device": dict(recording.device),
        "settings": dict(recording.settings),
        "plans": [_plan_to_dict(p) for p in recording.plans],
    }


def _write(path: str | Path, value: Mapping[str, Any]) -> int:
    data = gzip.compress(codec.dumps(value).encode(), mtime=0)
    try:
        write_whole(Path(path), data)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}", hint="give another path") from error
    return len(data)


def read_replay(path: str | Path) -> RecordedSpace:
    """Read what `write_replay` wrote, gzipped or not. Raises StoreError for a file that is missing, cut off, of another
    schema, or in which something does not fit."""
    return from_replay(read_json(Path(path)), str(path))


def read_replays(path: str | Path) -> tuple[RecordedSpace, ...]:
    """All recordings of a file, which `write_replay` or `write_replays` wrote. Raises StoreError as `read_replay`."""
    return replays_of(read_json(Path(path)), str(path))


def replays_of(value: Any, path: str) -> tuple[RecordedSpace, ...]:
    """All recordings of a file's JSON value. Raises StoreError, naming `path`."""
    if not (is_replay(value) and value["schema"] == SEVERAL):
        return (from_replay(value, path),)
    several = value.get("recordings")
    if not isinstance(several, list) or not several:
        raise StoreError(f"{path} is not a whole recording: recordings is missing or empty")
    return tuple(from_replay(one, f"{path}, recording {number}") for number, one in enumerate(several, 1))


def is_replay(value: Any) -> bool:
    """Whether a JSON value looks like a recording."""
    return isinstance(value, dict) and value.get("schema") is not None


def from_replay(data: Any, path: str) -> RecordedSpace:
    """What is in the JSON value of a recording. Raises StoreError, naming `path`."""
    if not is_replay(data):
        raise StoreError(f"{path} is no recording", hint="`autosched record` makes one")
    if data["schema"] == SEVERAL:
        held = len(data["recordings"]) if isinstance(data.get("recordings"), list) else 0
        hint = "`autosched model eval` takes all of them"
        raise StoreError(f"{path} holds {held} recordings, and one is wanted here", hint=hint)
    if data["schema"] != SCHEMA:
        said = f"{path} is of schema {data['schema']!r}; this version reads {SCHEMA!r}"
        raise StoreError(said, hint="record it again")
    try:
        plans = tuple(_plan_from_dict(p) for p in data["plans"])
        plain = {name: data[name] for name in _PLAIN}
        return RecordedSpace(plans=plans, device=dict(data["device"]), settings=dict(data["settings"]), **plain)
    except codec.DAMAGED as error:
        said = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise StoreError(f"{path} is not a whole recording: {said}") from error
    except StoreError as error:
        raise StoreError(f"{path}: {error.message}", hint=error.hint) from None


def rounded(values: Floats, digits: int = DIGITS) -> Floats:
    """The values to so many significant digits; what is not finite stays."""
    return np.array([float(f"{v:.{digits}g}") for v in np.asarray(values, np.float64)], np.float64)


def _plan_to_dict(plan: RecordedPlan) -> dict[str, Any]:
    return {
        "name": plan.name,
        "version": plan.version,
        "decisions": [{"name": d.name, "domain": d.domain, "labels": d.labels} for d in plan.decisions],
        "indices": plan.indices.T.tolist(),
        "status": [STATUSES[s] for s in plan.status],
        "time_s": rounded(plan.time_s),
        "spread": rounded(plan.spread, 2),
        "cost_s": rounded(plan.cost_s, 3),
        **({"repeats": plan.repeats} if len(plan.repeats) else {}),
        "terms": {name: _distinct(rounded(column)) for name, column in plan.terms.items()},
        "derived": {name: _distinct(column) for name, column in plan.derived.items()},
        "messages": {str(place): text for place, text in plan.messages.items()},
    }


def _status(name: Any) -> int:
    """Its place among STATUSES. Raises ValueError for none of them."""
    if name not in STATUSES:
        raise ValueError(f"status {name!r} is none of {', '.join(STATUSES)}")
    return STATUSES.index(name)


def _plan_from_dict(data: Mapping[str, Any]) -> RecordedPlan:
    decisions = tuple(Decision(d["name"], tuple(d["domain"]), tuple(d["labels"])) for d in data["decisions"])
    rows = len(data["time_s"])
    if len(data["indices"]) != len(decisions) or any(len(column) != rows for column in data["indices"]):
        raise ValueError(f"the indices of {data['name']!r} are not {rows} for each of {len(decisions)} decisions")
    plan = RecordedPlan(
        name=data["name"],
        version=data["version"],
        decisions=decisions,
        indices=np.array(data["indices"], np.int32).reshape(len(decisions), rows).T,
        status=np.array([_status(s) for s in data["status"]], np.uint8),
        time_s=floats(data["time_s"]),
        spread=floats(data["spread"]),
        cost_s=floats(data["cost_s"]),
        terms={name: _column(c, np.float64) for name, c in data["terms"].items()},
        derived={name: _column(c, np.int64) for name, c in data["derived"].items()},
        messages={int(place): str(text) for place, text in data["messages"].items()},
        repeats=np.array(data.get("repeats", ()), np.int32),
    )
    plan.space()  # says what is wrong with the rows now, and not when they are first used
    return plan


def _distinct(column: npt.NDArray[Any]) -> dict[str, Any]:
    """A column with few different values: those, and where each stands."""
    values, at = np.unique(column, return_inverse=True)
    return {"values": values, "at": at.reshape(-1)}


def _column(data: Mapping[str, Any], dtype: Any) -> npt.NDArray[Any]:
    at = np.array(data["at"], np.int64)
    values = np.array(data["values"], dtype)
    if at.size and (at.min() < 0 or at.max() >= len(values)):
        raise ValueError("a column refers to a value that it does not have")
    return values[at] if at.size else np.zeros(0, dtype)
