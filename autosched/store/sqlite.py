"""A store in one SQLite file: every trial is one committed row, so whatever ends the process loses nothing finished."""

from __future__ import annotations

import os
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

from autosched.errors import StoreError, nearest
from autosched.json_text import parse_json
from autosched.store import codec
from autosched.store.explain import MEMORY, describe_difference, hint_for, path_of, plain_text
from autosched.store.numbers import finite
from autosched.store.protocol import differing_fields
from autosched.store.ranking import ranked
from autosched.store.records import Measurement, StudyRecord, Trial

SCHEMA_VERSION = 1

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE study (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, key TEXT NOT NULL, record TEXT NOT NULL);
CREATE TABLE trial (
    id INTEGER PRIMARY KEY,
    study_id INTEGER NOT NULL REFERENCES study(id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    round TEXT NOT NULL,
    plan TEXT NOT NULL,
    row INTEGER NOT NULL,
    status TEXT NOT NULL,
    time_s REAL,
    schedule TEXT NOT NULL,
    analytic_s REAL,
    predicted_s REAL,
    measurement TEXT NOT NULL
);
CREATE UNIQUE INDEX trial_number ON trial (study_id, number) WHERE round = 'search';
CREATE INDEX trial_study ON trial (study_id, id);
"""

_KEPT = """CREATE TABLE IF NOT EXISTS kept (
    id INTEGER PRIMARY KEY,
    study_id INTEGER NOT NULL UNIQUE REFERENCES study(id) ON DELETE CASCADE,
    key TEXT NOT NULL,
    body BLOB NOT NULL
)"""
"""What was worked out for a study (`Keeper`); stores of earlier versions get it when they need it."""
MOST_KEPT = 32
"""Studies with which something is kept, those where that changed last: a megabyte or two each."""


@cache
def _columns() -> dict[str, tuple[str, ...]]:
    """The columns of each table of a store."""
    with closing(sqlite3.connect(MEMORY)) as db:
        db.executescript(_TABLES)
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {table: tuple(row[1] for row in db.execute(f"PRAGMA table_info({table})")) for table in tables}


@dataclass(frozen=True)
class StudySummary:
    """A study with counts: finished trials of the search, failed ones by kind, the time of the best in seconds (the
    one that `show` shows)."""

    record: StudyRecord
    done: int
    failed: dict[str, int]
    best_s: float | None


@dataclass(frozen=True)
class NearStudy:
    """A stored study that is nearly the wanted one: `fields` maps a key's field to (stored, wanted)."""

    name: str
    fields: dict[str, tuple[str | None, str | None]]

    def __str__(self) -> str:
        return f"study {self.name!r} differs in " + describe_difference(self.fields)


def _summary(record: StudyRecord, trials: list[Trial]) -> StudySummary:
    searched = [t.measurement.status for t in trials if t.round == "search"]
    failed = Counter(status for status in searched if status != "ok")
    best = next(iter(ranked(trials)), None)
    return StudySummary(record, len(searched), dict(failed), best.measurement.time_s if best else None)


class SqliteStore:
    """`SqliteStore("runs.db")`, `SqliteStore("sqlite:///runs.db")` or `SqliteStore(":memory:")`.

    A file that is not there is made, with its folders, when something is stored. `read_only` opens an existing file
    without ever writing to it, its folder included. `busy_s` is how long to wait for another process that writes.
    Raises StoreError for a file that is no store, cannot be written or is newer.
    """

    def __init__(
        self, location: str | Path, *, read_only: bool = False, busy_s: float = 5.0, most_kept: int = MOST_KEPT
    ) -> None:
        self.path = path_of(location)
        self._read_only, self._most_kept = read_only, most_kept
        self._busy_s, self._to_make = busy_s, False
        new = self.path != MEMORY and not read_only and not Path(self.path).exists()
        if new:
            _refuse_place(Path(self.path))
        self._db = sqlite3.connect(MEMORY, isolation_level=None) if new else self._connect(busy_s)
        try:
            self._prepare()
        except BaseException:
            self._db.close()
            raise
        self._to_make = new

    def open(self, record: StudyRecord, *, fresh: bool = False) -> StudyRecord:
        with self._writing(f"open study {record.name!r}"):
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('last_study', ?)", (record.name,))
            if fresh:
                self._db.execute("DELETE FROM study WHERE name = ?", (record.name,))
            elif self._begun(record.name):
                self._db.execute("INSERT OR REPLACE INTO meta VALUES ('last_begun', ?)", (record.name,))
            found = self._db.execute("SELECT record FROM study WHERE name = ?", (record.name,)).fetchone()
            if found is None:
                self._db.execute(
                    "INSERT INTO study (name, key, record) VALUES (?, ?, ?)",
                    (record.name, codec.dumps(record.key), codec.dumps(codec.study_to_dict(record))),
                )
                return record
        with self._reading(f"open study {record.name!r}"):
            stored = codec.study_from_dict(parse_json(found[0]))
        if differs := differing_fields(stored.key, record.key):
            raise StoreError(
                f"study {record.name!r} in {self.path} holds other results: " + describe_difference(differs),
                hint="give the new study another name, or start over with --fresh (this deletes its trials)",
            )
        return stored

    def append(self, study: str, trial: Trial) -> None:
        with self._writing(f"keep trial {trial.number} of {study!r}"):
            self._db.execute("BEGIN IMMEDIATE")
            if not self._begun(study):
                self._db.execute("INSERT OR REPLACE INTO meta VALUES ('last_begun', ?)", (study,))
            values = (
                self._id_of(study), trial.number, trial.round, trial.plan, trial.row, trial.measurement.status,
                trial.measurement.time_s, codec.dumps(trial.schedule), trial.analytic_s, trial.predicted_s,
                codec.dumps(codec.measurement_to_dict(trial.measurement)),
            )  # fmt: skip
            self._db.execute(
                "INSERT INTO trial (study_id, number, round, plan, row, status, time_s, schedule, analytic_s,"
                " predicted_s, measurement) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                values,
            )

    def trials(self, study: str) -> list[Trial]:
        with self._reading(f"read the trials of {study!r}"):
            rows = self._db.execute(
                "SELECT number, round, plan, row, schedule, analytic_s, predicted_s, measurement FROM trial"
                " WHERE study_id = ? ORDER BY id",
                (self._id_of(study),),
            ).fetchall()
            return [
                codec.trial_from_dict(
                    {
                        "number": number,
                        "round": rnd,
                        "plan": plan,
                        "row": row,
                        "schedule": parse_json(schedule),
                        "analytic_s": a,
                        "predicted_s": p,
                        "measurement": parse_json(body),
                    }
                )
                for number, rnd, plan, row, schedule, a, p, body in rows
            ]

    def keep(self, study: str, key: str, body: bytes) -> None:
        with self._writing(f"keep what was worked out for {study!r}"):
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute(_KEPT)
            number = self._id_of(study)
            self._db.execute("DELETE FROM kept WHERE study_id = ?", (number,))
            self._db.execute("INSERT INTO kept (study_id, key, body) VALUES (?, ?, ?)", (number, key, body))
            oldest = "SELECT id FROM kept ORDER BY id DESC LIMIT -1 OFFSET ?"
            self._db.execute(f"DELETE FROM kept WHERE id IN ({oldest})", (self._most_kept,))

    def kept(self, study: str, key: str) -> bytes | None:
        with self._reading(f"read what was worked out for {study!r}"):
            if not self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'kept'").fetchone():
                return None
            found = self._db.execute(
                "SELECT body FROM kept JOIN study ON study.id = study_id WHERE name = ? AND kept.key = ?", (study, key)
            ).fetchone()
            return found[0] if found is not None and isinstance(found[0], bytes) else None

    def studies(self) -> list[StudyRecord]:
        with self._reading("list the studies"):
            rows = self._db.execute("SELECT record FROM study ORDER BY id").fetchall()
            return [codec.study_from_dict(parse_json(text)) for (text,) in rows]

    def study(self, name: str) -> StudyRecord:
        """The study of that name. Raises StoreError naming the nearest known study."""
        with self._reading(f"read study {name!r}"):
            number = self._id_of(name)
            (text,) = self._db.execute("SELECT record FROM study WHERE id = ?", (number,)).fetchone()
            return codec.study_from_dict(parse_json(text))

    def last_study(self) -> str | None:
        """The name of the study with trials that was opened last; None in a store without trials.

        Stores written before this was kept answer with the study of the last trial."""
        with self._reading("find the last study"):
            for key in ("last_begun", "last_study"):
                if (name := self._meta(key)) is not None and self._begun(name):
                    return name
            found = self._db.execute(
                "SELECT name FROM study JOIN trial ON study_id = study.id ORDER BY trial.id DESC LIMIT 1"
            ).fetchone()
            return None if found is None else str(found[0])

    def last_empty(self) -> str | None:
        """The name of the study that was opened last of all, where it has no trials; else None."""
        with self._reading("find the last study"):
            name = self._meta("last_study")
            known = name is not None and self._db.execute("SELECT 1 FROM study WHERE name = ?", (name,)).fetchone()
            return name if known and name is not None and not self._begun(name) else None

    def summaries(self) -> list[StudySummary]:
        """Every study with its counts and its best time (`store.ranking`), without all that its trials hold."""
        with self._reading("list the studies"):
            mine: dict[str, list[Trial]] = {}
            rows = self._db.execute(
                "SELECT study.name, number, round, plan, row, status, time_s, CASE WHEN json_valid(measurement) THEN"
                " json_extract(measurement, '$.extra.cost') END FROM study JOIN trial ON trial.study_id = study.id"
                " ORDER BY trial.id"
            )
            for name, number, rnd, plan, row, status, time_s, cost in rows:
                time_s = None if time_s is None else finite(time_s)
                extra = {} if cost is None else {"cost": finite(cost)}
                measured = Measurement(status, time_s, extra=extra)
                mine.setdefault(name, []).append(Trial(number, plan, row, {}, measured, round=rnd))
        return [_summary(record, mine.get(record.name, [])) for record in self.studies()]

    def delete(self, study: str) -> None:
        """Remove a study and its trials. Raises StoreError for an unknown study."""
        with self._writing(f"delete study {study!r}"):
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("DELETE FROM study WHERE id = ?", (self._id_of(study),))

    def near_misses(self, key: dict[str, str]) -> list[NearStudy]:
        """Stored studies whose key differs from `key` in at most half of its fields: the three with the fewest such."""
        found = [NearStudy(record.name, differing_fields(record.key, key)) for record in self.studies()]
        close = [miss for miss in found if 0 < len(miss.fields) <= len(key) / 2]
        return sorted(close, key=lambda miss: len(miss.fields))[:3]

    def close(self) -> None:
        """Fold the write-ahead log into the file and let go of it; the store cannot be used afterwards."""
        self._db.close()

    def __enter__(self) -> SqliteStore:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _make(self) -> None:
        """Make the file where it is still to be made."""
        if not self._to_make:
            return
        empty, self._db, self._to_make = self._db, self._connect(self._busy_s), False
        try:
            self._prepare()
        except BaseException:
            self._db.close()
            self._db, self._to_make = empty, True
            raise
        empty.close()

    def _connect(self, busy_s: float) -> sqlite3.Connection:
        if self.path == MEMORY:
            return sqlite3.connect(MEMORY, isolation_level=None)
        path = Path(self.path)
        if path.is_dir():
            raise StoreError(f"{path} is a folder, not a store", hint="name a file, as in --store runs.db")
        if self._read_only and not path.exists():
            raise StoreError(f"there is no store at {path}", hint="tune something first, or give --store another path")
        if not self._read_only and not path.parent.is_dir():
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise _no_folder(path, error.strerror) from error
        where = f"file:{quote(str(path.absolute()))}"
        try:
            if not self._read_only:
                return sqlite3.connect(f"{where}?mode=rwc", uri=True, timeout=busy_s, isolation_level=None)
            try:
                db = sqlite3.connect(f"{where}?mode=ro", uri=True, timeout=busy_s, isolation_level=None)
                db.execute("SELECT COUNT(*) FROM sqlite_master")
            except (sqlite3.OperationalError, UnicodeDecodeError):
                # A file in WAL mode wants an index file beside it even for reading; where the folder cannot be
                # written nobody else writes either, so the file may be read as it is.
                db = sqlite3.connect(f"{where}?mode=ro&immutable=1", uri=True, isolation_level=None)
            return db
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._explained("open the store", error) from error

    def _prepare(self) -> None:
        """Check what the file is; make it a store when it is new and empty."""
        with self._reading("open the store"):
            tables = {name for (name,) in self._db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if tables >= _columns().keys():
                self._check_version()
                self._check_columns()
            elif tables:
                raise StoreError(
                    f"{self.path} is an SQLite database of something else (its tables: {', '.join(sorted(tables))})",
                    hint="give --store another path",
                )
            elif self._read_only:
                raise StoreError(f"{self.path} holds no studies", hint="give --store another path")
        if self._read_only:
            return
        with self._writing("open the store", transaction=False):
            # WAL: a reader never blocks the writer. FULL: a finished trial survives a power cut too, and one fsync a
            # trial is far below the time of one measurement.
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("PRAGMA foreign_keys = ON")
        with self._writing("write to the store"):
            self._db.execute("BEGIN IMMEDIATE")  # also says now, not after the first measurement, that nobody may write
            if not self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
                for statement in _TABLES.split(";\n"):
                    self._db.execute(statement)
                self._db.execute("INSERT INTO meta VALUES ('schema_version', ?)", (str(SCHEMA_VERSION),))
            else:
                self._db.execute("UPDATE meta SET value = value WHERE key = 'schema_version'")

    def _check_version(self) -> None:
        row = self._db.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
        version = int(row[0]) if row and re.fullmatch(r"[0-9]{1,9}", str(row[0])) else 0
        if version < 1:
            raise StoreError(f"{self.path} does not say which version wrote it", hint="give --store another path")
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"{self.path} was written by a newer autosched (store {version}; this one reads {SCHEMA_VERSION})",
                hint="upgrade autosched, or give --store another path",
            )

    def _check_columns(self) -> None:
        for table, wanted in _columns().items():
            found = {row[1] for row in self._db.execute(f"PRAGMA table_info({table})")}
            if missing := [name for name in wanted if name not in found]:
                raise StoreError(
                    f"the table {table} of {self.path} lacks the column {missing[0]!r}",
                    hint="the file was altered, or something else wrote it; give --store another path",
                )

    def _meta(self, key: str) -> str | None:
        found = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if found is None else str(found[0])

    def _begun(self, study: str) -> bool:
        """Whether the study is there and has trials."""
        trials = "SELECT 1 FROM study JOIN trial ON study_id = study.id WHERE name = ? LIMIT 1"
        return self._db.execute(trials, (study,)).fetchone() is not None

    def _id_of(self, study: str) -> int:
        found = self._db.execute("SELECT id FROM study WHERE name = ?", (study,)).fetchone()
        if found is None:
            names = [name for (name,) in self._db.execute("SELECT name FROM study")]
            close = nearest(study, names)
            hint = f"did you mean {close!r}?" if close else "`autosched studies` lists what is there"
            raise StoreError(f"there is no study {study!r} in {self.path}", hint=hint)
        return int(found[0])

    @contextmanager
    def _reading(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._explained(doing, error) from error
        except codec.DAMAGED as error:
            raise StoreError(
                f"cannot {doing} in {self.path}: a damaged record ({error})", hint="give --store another path"
            ) from error

    @contextmanager
    def _writing(self, doing: str, *, transaction: bool = True) -> Iterator[None]:
        """Commit when the block ends, also when it returns early; undo everything when it or the commit fails."""
        self._make()
        try:
            yield
            if transaction:
                self._db.execute("COMMIT")
        except BaseException as error:
            if self._in_transaction():
                self._db.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error | OverflowError | UnicodeDecodeError):
                raise self._explained(doing, error) from error
            raise

    def _in_transaction(self) -> bool:
        try:
            return self._db.in_transaction
        except sqlite3.ProgrammingError:  # closed
            return False

    def _explained(self, doing: str, error: Exception) -> StoreError:
        """SQLite's error with what was tried and what helps."""
        damaged = isinstance(error, UnicodeDecodeError)  # SQLite's message quotes the file's bytes
        said = "database disk image is malformed" if damaged else str(error)
        return StoreError(f"cannot {doing} in {self.path}: {plain_text(said)}", hint=hint_for(said))


def _refuse_place(path: Path) -> None:
    """StoreError where no file could be made at the path, said before anything is measured."""
    there = next((p for p in path.absolute().parents if p.exists()), None)
    if there is None or not there.is_dir():
        raise _no_folder(path, "Not a directory")
    if not os.access(there, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        if there != path.absolute().parent:
            raise _no_folder(path, "Permission denied")
        said = f"cannot open the store in {path}: nothing can be written to its folder"
        raise StoreError(said, hint="give --store another path, or :memory: to keep nothing")


def _no_folder(path: Path, why: str | None) -> StoreError:
    hint = "give --store a path in a folder that you may write, or :memory: to keep nothing"
    return StoreError(f"cannot create the folder {path.parent} for the store: {why}", hint=hint)
