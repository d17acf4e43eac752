"""Inputs that are large, deep or of the wrong kind: a clear error, soon, and little memory."""

from __future__ import annotations

import gzip
import json
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autosched.cli.inputs import intrinsic_paths
from autosched.errors import AutoschedError, ProgramError, SpecError, StoreError, UsageError
from autosched.ir import load, parse, resolve
from autosched.ir.parser.statements import MAX_STATEMENTS
from autosched.machine.catalogue import load_target
from autosched.machine.spec import target_from_yaml
from autosched.store.exchange import read_schedule, read_trials
from autosched.store.exchanged import read_any
from autosched.store.json_file import read_json
from autosched.store.records import Measurement, StudyRecord, Trial
from autosched.store.sqlite import SqliteStore, _columns
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tensorize.spec.load import load_text
from autosched.yaml_lines import parse_yaml

HEAD = "def f(A: f32[m], C: f32[m], *, m=8):\n    for i in range(m):\n"
RECORD = StudyRecord("gemm", {"program": "p"}, "p", "f", "t", "cpu", 0)
TRIAL = Trial(1, "plan", 0, {"i": 1}, Measurement("ok", 1e-3))
WAIT_S = 20  # a hang, not a timing


def soon(action: Callable[[], object]) -> AutoschedError | None:
    """The error, if there is one. Fails where the action takes long."""
    before = time.monotonic()
    try:
        action()
        found = None
    except AutoschedError as error:
        found = error
    assert time.monotonic() - before < WAIT_S
    return found


# Programs


def _lines(of: Callable[[int], str], count: int) -> str:
    return "".join(of(k) for k in range(count))


MANY: dict[str, Callable[[int], str]] = {
    "statements": lambda n: HEAD + _lines(lambda k: f"        C[i] = A[i] * {k}\n", n),
    "locals": lambda n: HEAD + _lines(lambda k: f"        x{k} = A[i] * {k}\n", n) + "        C[i] = 0\n",
    "guards": lambda n: HEAD + _lines(lambda k: f"        if i < {k}:\n            C[i] = A[i]\n", n // 2),
    "loops of one name": lambda n: (
        "def f(C: f32[m], *, m=8):\n" + "    for i in range(m):\n        C[i] = 0\n" * (n // 2)
    ),
    "intermediates": lambda n: (
        "def f(C: f32[m], *, m=8):\n"
        + _lines(lambda k: f"    t{k}: f32[m]\n    for i in range(m):\n        t{k}[i] = 0\n", n // 3)
        + "    for i in range(m):\n        C[i] = 0\n"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", MANY)
def test_many_statements(kind: str) -> None:
    found = soon(lambda: parse(MANY[kind](10_000)).inputs)
    assert found is not None
    assert "more than 4,000 statements" in found.message
    assert found.location is not None


@pytest.mark.slow
@pytest.mark.parametrize("kind", MANY)
def test_statements_within_the_limit_take_seconds(kind: str) -> None:
    assert soon(lambda: parse(MANY[kind](MAX_STATEMENTS - 10)).inputs) is None


def test_what_expands_is_limited() -> None:
    big = "        x = " + " + ".join(["A[i]"] * 90) + "\n"
    assert soon(lambda: parse(HEAD + big + "        C[i] = x + x + x\n" * 3000)) is not None
    many = ", ".join(f"i{k}" for k in range(40))
    deep = f"def f(C: f32[1]):\n    for {many} in grid({', '.join(['1'] * 40)}):\n        C[i0] = 0\n"
    with pytest.raises(ProgramError, match="more than 32 loops"):
        parse(deep)
    with pytest.raises(ProgramError, match="more than 32 dimensions"):
        parse(f"def f(C: f32[{', '.join(['1'] * 40)}]):\n    C[{', '.join(['0'] * 40)}] = 0\n")
    with pytest.raises(ProgramError, match="more than 500 parameters"):
        parse(f"def f(C: f32[1], *, {', '.join(f'p{k}=1' for k in range(600))}):\n    C[0] = 0\n")


ODD: dict[str, Any] = {
    "large": 10**5000, "negative": -(10**5000), "range": (0, 10**5000), "hexadecimal": "0x" + "f" * 5000,
    "digits": "9" * 5000, "bytes": b"8", "none": None, "float": 1.5, "three": (1, 2, 3),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_sizes(name: str) -> None:
    sizes = {"m": ODD[name]}
    for read in (lambda: parse(HEAD + "        C[i] = 0\n", sizes=sizes), lambda: resolve("matmul", sizes)):
        found = soon(read)
        assert name == "none" or found is not None
        assert len(str(found)) < 500


def test_odd_texts(tmp_path: Path) -> None:
    huge = "0x" + "f" * 5000
    for line in (f"C[i] = {huge}", f"C[{huge}] = 0", f"C[i] = A[i + {huge}]"):
        assert isinstance(soon(lambda line=line: parse(HEAD + "        " + line + "\n")), AutoschedError)
    assert isinstance(soon(lambda: parse(f"def f(C: f32[m], *, m={huge}):\n    C[0] = 0\n")), AutoschedError)
    for kind in (b"def f(C: f32[1]):\n    C[0] = 0\n", None, 5):
        with pytest.raises(ProgramError, match="a program is a text"):
            parse(kind)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="larger than"):
        load(_sparse(tmp_path / "large.py", 1 << 33))


def _sparse(path: Path, size: int) -> Path:
    with path.open("wb") as file:
        file.truncate(size)
    return path


# YAML


@pytest.mark.parametrize("piece", ["[", "{a: ", "- ", "[a: ", "? ", "[[{a: "])
@pytest.mark.parametrize(
    "read", [lambda t: parse_yaml(t, "x.yaml"), load_text, lambda t: target_from_yaml(t, "t.yaml")]
)
def test_deep_yaml(piece: str, read: Callable[[str], object]) -> None:
    found = soon(lambda: read(piece * 100_000))
    assert isinstance(found, SpecError)
    assert found.location is not None
    assert "nested deeper than 64 levels" in found.message


def test_odd_yaml_files(tmp_path: Path) -> None:
    loop = tmp_path / "loop.yaml"
    loop.symlink_to(loop)
    for read in (
        lambda: Catalogue().with_paths([loop]),
        lambda: load_target(loop),
        lambda: Catalogue().with_paths(intrinsic_paths([str(loop)])),
        lambda: Catalogue().with_paths([tmp_path]),
        lambda: Catalogue().with_paths([_sparse(tmp_path / "large.yaml", 1 << 33)]),
        lambda: load_target(tmp_path / "large.yaml"),
        lambda: load_target(tmp_path),
        lambda: load_target("a\0b.yaml"),
        lambda: Catalogue().with_paths(["a\0b.yaml"]),
        lambda: parse_yaml(b"a: 1", "x.yaml"),  # type: ignore[arg-type]
    ):
        assert isinstance(soon(read), AutoschedError)


# JSON


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b" " * (64 << 20)))
    with pytest.raises(StoreError, match="unpacks to more than 1,048,576 bytes"):
        read_json(path, most_bytes=1 << 20)


DEEP = ["[" * 100_000, '{"schema":' * 50_000, '{"schema": ' + "9" * 5000 + "}", "9" * 5000, "", "\0"]


@pytest.mark.parametrize("text", DEEP, ids=range(len(DEEP)))
def test_odd_json(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    for read in (read_any, read_trials, read_schedule):
        assert isinstance(soon(lambda read=read: read(path)), StoreError)


@pytest.mark.parametrize("name", ["time_s", "spread", "samples_s", "costs_s"])
@pytest.mark.parametrize("value", ["Infinity", "-1e999", "NaN", '"text"', "true", "[[]]", "{}", '{"build": Infinity}'])
def test_odd_trials(name: str, value: str, tmp_path: Path) -> None:
    from autosched.store.exchange import write_trials

    path = tmp_path / "trials.jsonl"
    write_trials(path, RECORD, [TRIAL])
    first, second = path.read_text().splitlines()
    trial = json.loads(second)
    trial["measurement"][name] = "HERE"
    path.write_text(first + "\n" + json.dumps(trial).replace('"HERE"', value) + "\n")
    if (name, value) in (("costs_s", "{}"), ("samples_s", "{}")):
        read_trials(path)  # nothing, spelt otherwise
        return
    found = soon(lambda: read_trials(path))
    assert isinstance(found, StoreError)
    assert found.location is not None
    assert found.location.line == 2


# Stores


def _altered(path: Path, *statements: str) -> Path:
    with SqliteStore(path) as store:
        store.open(RECORD)
        store.append("gemm", TRIAL)
    with sqlite3.connect(path) as db:
        for statement in statements:
            db.execute(statement)
    return path


@pytest.mark.parametrize("version", ["0", "-1", "", "1.5", "²", "9" * 5000, "x"])
def test_versions_that_never_were(version: str, tmp_path: Path) -> None:
    path = _altered(tmp_path / "s.db", f"UPDATE meta SET value = '{version}' WHERE key = 'schema_version'")
    for read_only in (True, False):
        with pytest.raises(StoreError, match="does not say which version"):
            SqliteStore(path, read_only=read_only)


@pytest.mark.parametrize(("table", "column"), [("trial", "time_s"), ("trial", "predicted_s"), ("study", "record")])
def test_missing_columns(table: str, column: str, tmp_path: Path) -> None:
    path = _altered(tmp_path / "s.db", f"ALTER TABLE {table} RENAME COLUMN {column} TO other")
    for read_only in (True, False):
        with pytest.raises(StoreError, match=f"the table {table} of .* lacks the column '{column}'") as caught:
            SqliteStore(path, read_only=read_only)
        assert caught.value.hint


def test_columns_are_those_of_a_store(tmp_path: Path) -> None:
    assert set(_columns()) == {"meta", "study", "trial"}
    assert "predicted_s" in _columns()["trial"]


def test_a_damaged_schema(tmp_path: Path) -> None:
    path = _altered(tmp_path / "s.db")
    data = bytearray(path.read_bytes())
    data[data.index(b"CREATE TABLE trial") + 8] = 0x87
    path.write_bytes(data)
    for read_only in (True, False):
        with pytest.raises(StoreError, match="malformed"):
            SqliteStore(path, read_only=read_only)
