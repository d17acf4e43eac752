"""The SQLite store: files that are not stores, disks that are full, processes that die."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conformance.store import FAILED, FINAL, OK, RECORD, StoreConformance
from hypothesis import given
from hypothesis import strategies as st
from support.paths import TESTS

from autosched.errors import StoreError
from autosched.store import (
    STATUSES,
    Measurement,
    SqliteStore,
    Store,
    Trial,
    read_schedule,
    read_trials,
    schedule_json,
    write_trials,
)


class TestMemory(StoreConformance):
    def make(self) -> Store:
        return SqliteStore(":memory:")


class TestFile(StoreConformance):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.path = tmp_path / "runs.db"

    def make(self) -> Store:
        return SqliteStore(f"sqlite:///{self.path}")


def test_another_process_sees_it_later(tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "a folder" / "x ?#%.db") as store:
        store.open(RECORD)
        store.append("gemm", OK)
    with SqliteStore(tmp_path / "a folder" / "x ?#%.db") as store:
        assert store.trials("gemm") == [OK]
        assert store.study("gemm") == RECORD
    assert [p.name for p in (tmp_path / "a folder").iterdir()] == ["x ?#%.db"]


def test_two_tuners_of_one_study(tmp_path: Path) -> None:
    """The second trial of a number is refused with what to do."""
    with SqliteStore(tmp_path / "a.db") as store:
        store.open(RECORD)
        store.append(RECORD.name, OK)
        with pytest.raises(StoreError, match="this trial is there already") as raised:
            store.append(RECORD.name, OK)
        assert "another process is tuning the same study" in str(raised.value.hint)


def test_summaries_and_deleting() -> None:
    store = SqliteStore(":memory:")
    store.open(RECORD)
    store.open(replace(RECORD, name="empty"))
    for trial in (OK, FAILED, FINAL, replace(OK, number=3, measurement=Measurement("ok", 9e-4))):
        store.append("gemm", trial)
    found = {s.record.name: (s.done, s.failed, s.best_s) for s in store.summaries()}
    assert found == {"gemm": (3, {"crash": 1}, 9e-4), "empty": (0, {}, None)}
    store.delete("gemm")
    assert [r.name for r in store.studies()] == ["empty"]
    assert store._db.execute("SELECT COUNT(*) FROM trial").fetchone() == (0,)
    with pytest.raises(StoreError, match="no study 'gemm'"):
        store.delete("gemm")


def test_an_unknown_study_names_the_nearest() -> None:
    store = SqliteStore(":memory:")
    store.open(RECORD)
    with pytest.raises(StoreError, match="did you mean 'gemm'"):
        store.trials("gemn")


def test_near_misses_say_which_field_differs() -> None:
    store = SqliteStore(":memory:")
    key = {"program": "p", "target": "zen4", "device": "cpu", "toolchain": "1"}
    store.open(replace(RECORD, name="one", key={**key, "toolchain": "2"}))
    store.open(replace(RECORD, name="two", key={**key, "toolchain": "2", "target": "zen5"}))
    store.open(replace(RECORD, name="far", key={"program": "q", "target": "x", "device": "y", "toolchain": "1"}))
    store.open(replace(RECORD, name="same", key=key))
    misses = store.near_misses(key)
    assert [(m.name, sorted(m.fields)) for m in misses] == [("one", ["toolchain"]), ("two", ["target", "toolchain"])]
    assert str(misses[0]) == "study 'one' differs in toolchain (stored '2', wanted '1')"


# Bad files


@pytest.mark.parametrize("content", [b"this is no database, whatever it may be called\n" * 40, b"\x00" * 5000])
def test_a_file_that_is_no_database(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"cannot open the store in .*notes.txt") as error:
        SqliteStore(path)
    assert error.value.hint
    assert path.read_bytes() == content


def test_a_database_of_something_else(tmp_path: Path) -> None:
    path = tmp_path / "mail.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE letters (x)")
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"something else.*letters"):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_a_newer_store(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with SqliteStore(path) as store:
        store.open(RECORD)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
    db.close()
    with pytest.raises(StoreError, match=r"newer autosched.*store 99; this one reads 1"):
        SqliteStore(path)


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")
    store.open(RECORD)
    store.append("gemm", OK)
    store._db.execute('UPDATE trial SET measurement = \'{"status": "odd"}\'')
    with pytest.raises(StoreError, match=r"damaged record.*odd"):
        store.trials("gemm")


@pytest.mark.parametrize("location", ["", "postgres://host/db", "mysql:///x"])
def test_locations_that_are_no_file(location: str) -> None:
    with pytest.raises(StoreError):
        SqliteStore(location)


def test_a_file_is_made_with_its_folders_when_something_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "runs.db"
    with SqliteStore(path) as store:
        assert store.studies() == []
        assert store.last_study() is None
        assert not (tmp_path / "deep").exists()
        store.open(RECORD)
        store.append("gemm", OK)
        assert path.exists()
    with SqliteStore(path, read_only=True) as store:
        assert store.trials("gemm") == [OK]


def test_a_file_that_somebody_else_makes_meanwhile_is_the_store(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with SqliteStore(path) as late, SqliteStore(path) as early:
        early.open(RECORD)
        early.append("gemm", OK)
        assert late.open(RECORD).name == "gemm"
        assert late.trials("gemm") == [OK]


def test_a_place_that_fails_when_it_is_needed_may_come_right_later(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "folder" / "runs.db")
    (tmp_path / "folder").write_text("in the way")
    with pytest.raises(StoreError, match="cannot create the folder"):
        store.open(RECORD)
    assert store.studies() == []
    (tmp_path / "folder").unlink()
    store.open(RECORD)
    assert [r.name for r in store.studies()] == ["gemm"]
    store.close()


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="folder"):
        SqliteStore(tmp_path)


def test_a_parent_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot create the folder"):
        SqliteStore(tmp_path / "file" / "runs.db")


@contextmanager
def unprivileged_folder() -> Iterator[Path]:
    """A folder of root's that others may read, and this process as one of the others: root may write anywhere."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@contextmanager
def as_nobody() -> Iterator[None]:
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_read_only_file_and_folder() -> None:
    with unprivileged_folder() as folder:
        path = folder / "runs.db"
        with SqliteStore(path) as store:
            store.open(RECORD)
            store.append("gemm", OK)
        path.chmod(0o444)
        folder.chmod(0o555)
        with as_nobody():
            with pytest.raises(StoreError, match="cannot") as error:
                SqliteStore(path)
            assert "writable" in (error.value.hint or "") or "written" in (error.value.hint or "")
            with pytest.raises(StoreError):
                SqliteStore(folder / "new.db")
            with SqliteStore(path, read_only=True) as store:  # looking at results must work all the same
                assert store.trials("gemm") == [OK]
        folder.chmod(0o755)


def test_reading_never_writes(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no store"):
        SqliteStore(tmp_path / "none.db", read_only=True)
    with SqliteStore(tmp_path / "a.db") as store:
        store.open(RECORD)
    with SqliteStore(tmp_path / "a.db", read_only=True) as store, pytest.raises(StoreError, match="readonly"):
        store.open(RECORD)
    assert not (tmp_path / "none.db").exists()


def test_a_full_disk_keeps_what_was_finished(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db")
    store.open(RECORD)
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages + 6}")
    kept = 0

    def fill() -> None:
        nonlocal kept
        for number in range(1, 1000):
            store.append("gemm", replace(FAILED, number=number))
            kept = number

    with pytest.raises(StoreError, match="disk is full") as error:
        fill()
    assert "safe" in (error.value.hint or "")
    assert 0 < kept < 999
    assert len(store.trials("gemm")) == kept
    store._db.execute("PRAGMA max_page_count = 100000")  # someone tidied up
    store.append("gemm", replace(FAILED, number=kept + 1))
    store.close()
    with SqliteStore(tmp_path / "a.db") as again:
        assert len(again.trials("gemm")) == kept + 1


def test_another_process_holds_the_lock(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "a.db", busy_s=0.05)
    store.open(RECORD)
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked") as error:
        store.append("gemm", OK)
    assert "another process" in (error.value.hint or "")
    with pytest.raises(StoreError, match="locked"):
        SqliteStore(tmp_path / "a.db", busy_s=0.05)
    assert store.trials("gemm") == []  # reading goes on
    other.execute("ROLLBACK")
    store.append("gemm", OK)
    assert store.trials("gemm") == [OK]


WRITER = """
import sys
from dataclasses import replace
from conformance.store import OK, RECORD
from autosched.store import SqliteStore
store = SqliteStore(sys.argv[1])
store.open(RECORD)
number = 0
while True:
    number += 1
    store.append("gemm", replace(OK, number=number))
    print(number, flush=True)
"""


def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(TESTS)}
    command = [sys.executable, "-c", WRITER, str(tmp_path / "a.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) >= 40:
                break
        writer.send_signal(signal.SIGKILL)
        acknowledged = max([int(line), *(int(rest) for rest in writer.stdout if rest.endswith("\n"))])
    with SqliteStore(tmp_path / "a.db") as store:
        found = store.trials("gemm")
        assert len(found) >= acknowledged >= 40
        assert found == [replace(OK, number=n) for n in range(1, len(found) + 1)]
        store.append("gemm", replace(OK, number=len(found) + 1))


# Leaving and coming back

finite = st.floats(allow_nan=False, allow_infinity=False)
seconds = st.floats(min_value=1e-9, max_value=1e3)
measurements = st.builds(
    Measurement,
    status=st.sampled_from(STATUSES),
    time_s=st.none() | seconds,
    samples_s=st.lists(seconds, max_size=4).map(tuple),
    spread=st.none() | finite,
    max_abs_error=st.none() | finite,
    tolerance=st.none() | finite,
    message=st.text(),
    kernel_sha=st.none() | st.text(min_size=1),
    costs_s=st.dictionaries(st.text(), finite, max_size=3),
    extra=st.dictionaries(st.text(), st.none() | finite | st.integers() | st.lists(st.text()), max_size=3),
)
trials = st.builds(
    Trial,
    number=st.integers(1, 10**6),
    plan=st.text(),
    row=st.integers(0, 2**63 - 1),
    schedule=st.dictionaries(st.text(), st.integers() | st.text(), max_size=4),
    measurement=measurements,
    analytic_s=st.none() | seconds,
    predicted_s=st.none() | seconds,
    round=st.sampled_from(["search", "final"]),
)


@given(trial=trials)
def test_any_trial_comes_back(trial: Trial) -> None:
    store = SqliteStore(":memory:")
    store.open(RECORD)
    store.append("gemm", trial)
    assert store.trials("gemm") == [trial]
    store.close()


@pytest.mark.slow
@given(some=st.lists(trials, max_size=3))
def test_json_lines_come_back(some: list[Trial]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        assert write_trials(path, RECORD, some) == len(some)
        assert read_trials(path) == (RECORD, some)


def test_a_schedule_comes_back(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(schedule_json(RECORD, OK))
    assert read_schedule(tmp_path / "s.json") == (RECORD.key, OK)
    assert json.loads((tmp_path / "s.json").read_text())["schema"] == "autosched/schedule/1"


def test_numpy_numbers_and_what_is_not_finite_are_plain_json(tmp_path: Path) -> None:
    odd = Measurement("ok", 1.0, extra={"a": np.int64(3), "b": np.array([1.5]), "c": float("nan"), "d": Path("x")})
    write_trials(tmp_path / "t.jsonl", RECORD, [replace(OK, measurement=odd)])
    (_, [trial]) = read_trials(tmp_path / "t.jsonl")
    assert trial.measurement.extra == {"a": 3, "b": [1.5], "c": None, "d": "x"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("{}\n", "t.jsonl:1:1.*schema None"),
        ("no json\n", "t.jsonl:1:1"),
        ("[1]\n", "t.jsonl:1:1.*schema"),
    ],
)
def test_files_that_hold_no_trials(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "t.jsonl").write_text(text)
    with pytest.raises(StoreError, match=says):
        read_trials(tmp_path / "t.jsonl")


@pytest.mark.parametrize("line", ["{", "3", '{"number": 1}', '{"number": 1, "measurement": {"status": "odd"}}'])
def test_a_bad_line_is_named(tmp_path: Path, line: str) -> None:
    write_trials(tmp_path / "t.jsonl", RECORD, [OK])
    with (tmp_path / "t.jsonl").open("a") as out:
        out.write(line + "\n")
    with pytest.raises(StoreError, match=r"t.jsonl:3:1"):
        read_trials(tmp_path / "t.jsonl")


def test_files_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot read"):
        read_trials(tmp_path / "none")
    with pytest.raises(StoreError, match="cannot write"):
        write_trials(tmp_path / "none" / "t", RECORD, [])
    (tmp_path / "b").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StoreError, match="not UTF-8 text"):
        read_schedule(tmp_path / "b")
    (tmp_path / "c").write_text("{}")
    with pytest.raises(StoreError, match="not an exported schedule"):
        read_schedule(tmp_path / "c")


@pytest.mark.parametrize("value", [None, True, 1.5, [1]])
def test_a_schedule_has_whole_numbers_and_labels(value: object, tmp_path: Path) -> None:
    data = json.loads(schedule_json(RECORD, OK))
    data["trial"]["schedule"]["reg_i"] = value
    (tmp_path / "s.json").write_text(json.dumps(data))
    with pytest.raises(StoreError, match=r"reg_i is .*whole numbers and labels"):
        read_schedule(tmp_path / "s.json")


def test_a_message_of_undecodable_bytes_is_kept() -> None:
    store = SqliteStore(":memory:")
    store.open(RECORD)
    trial = replace(FAILED, measurement=Measurement("crash", message=b"\x80 said".decode("utf-8", "surrogateescape")))
    store.append("gemm", trial)
    assert store.trials("gemm") == [trial]


def test_what_was_worked_out_is_kept_with_its_study(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db", most_kept=2)
    assert store.kept("gemm", "a") is None  # a store of before has no such table
    with pytest.raises(StoreError, match="no study"):
        store.keep("gemm", "a", b"1")
    for name in ("gemm", "x", "y"):
        store.open(replace(RECORD, name=name))
        store.keep(name, "a", b"1")
    assert [store.kept(name, "a") for name in ("gemm", "x", "y")] == [None, b"1", b"1"]  # the oldest makes room
    store.keep("x", "b", b"2")
    assert (store.kept("x", "a"), store.kept("x", "b")) == (None, b"2")
    store.open(replace(RECORD, name="x"), fresh=True)
    assert store.kept("x", "b") is None
    assert store._db.execute("SELECT COUNT(*) FROM kept").fetchone() == (1,)
