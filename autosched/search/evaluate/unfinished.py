"""`Unfinished`: the rows of a recording that is being made, in a file beside it, each as soon as it is measured.

One JSON value a line: what the rows have in common, then a row each. After `kill -9` or a power cut the last line may
be half there; it is measured again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeAlias

import numpy as np

from autosched.errors import StoreError
from autosched.search.evaluate.row_answer import RowAnswer
from autosched.search.space.plan_rows import PlanEntry
from autosched.store import codec
from autosched.store.json_file import MAX_BYTES
from autosched.store.recorded_space import RecordedSpace
from autosched.text_file import read_bytes

SCHEMA = "autosched/recording/1"
SUFFIX = ".part"
_WORDS = {
    "program": "another program or other sizes",
    "target": "another target",
    "device": "another device, toolchain or number of threads",
    "spaces": "another revision of the space",
    "intrinsics": "other texts of instructions",
    "autosched": "another version of autosched",
}
"""What it means that a field of the key differs; of the others both values are told."""
Key: TypeAlias = tuple[str, int]
"""A plan's name and a row of it."""


class Unfinished:
    """A context in which this process alone records into `path`. Raises StoreError where another one does."""

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(path.name + SUFFIX)
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Unfinished:
        if self.path.exists() and not self.path.is_file():  # a pipe without a reader would wait for ever
            raise StoreError(f"cannot write {self.path}: it is no file", hint="give another path with -o")
        try:
            self._file = self.path.open("ab")
        except OSError as error:
            hint = "give another path with -o"
            raise StoreError(f"cannot write {self.path}: {error.strerror}", hint=hint) from error
        try:
            if os.name == "posix":
                import fcntl

                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise StoreError(f"another process is recording into {self.path}") from None
        except OSError:  # a file system without locks
            pass
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._file is not None:
            empty = self._file.tell() == 0
            self._file.close()
            if empty:
                self.path.unlink(missing_ok=True)

    def open(self, key: Mapping[str, Any], fresh: bool) -> dict[Key, RowAnswer]:
        """The rows that an earlier run left, which must have the same key: StoreError otherwise, and for a file that is
        damaged elsewhere than at its end. Rows are added behind them; with `fresh` there are none."""
        assert self._file is not None
        found: dict[Key, RowAnswer] = {}
        lines, whole = ([], 0) if fresh else self._lines()
        if lines:
            refuse_other(str(self.path), self._header(lines[0]), key)
            found = dict(self._row(number, line) for number, line in enumerate(lines[1:], start=2))
        self._file.truncate(whole)
        self._file.seek(0, os.SEEK_END)
        if not lines:
            self._put({"schema": SCHEMA, "key": key})
        return found

    def add(self, key: Key, answer: RowAnswer) -> None:
        """Keep a row. StoreError where that is not possible."""
        self._put({"plan": key[0], "row": key[1], **answer.as_json()})

    def drop(self) -> None:
        """All of it is elsewhere."""
        assert self._file is not None
        self._file.truncate(0)
        self._file.seek(0)

    def _lines(self) -> tuple[list[bytes], int]:
        """Whole lines, and how many bytes these are."""
        data = read_bytes(self.path, StoreError, MAX_BYTES)
        whole = data.rfind(b"\n") + 1
        return data[:whole].splitlines(), whole

    def _header(self, line: bytes) -> dict[str, Any]:
        value = self._value(1, line)
        if value.get("schema") != SCHEMA or not isinstance(value.get("key"), dict):
            raise StoreError(f"{self.path} is no unfinished recording of this version", hint="remove it, or --fresh")
        return dict(value["key"])

    def _row(self, number: int, line: bytes) -> tuple[Key, RowAnswer]:
        try:
            value = self._value(number, line)
            return (str(value["plan"]), int(value["row"])), RowAnswer.from_json(value)
        except codec.DAMAGED as error:
            raise StoreError(f"{self.path}:{number}: no row: {error}", hint="remove it, or --fresh") from error

    def _value(self, number: int, line: bytes) -> dict[str, Any]:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise StoreError(f"{self.path}:{number}: not JSON: {error}", hint="remove it, or --fresh") from error
        if not isinstance(value, dict):
            raise StoreError(f"{self.path}:{number}: no row", hint="remove it, or --fresh")
        return value

    def _put(self, value: Mapping[str, Any]) -> None:
        assert self._file is not None
        try:
            self._file.write(codec.dumps(value).encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise StoreError(f"cannot write {self.path}: {error.strerror}", hint="free some space") from error


def refuse_other(path: str, kept: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """StoreError where rows that were kept do not compare with those of today, with what differs."""
    plain = json.loads(codec.dumps(now))
    hint = "give another -o, or --fresh to start over"
    if not plain.keys() <= kept.keys():
        raise StoreError(f"{path} was not recorded by `autosched record` of this version", hint=hint)
    odd = [name for name in plain if kept[name] != plain[name]]
    if not odd:
        return
    if "program" in odd:
        odd = ["program"]  # what follows from it need not be said
    said = "; ".join(_WORDS.get(n, f"{n} {codec.dumps(kept[n])}, and not {codec.dumps(plain[n])}") for n in odd)
    raise StoreError(f"{path} has rows of {said}", hint=hint)


def answers_of(recording: RecordedSpace, plans: Mapping[str, PlanEntry]) -> dict[Key, RowAnswer]:
    """The rows of a recording of these very plans."""
    found: dict[Key, RowAnswer] = {}
    for recorded in recording.plans:
        space = plans[recorded.name].plan.space
        ids = space.ids({d.name: recorded.indices[:, i] for i, d in enumerate(recorded.decisions)})
        repeats = recorded.repeats if len(recorded.repeats) else np.zeros(len(recorded), np.int32)
        for place, row in enumerate(ids.tolist()):
            cost = float(recorded.cost_s[place])
            answer = RowAnswer(recorded.measurement(place), cost, int(repeats[place]))
            found[recorded.name, row] = answer
    return found
