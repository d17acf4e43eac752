"""Stores, recordings, schedules, plug-ins and readers of `--json` from before modules moved into folders (revision
925bea25, which made `tests/data/earlier`) still work."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Cli

EARLIER = Path(__file__).parent.parent / "data" / "earlier"
PROGRAM = ("matmul", "-D", "m=32", "-D", "n=32", "-D", "k=32", "-t", "x86-avx512")
INTRINSIC = "portable/mac.f32.f32.f32.v8"
TUNE = ("tune", *PROGRAM, "-i", INTRINSIC)
STUDY = "matmul-m32-n32-k32-f32@x86-avx512-simulator-8931f6"


@pytest.fixture
def earlier(cli: Cli) -> Cli:
    """The command beside a store of four trials that the earlier revision wrote."""
    store = sqlite3.connect(cli.environment["AUTOSCHED_STORE"])
    store.executescript((EARLIER / "store.sql").read_text(encoding="utf-8"))
    store.close()
    return cli.near()


def test_a_store_is_read_and_continued(earlier: Cli) -> None:
    (study,) = earlier("studies", "--json").json
    assert (study["study"], study["trials"]["done"]) == (STUDY, 4)
    times = [t["measurement"]["time_s"] for t in earlier("trials", STUDY, "--json").json if t["round"] == "search"]
    assert len(times) == 4
    assert f"{STUDY}   trial 2" in earlier("show", STUDY).out
    earlier("export", STUDY, "-o", "gemm.c")
    assert "gemm(" in (earlier.folder / "gemm.c").read_text()
    assert earlier("show", STUDY, "--as", "c").out == (EARLIER / "kernel.c").read_text(encoding="utf-8")
    again = earlier(*TUNE, "-d", "simulator", "-n", 6, "--seed", 0, "--json", "-q").json
    assert (again["study"], again["trials"]["done"], len(earlier("studies", "--json").json)) == (STUDY, 6, 1)
    assert again["best"]["time_s"] <= min(times) * 1.05  # simulated times have 1 % of noise


def test_a_schedule_is_measured_first(cli: Cli) -> None:
    near = cli.near()
    wanted = json.loads((EARLIER / "schedule.json").read_text(encoding="utf-8"))["trial"]
    near(*TUNE, "-d", "simulator", "--schedule", EARLIER / "schedule.json", "-n", 1, "-q")
    first = near("trials", "--json").json[0]
    assert (first["plan"], first["schedule"]) == (wanted["plan"], wanted["schedule"])
    assert first["measurement"]["status"] == "ok"


def test_a_recording_is_searched(cli: Cli) -> None:
    recording = EARLIER / "recording.json.gz"
    rows = json.loads(gzip.decompress(recording.read_bytes()))
    found = cli.near()("tune", *PROGRAM, "-d", f"replay:{recording}", "-n", 40, "-s", "random", "--json", "-q").json
    assert found["best"]["time_s"] == pytest.approx(min(t for t in times_of(rows) if t), rel=1e-6)


def times_of(document: Any) -> list[float]:
    """All that stands below `time_s` in a document."""
    match document:
        case dict():
            own = [t for t in document["time_s"] if t is not None] if isinstance(document.get("time_s"), list) else []
            return own + [t for value in document.values() for t in times_of(value)]
        case list():
            return [t for value in document if isinstance(value, dict) for t in times_of(value)]
        case _:
            return []


@pytest.mark.parametrize(
    "options", [("-s", "shuffled", "-n", 4), ("--cost-model", "scaled", "-n", 12)]
)
def test_plugins_are_found_by_their_entry_points(cli: Cli, options: tuple[object, ...]) -> None:
    package = cli.folder / "site"
    described = package / "earlier_plugins-1.0.dist-info"
    described.mkdir(parents=True)
    (package / "earlier_plugins.py").write_text((EARLIER / "plugins.py.txt").read_text(encoding="utf-8"))
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: earlier-plugins\nVersion: 1.0\n")
    points = {"strategies": "shuffled", "cost_models": "scaled", "devices": "estimate"}
    lines = [f"[autosched.{group}]\n{name} = earlier_plugins:{name.title()}\n" for group, name in points.items()]
    (described / "entry_points.txt").write_text("\n".join(lines))
    found = cli(*TUNE, "-d", "estimate", *options, "--json", "-q", PYTHONPATH=str(package))
    assert found.json["best"]["time_s"] > 0


COMMANDS: dict[str, tuple[object, ...]] = {
    "tune": (*TUNE, "-d", "simulator", "-n", 4, "--seed", 0, "--json", "-q"),
    "show": ("show", STUDY, "--json"),
    "trials": ("trials", STUDY, "--json"),
    "studies": ("studies", "--json"),
    "match": ("match", *PROGRAM, "-i", INTRINSIC, "--json"),
    "export": ("export", STUDY, "-o", "schedule.json", "--json"),
    "targets": ("targets", "show", "x86-avx512", "--json"),
    "intrinsics": ("intrinsics", "show", INTRINSIC, "--json"),
    "doctor": ("doctor", "--json"),
    "compare": ("compare", *TUNE[1:], "-d", "simulator", "-s", "random,clock", "--seeds", 2, "-n", 3, "--json"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_json_has_all_it_had(earlier: Cli, name: str) -> None:
    before = json.loads((EARLIER / "shapes.json").read_text(encoding="utf-8"))[name]
    assert list(missing(before, earlier(*COMMANDS[name]).json)) == []


def missing(shape: Any, value: Any, place: str = "") -> list[str]:
    """Places where a document lacks what a shape has: keys to shapes, a list of the shapes of its elements, or the name
    of a type. Null may have become a value, and a value null."""
    if shape == "null" or value is None:
        return []
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return [f"{place} is no object"]
        gone = [f"{place}.{key}" for key in shape if key not in value]
        return gone + [m for key in shape if key in value for m in missing(shape[key], value[key], f"{place}.{key}")]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{place} is no list"]
        return [] if not shape or not value else _missing_elements(shape, value, place)
    same = {shape} | ({"int", "float"} if shape in ("int", "float") else set())
    return [] if type(value).__name__ in same else [f"{place} is no {shape}"]


def _missing_elements(shapes: list[Any], values: list[Any], place: str) -> list[str]:
    """What the elements lack of the one shape that they come nearest to."""
    return [m for value in values for m in min((missing(s, value, f"{place}[]") for s in shapes), key=len)]


def test_documented_paths_lead_to_what_moved() -> None:
    from autosched.costmodel.analytic import clock as clocks
    from autosched.costmodel.clock import clock
    from autosched.search.evaluate import recording
    from autosched.search.recorded import space_of
    from autosched.search.recorder import record
    from autosched.search.space import recorded
    from autosched.tiling.analysis import dependence
    from autosched.tiling.dependence import analyse
    from autosched.tiling.epilogue import epilogues
    from autosched.tiling.plans import epilogue
    from autosched.tiling.request import request
    from autosched.tiling.space import request as requests

    present = (clocks.clock, recorded.space_of, recording.record, requests.request)
    assert (clock, space_of, record, request) == present
    assert (analyse, epilogues) == (dependence.analyse, epilogue.epilogues)
