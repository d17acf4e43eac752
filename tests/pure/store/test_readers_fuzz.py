"""Mutated inputs of every reader: each is accepted, or refused with an AutoschedError, and never anything else."""

from __future__ import annotations

import gzip
import json
import random
import re
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
from support.paths import ROOT

from autosched.cli.inputs import defines
from autosched.errors import AutoschedError
from autosched.ir import parse, resolve
from autosched.machine.spec import target_from_yaml
from autosched.store.exchange import read_schedule, read_trials, schedule_json, write_trials
from autosched.store.exchanged import read_all, read_any, read_measured
from autosched.store.records import Measurement, StudyRecord, Trial
from autosched.store.sqlite import SqliteStore
from autosched.tensorize.spec.load import load_text
from autosched.tiling.space.space import Space
from autosched.tiling.step import Decision, Step

DATA = ROOT / "tests" / "data"
HOSTILE = (
    "9" * 5000, "0x" + "f" * 5000, "-1", "0", "1e999", "Infinity", "NaN", "null", "true", "[]", "{}", '""', "[" * 3000,
    "{a: [" * 3000, "\0", "\ud800", "\ufeff", "é", "'", '"', "\\", "\n", "\t", "&a", "*a", "!!python/object:os.system",
    "-", ": ", "- ", "#", ",", "(" * 300, "2**70", "1.5", ".inf", "s8", "f16", "max", "lambda: 0",
)  # fmt: skip
OTHERS = {
    "ktt": "ktt_pnpoly_3090_cut.json.gz",
    "autotvm": "autotvm_cut.log",
    "autotvm 0.1": "autotvm_0.1.log",
    "ansor": "ansor_cut.json",
    "bat": "TRIAD/1.csv",
}
"""Files of other tuners that are read only."""
PROGRAM = (
    "def f(A: f32[m, k], B: s8[k], C: f32[m], s: f32, *, m=8, k=16):\n    assume(-4 <= B <= 4)\n    T: f32[m]\n"
    "    for i in range(m):\n        T[i] = 0\n        for p in range(k):\n            if 0 <= i + p - 1 < k:\n"
    "                T[i] += A[i, p] * f32(B[p])\n    for i in range(m):\n        x = max(T[i], 0.0) * s\n"
    "        C[i] = x if i > 2 else exp(x)\n"
)


def mutated(text: str, rng: random.Random) -> str:
    """The text with one to three pieces removed, doubled, exchanged or replaced; numbers and words most of the time."""
    for _ in range(rng.randint(1, 3)):
        words = [(w.start(), w.end()) for w in re.finditer(r"\w+|[^\w\s]|\s+", text)] or [(0, 0)]
        start, end = rng.choice(words)
        piece = text[start:end]
        other = text[slice(*rng.choice(words))]
        put = rng.choice(["", piece * 2, other, rng.choice(HOSTILE), rng.choice(HOSTILE)])
        text = text[:start] + put + text[end:]
    return text


def flipped(data: bytes, rng: random.Random) -> bytes:
    """The bytes with some changed, or cut short."""
    found = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        found[rng.randrange(len(found))] = rng.randrange(256)
    return bytes(found[: rng.randrange(len(found))] if rng.random() < 0.1 else found)


def refused_or_read(action: Callable[[], object]) -> None:
    with suppress(AutoschedError):
        action()


@cache
def _study() -> tuple[StudyRecord, tuple[Trial, ...]]:
    record = StudyRecord(
        "gemm", {"program": "p", "target": "t"}, PROGRAM, "f", "x86-avx2", "cpu", 0, {"effort": "quick"}
    )
    ok = Measurement("ok", 1e-3, (1e-3, 2e-3), 0.1, 0.0, 1e-6, costs_s={"build": 0.2}, extra={"rounds_s": [1.0]})
    failed = Measurement("crash", message="signal 11")
    return record, tuple(
        Trial(n, "plan", n, {"i": n, "pack": "yes"}, ok if n % 2 else failed, 1e-3) for n in range(1, 5)
    )


def _recording() -> str:
    path = DATA / "replay_depthwise.json.gz"
    return gzip.decompress(path.read_bytes()).decode()


def _file(path: Path, text: str) -> Path:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


def _texts(folder: Path) -> dict[str, tuple[str, Callable[[str], object]]]:
    """Reader to a valid text and what reads it."""
    record, trials = _study()
    write_trials(folder / "good.jsonl", record, trials)
    whole = json.loads((DATA / "kernel_tuner" / "convolution_A4000_cut.json").read_text())
    tuner = json.dumps({**whole, "cache": dict(list(whole["cache"].items())[:8])}, indent=1)
    t4 = gzip.decompress((DATA / "kernel_tuner" / "convolution_A4000_cut_T4.json.gz").read_bytes()).decode()
    file = folder / "mutated"
    return {
        "program": (PROGRAM, lambda text: [parse(text).stages, parse(text).inputs]),
        "intrinsics": ((ROOT / "intrinsics/x86/avx_vnni.yaml").read_text(), load_text_named),
        "gpu intrinsics": ((ROOT / "intrinsics/cuda/mma_f64.yaml").read_text(), load_text_named),
        "target": ((ROOT / "targets/x86-avx2.yaml").read_text(), lambda text: target_from_yaml(text, "t.yaml")),
        "accelerator": ((ROOT / "targets/gemmini.yaml").read_text(), lambda text: target_from_yaml(text, "t.yaml")),
        "recording": (_recording(), lambda text: [read_any(_file(file, text)), read_measured(file)]),
        "kernel tuner": (tuner, lambda text: [read_any(_file(file, text)), read_measured(file)]),
        "t4": (t4, lambda text: [read_any(_file(file, text)), read_measured(file)]),
        **{kind: (_other(name), _read_any(file)) for kind, name in OTHERS.items()},
        "trials": ((folder / "good.jsonl").read_text(), lambda text: read_trials(_file(file, text))),
        "schedule": (schedule_json(record, trials[0]), lambda text: read_schedule(_file(file, text))),
        "define": ("m=512 k=1..4096 n=64 a=f16", lambda text: resolve("matmul", defines(text.split(" ")))),
        "einsum": ("mk,kn->mn", resolve),
    }


def _other(name: str) -> str:
    data = (DATA / "other_tuners" / name).read_bytes()
    return (gzip.decompress(data) if name.endswith(".gz") else data).decode()


def _read_any(file: Path) -> Callable[[str], object]:
    return lambda text: [read_all(_file(file, text)), read_measured(file)]


def load_text_named(text: str) -> object:
    return load_text(text, "x.yaml")


NAMES = (
    *OTHERS,
    "program", "intrinsics", "gpu intrinsics", "target", "accelerator", "recording", "kernel tuner", "t4", "trials",
    "schedule", "define", "einsum",
)  # fmt: skip


def _run(name: str, folder: Path, count: int, seed: int) -> None:
    text, read = _texts(folder)[name]
    rng = random.Random(seed)
    for _ in range(count):
        changed = mutated(text, rng)
        refused_or_read(lambda changed=changed: read(changed))  # type: ignore[misc]


@pytest.mark.parametrize("name", NAMES)
def test_mutated_texts(name: str, tmp_path: Path) -> None:
    _run(name, tmp_path, 10, 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_many_mutated_texts(name: str, tmp_path: Path) -> None:
    _run(name, tmp_path, 150, 2)


def _use_store(path: Path, read_only: bool) -> None:
    record, trials = _study()
    with SqliteStore(path, read_only=read_only) as store:
        store.summaries()
        store.last_study()
        for found in store.studies():
            store.trials(found.name)
        if not read_only:
            store.open(record)
            store.append("gemm", trials[0])


def _stores(folder: Path, count: int, seed: int) -> None:
    record, trials = _study()
    good = folder / "good.db"
    with SqliteStore(good) as store:
        store.open(record)
        for trial in trials:
            store.append("gemm", trial)
    data = good.read_bytes()
    rng = random.Random(seed)
    for number in range(count):
        path = folder / f"{number}.db"
        path.write_bytes(flipped(data, rng) if rng.random() < 0.5 else flipped(data[:4096], rng) + data[4096:])
        for read_only in (True, False):
            refused_or_read(lambda path=path, r=read_only: _use_store(path, r))  # type: ignore[misc]


def test_damaged_stores(tmp_path: Path) -> None:
    _stores(tmp_path, 30, 1)


@pytest.mark.slow
def test_many_damaged_stores(tmp_path: Path) -> None:
    _stores(tmp_path, 1000, 2)


_TRIAL = ("number", "round", "plan", "row", "status", "time_s", "schedule", "analytic_s", "predicted_s", "measurement")
_COLUMNS = [
    ("study", "name"),
    ("study", "record"),
    ("study", "key"),
    ("meta", "value"),
    *(("trial", c) for c in _TRIAL),
]


@pytest.mark.slow
@pytest.mark.parametrize(("table", "column"), _COLUMNS)
def test_altered_records(table: str, column: str, tmp_path: Path) -> None:
    record, trials = _study()
    values = [
        None,
        -1,
        1e999,
        b"\xff",
        "x" * 50,
        "{}",
        "[]",
        '{"status": "ok", "time_s": Infinity}',
        "[" * 20_000,
        "9" * 5000,
    ]
    for number, value in enumerate(values):
        path = tmp_path / f"{number}.db"
        with SqliteStore(path) as store:
            store.open(record)
            store.append("gemm", trials[0])
        with sqlite3.connect(path) as db:
            try:
                db.execute(f"UPDATE {table} SET {column} = ?", (value,))
            except sqlite3.IntegrityError:
                continue
        for read_only in (True, False):
            refused_or_read(lambda path=path, r=read_only: _use_store(path, r))  # type: ignore[misc]


def test_rows_in_json() -> None:
    space: Space = _space()
    good = space.to_json(0)
    rng = random.Random(3)
    for _ in range(200):
        changed = mutated(good, rng)
        refused_or_read(lambda changed=changed: space.from_json(changed))  # type: ignore[misc]


def _space() -> Space:
    decisions = (Decision("i", (1, 2, 4)), Decision("pack", (0, 1), ("no", "yes")))
    return Space("small", [Step("s", decisions, ())])
