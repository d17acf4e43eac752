"""Recordings as files: gzipped JSON, a column at a time, figures to a few digits; some 60 KB for 2,000 rows.

The file names its schema and stands alone: decisions with domains and labels, rows, measurements, program, target.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.errors import StoreError
from autosched.json_text import repeated_key
from autosched.store import codec
from autosched.store.json_file import json_of, unpacked_text
from autosched.store.placed_json import PlacedJson
from autosched.store.recorded_space import Floats, RecordedPlan, RecordedSpace
from autosched.store.records import STATUSES
from autosched.text_file import write_whole
from autosched.tiling.step import Decision

SCHEMA = "autosched/replay/1"
SEVERAL = "autosched/replays/1"
"""Several recordings in one file: `recordings`, a list of them."""
DIGITS = 5
"""Significant digits of a time; timings repeat to three."""
MEND = "mend the file there, copy it again, or record it again (`autosched record`)"
_MOST, _MOST_32 = 2**63 - 1, 2**31 - 1
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
    return from_replay(_value(path), str(path))


def read_replays(path: str | Path) -> tuple[RecordedSpace, ...]:
    """All recordings of a file, which `write_replay` or `write_replays` wrote. Raises StoreError as `read_replay`."""
    return replays_of(_value(path), str(path))


def _value(path: str | Path) -> Any:
    text = unpacked_text(Path(path))
    value = json_of(Path(path), text)
    if is_replay(value):
        check_once(text, str(path))
    return value


def check_once(text: str, path: str) -> None:
    """Raise StoreError where an object of a recording's text has a key twice: readers would take one of them."""
    if at := repeated_key(text):
        raise StoreError(f"{path} is not a whole recording: {at} stands there twice", hint="remove one of them")


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
        return _recording(PlacedJson(data, ""))
    except codec.DAMAGED as error:
        raise StoreError(f"{path} is not a whole recording: {error}", hint=MEND) from error
    except StoreError as error:
        raise StoreError(f"{path}: {error.message}", hint=error.hint or MEND) from None


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


def _recording(found: PlacedJson) -> RecordedSpace:
    """Raises ValueError with the place, StoreError where values do not fit together."""
    return RecordedSpace(
        name=found["name"].text(one_line=True),
        plans=tuple(_plan(p) for p in found["plans"].each()),
        program=found["program"].text(),
        target=found["target"].text(),
        device=dict(found["device"].fields()),
        legal=found["legal"].integer(0, _MOST),
        settings=dict(found["settings"].fields()),
        source=found["source"].text(),
        created=found["created"].text(),
    )


def _plan(found: PlacedJson) -> RecordedPlan:
    decisions = tuple(_decision(d) for d in found["decisions"].each())
    columns = found["indices"].each(len(decisions), "decisions")
    rows = _rows([*columns, *(found[name] for name in ("status", "time_s", "spread", "cost_s"))])
    indices = [c.integers(0, len(d.domain) - 1, rows) for c, d in zip(columns, decisions, strict=True)]
    repeats = found.get("repeats")
    plan = RecordedPlan(
        name=found["name"].text(one_line=True),
        version=found["version"].text(),
        decisions=decisions,
        indices=np.array(indices, np.int32).reshape(len(decisions), rows).T,
        status=np.array([_status(s) for s in found["status"].each(rows)], np.uint8),
        time_s=found["time_s"].numbers(rows),
        spread=found["spread"].numbers(rows),
        cost_s=found["cost_s"].numbers(rows),
        terms={name: _column(c, rows, c["values"].numbers()) for name, c in found["terms"].named().items()},
        derived={
            name: _column(c, rows, np.array(c["values"].integers(-_MOST, _MOST), np.int64))
            for name, c in found["derived"].named().items()
        },
        messages={_place(key, one, rows): one.text() for key, one in found["messages"].named().items()},
        repeats=np.array(repeats.integers(0, _MOST_32, rows) if repeats else (), np.int32),
    )
    plan.space()  # says what is wrong with the rows now, and not when they are first used
    return plan


def _rows(columns: Sequence[PlacedJson]) -> int:
    """How long most columns are: the others are at fault."""
    return Counter(len(c.each()) for c in columns).most_common(1)[0][0]


def _decision(found: PlacedJson) -> Decision:
    domain = tuple(found["domain"].integers(-_MOST, _MOST))
    if not domain or len(set(domain)) < len(domain):
        raise found["domain"].wrong("a list of different values, one at least")
    labels = tuple(one.text() for one in found["labels"].each())
    if labels and (len(labels) != len(domain) or len(set(labels)) < len(labels)):
        raise found["labels"].wrong(f"empty, or {len(domain)} different texts, one for each value of the domain")
    return Decision(found["name"].text(one_line=True), domain, labels)


def _status(found: PlacedJson) -> int:
    """Its place among STATUSES."""
    if found.value not in STATUSES:
        raise found.wrong(f"a status: one of {', '.join(STATUSES)}")
    return STATUSES.index(found.value)


def _place(key: str, found: PlacedJson, rows: int) -> int:
    if not (key.isascii() and key.isdigit() and len(key) < 10 and int(key) < rows):
        raise ValueError(f"{found.at} names no row: messages are by the place of a row, 0 to {rows - 1}")
    return int(key)


def _distinct(column: npt.NDArray[Any]) -> dict[str, Any]:
    """A column with few different values: those, and where each stands."""
    values, at = np.unique(column, return_inverse=True)
    return {"values": values, "at": at.reshape(-1)}


def _column(found: PlacedJson, rows: int, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    at = found["at"].integers(0, len(values) - 1, rows)
    return values[np.array(at, np.int64)] if at else values[:0]
