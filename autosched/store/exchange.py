"""Trials as JSON lines and a schedule as JSON: written from the store, and read back unchanged."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from autosched.errors import Location, StoreError
from autosched.escape import json_text
from autosched.json_text import parse_json
from autosched.store import codec
from autosched.store.json_file import MAX_BYTES
from autosched.store.records import StudyRecord, Trial
from autosched.text_file import read_text

TRIALS_SCHEMA = "autosched/trials/1"
SCHEDULE_SCHEMA = "autosched/schedule/1"


def write_trials(path: str | Path, record: StudyRecord, trials: Iterable[Trial]) -> int:
    """Write the study on the first line and a trial on each further one; returns how many trials there were.

    Raises StoreError when the file cannot be written."""
    count = 0
    try:
        with Path(path).open("w", encoding="utf-8") as out:
            out.write(codec.dumps({"schema": TRIALS_SCHEMA, **codec.study_to_dict(record)}) + "\n")
            for trial in trials:
                out.write(codec.dumps(codec.trial_to_dict(trial)) + "\n")
                count += 1
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror}", hint="give another path") from error
    return count


def read_trials(path: str | Path) -> tuple[StudyRecord, list[Trial]]:
    """Read what `write_trials` wrote. Raises StoreError with file and line for anything else."""
    text = read_text(path, StoreError, MAX_BYTES, "`autosched export STUDY -o FILE.jsonl` writes such a file")
    lines = text.removesuffix("\n").split("\n")  # not splitlines: a text may hold U+0085
    if lines == [""]:
        raise StoreError(f"{path} is empty", hint="`autosched export STUDY -o trials.jsonl` writes such a file")
    record, trials = None, []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            data = parse_json(line)
            if record is None:
                _expect_schema(data, TRIALS_SCHEMA)
                record = codec.study_from_dict({k: v for k, v in data.items() if k != "schema"})
            else:
                trials.append(codec.trial_from_dict(data))
        except codec.DAMAGED as error:
            place = Location(str(path), number, text=line[:120])
            raise StoreError(f"not a line of exported trials: {_said(error)}", location=place) from error
    if record is None:
        raise StoreError(f"{path} holds no study", hint="`autosched export STUDY -o trials.jsonl` writes such a file")
    return record, trials


def schedule_json(record: StudyRecord, trial: Trial) -> str:
    """One schedule with what it is for, as indented JSON; `read_schedule` reads it."""
    value = {
        "schema": SCHEDULE_SCHEMA,
        "study": record.name,
        "key": record.key,
        "program": record.program,
        "target": record.target,
        "trial": codec.trial_to_dict(trial),
    }
    return json_text(json.loads(codec.dumps(value)), indent=2) + "\n"


OWN = (
    'one of your own names decisions, and a plan or none: {"schedule": {"reg_i": 8}}; '
    "what it leaves open is the clock's choice"
)
"""What a file may be that was not exported."""


def read_schedule(path: str | Path) -> tuple[dict[str, str], Trial]:
    """The key of the study a schedule came from, and its trial. One that names decisions, and a plan or none, is a
    trial without a row (`codec.NO_ROW`), and has no key: `{"schedule": {"reg_i": 8}}`. Raises StoreError for any other
    file."""
    try:
        data = parse_json(read_text(path, StoreError, MAX_BYTES, "`autosched export STUDY -o FILE.json` writes one"))
        part = data.get("trial", data) if isinstance(data, dict) else None
        if isinstance(part, dict) and "schedule" in part and "row" not in part:
            return {}, codec.partial_from_dict(part)
        _expect_schema(data, SCHEDULE_SCHEMA)
        key, trial = dict(data["key"]), codec.trial_from_dict(data["trial"])
        return key, trial
    except codec.DAMAGED as error:
        raise StoreError(f"{path} is not an exported schedule: {_said(error)}", hint=OWN) from error


def _expect_schema(data: Any, schema: str) -> None:
    found = data.get("schema") if isinstance(data, dict) else None
    if found != schema:
        raise ValueError(f"schema {found!r}, expected {schema!r}")


def _said(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)
