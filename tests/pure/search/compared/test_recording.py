"""Recording on a device that builds ahead and times in turn, as a GPU does: here one that makes its times up."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.plug_ins import PlugIn

import autosched
from autosched.device.protocol import Build
from autosched.errors import StoreError
from autosched.search.evaluate.recorder import RowDone
from autosched.search.evaluate.recording import drawn_evenly, record, record_to
from autosched.search.evaluate.row_answer import without_folders
from autosched.search.evaluate.unfinished import SUFFIX
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import prepare
from autosched.store.records import Measurement
from autosched.store.replay_file import read_replay
from autosched.tiling.candidate import Candidate


class Card:
    """Every seventh row does not compile, every eleventh ends the worker; others take longer the larger their number.
    A race gives half of that."""

    built: list[str] = []

    def __init__(self, program: Any = None, target: Any = None, **options: Any) -> None:
        self.options = options

    def describe(self) -> dict[str, Any]:
        return {"name": "mine", "kind": "made up", "card": "one"}

    def build(self, candidate: Candidate) -> Build:
        return next(self.builds([candidate]))

    def builds(self, candidates: Sequence[Candidate]) -> Iterator[Build]:
        for candidate in candidates:
            self.built.append(candidate.key)
            error = "/tmp/autosched-x/kernel.cu(3): error" if candidate.row % 7 == 1 else None
            yield Build(candidate, "code", error, seconds=0.5)

    def measure(self, build: Build, repeats: str = "search") -> Measurement:
        if build.candidate.row % 11 == 2:
            raise OSError("cannot open /home/someone/file.bin")
        time_s = 1e-6 * (build.candidate.row + 1)
        return Measurement("ok", time_s, (time_s,) * 5, 0.1, costs_s={"time": 0.25})

    def measure_interleaved(self, builds: Sequence[Build], rounds: int) -> list[Measurement]:
        return [Measurement("ok", t, (t,) * rounds, 0.01) for t in (5e-7 * (b.candidate.row + 1) for b in builds)]

    def close(self) -> None:
        pass


@pytest.fixture
def request_of(plug_in: PlugIn) -> TuneRequest:
    plug_in("autosched.devices", Card)
    Card.built.clear()
    program = autosched.workload("matmul", m=8, n=16, k=16, a="u8", b="s8")
    return TuneRequest(program, autosched.target("x86-avx512"), device="mine", only=("x86/vpdpbusd.*",), seed=2)


def test_what_a_row_does_is_its_outcome(request_of: TuneRequest) -> None:
    found = record(request_of, 60)
    columns = found.columns
    assert len(found) == 60
    assert set(columns["status"]) == {"ok", "build", "crash"}
    said = {text for plan in found.plans for text in plan.messages.values()}
    assert said == {"kernel.cu(3): error", "OSError: cannot open file.bin"}, "and not where these lie"
    right = columns["status"] == "ok"
    assert (columns["cost_s"][right] == 0.75).all()
    raced = columns["repeats"] == 45
    assert raced.any()
    assert set(columns["repeats"][right]) == {5, 45}
    assert columns["time_s"][raced].max() <= 1.5 * found.best_s, "the fastest again, at the pace of the others"
    noise = found.settings["noise"]
    assert noise["again"]["off"] == [0.0, 0.0, 0.0]
    assert noise["repeats"][1] in (5.0, 45.0)


def test_rows_are_kept_as_they_come(request_of: TuneRequest, tmp_path: Path) -> None:
    """An error that every row would meet ends the run, and what was measured stays."""
    path = tmp_path / "found.json.gz"

    def full(done: RowDone) -> None:
        if done.done == 10:
            raise StoreError("the disk is full")

    with pytest.raises(StoreError, match="disk is full"):
        record_to(path, request_of, 30, on_row=full)
    assert not path.exists()
    part = path.with_name(path.name + SUFFIX)
    assert part.read_bytes().count(b"\n") == 11
    Card.built.clear()
    done = record_to(path, request_of, 30)
    assert (done.measured, len(done.recording), done.ended) == (20, 30, "done")
    assert not part.exists()
    once = record(request_of, 30)
    for a, b in zip(read_replay(path).plans, once.plans, strict=True):
        assert (a.indices == b.indices).all()
        assert np.allclose(a.time_s, b.time_s, equal_nan=True)
    before = path.read_bytes()
    assert record_to(path, request_of, 30).measured == 0
    assert path.read_bytes() == before


def test_fewer_rows_are_among_more(request_of: TuneRequest) -> None:
    tuning = prepare(request_of)
    space = tuning.study.space
    few, many = (drawn_evenly(space, n, 5) for n in (20, 90))
    pairs = [set(zip(rows.plan.tolist(), rows.ids.tolist(), strict=True)) for rows in (few, many)]
    assert pairs[0] < pairs[1]
    assert len(set(np.bincount(many.plan).tolist())) == 1


def test_a_recording_that_cannot_be_written_leaves_the_old_one(request_of: TuneRequest, tmp_path: Path) -> None:
    path = tmp_path / "found.json.gz"
    record_to(path, request_of, 5)
    before = path.read_bytes()
    damaged = gzip.decompress(before)[:-40]
    path.write_bytes(damaged)
    with pytest.raises(StoreError, match="cut short"):
        record_to(path, request_of, 8)
    assert path.read_bytes() == damaged


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("/tmp/a-1/k.c:3: error", "k.c:3: error"),
        ("in /home/me/x/y.py and ~/z.py", "in y.py and z.py"),
        (r"C:\Users\me\k.cu is bad", "k.cu is bad"),
        ("2 / 3 a/b 1/2 and/or", "2 / 3 a/b 1/2 and/or"),
        ("f32 != 1e-3/2", "f32 != 1e-3/2"),
    ],
)
def test_messages_say_no_place(text: str, said: str) -> None:
    assert without_folders(text) == said
