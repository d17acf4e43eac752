"""What a search space was asked and answered, kept with its study: who continues one need not lay out its plans again.

Answers are columns of numbers by name (`plan 3, rows`, `best`). As bytes they are a line of JSON with the names,
dtypes and lengths, then the columns, all of it compressed behind a digest; what does not read back is not there.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.errors import StoreError
from autosched.search.defer_signals import defer_signals
from autosched.store.protocol import Keeper, Store
from autosched.store.records import StudyRecord
from autosched.tiling.plans.plan import Plan

Column = npt.NDArray[Any]
Answer = tuple[Column, ...]

MOST_BYTES = 1 << 25
"""Bytes of all columns together; answers beyond are worked out again."""
_DTYPES = ("<i8", "<i4", "<f4", "<f8")
_DIGEST = 32
_OPTIONS = ("threads", "objective", "only", "numerics", "target", "certificates", "conditions", "data")
_WORKED_OUT_BY = ("costmodel", "logic", "tiling", "search")


class AnswerCache:
    """The answers of one search space, of `most_bytes` together. `changed`: there are some that were not there at
    first."""

    def __init__(self, answers: Mapping[str, Answer] | None = None, most_bytes: int = MOST_BYTES) -> None:
        self._answers, self._most_bytes = dict(answers or {}), most_bytes
        self._bytes = sum(column.nbytes for answer in self._answers.values() for column in answer)
        self.changed = False

    @property
    def names(self) -> tuple[str, ...]:
        """Of all answers."""
        return tuple(self._answers)

    def find(self, name: str) -> Answer | None:
        """The answer of that name."""
        return self._answers.get(name)

    def put(self, name: str, answer: Answer) -> Answer:
        """Keep an answer in place of the one of that name, as far as there is room: columns of one dimension, which
        become read-only."""
        columns = tuple(np.ascontiguousarray(column) for column in answer)
        size = self._bytes + sum(column.nbytes for column in columns)
        size -= sum(column.nbytes for column in self._answers.get(name, ()))
        if size <= self._most_bytes:
            for column in columns:
                column.flags.writeable = False
            self._answers[name] = columns
            self._bytes = size
            self.changed = True
        return columns

    def answer(self, name: str, work_out: Callable[[], Answer]) -> Answer:
        """The answer of that name, worked out where it is not there."""
        found = self._answers.get(name)
        return self.put(name, work_out()) if found is None else found

    def dumps(self) -> bytes:
        """All answers as bytes, which `loads` reads."""
        head, columns = {}, []
        for name, answer in self._answers.items():
            head[name] = [(column.dtype.newbyteorder("<").str, len(column)) for column in answer]
            columns += [np.asarray(column, column.dtype.newbyteorder("<")).tobytes() for column in answer]
        body = zlib.compress(b"\n".join([json.dumps(head).encode(), b"".join(columns)]), 1)
        return hashlib.sha256(body).digest() + body

    @staticmethod
    def of(store: Store | None, study: str, key: str) -> AnswerCache:
        """What a store keeps with a study under this key; nothing, where it has none, or none that can be read."""
        try:
            return AnswerCache.loads(store.kept(study, key) if isinstance(store, Keeper) else None)
        except StoreError:
            return AnswerCache()

    def keep(self, store: Store | None, study: str, key: str) -> None:
        """Have the store keep it where that is new; a store that cannot goes without."""
        if self.changed and isinstance(store, Keeper):
            with suppress(StoreError), defer_signals():
                store.keep(study, key, self.dumps())
            self.changed = False

    @staticmethod
    def loads(text: bytes | None) -> AnswerCache:
        """What `dumps` wrote; nothing, where it is damaged or absent."""
        try:
            return AnswerCache(_columns(text)) if text else AnswerCache()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, zlib.error):
            return AnswerCache()


def _columns(text: bytes) -> dict[str, Answer]:
    body = text[_DIGEST:]
    if hashlib.sha256(body).digest() != text[:_DIGEST]:
        raise ValueError("damaged")
    unpacked = zlib.decompressobj().decompress(body, 2 * MOST_BYTES)
    head, _, rest = unpacked.partition(b"\n")
    found, at = {}, 0
    for name, columns in json.loads(head).items():
        answer = []
        for dtype, length in columns:
            if dtype not in _DTYPES or not isinstance(length, int) or length < 0:
                raise ValueError("no column of numbers")
            answer.append(np.frombuffer(rest, dtype, length, at))
            at += answer[-1].nbytes
        found[name] = tuple(answer)
    return found


def answers_key(record: StudyRecord, plans: Sequence[Plan], seed: int) -> str:
    """A digest of everything that a space's answers depend on: program, target, plans in their order with their spaces'
    versions, options, and the code that lays out and scores. What the study measures with is none of it."""
    asked = {
        "key": {name: said for name, said in record.key.items() if name != "device"},
        "options": {name: record.settings.get(name) for name in _OPTIONS},
        "plans": [(plan.name, plan.space.version) for plan in plans],
        "seed": seed,
        "code": _code(),
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True, default=str).encode()).hexdigest()


@cache
def _code() -> str:
    """A digest of the modules that work answers out, where their text can be read: a version need not have changed with
    every line."""
    root = Path(__file__).parents[2]
    found = hashlib.sha256()
    for path in sorted(path for folder in _WORKED_OUT_BY for path in (root / folder).rglob("*.py")):
        found.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return found.hexdigest()
