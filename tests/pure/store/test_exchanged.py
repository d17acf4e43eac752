"""Files of other tuners: Kernel Tuner caches and T4 results, read, written, and refused with a reason."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.paths import TESTS

from autosched.errors import StoreError, UnknownNameError
from autosched.store.exchanged import FORMATS, read_any, read_measured, write_measured
from autosched.store.measured import ABSENT, PLAN, Measured, of_recording, of_study
from autosched.store.records import Measurement, StudyRecord, Trial

DATA = TESTS / "data" / "kernel_tuner"
CACHE, T4 = DATA / "convolution_A4000_cut.json", DATA / "convolution_A4000_cut_T4.json.gz"
DEPTHWISE = DATA.parent / "replay_depthwise.json.gz"


def cache() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(CACHE.read_text())
    return found


def t4() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(T4.read_bytes()))
    return found


def saved(folder: Path, value: Any) -> Path:
    path = folder / "file.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def test_both_formats_tell_the_same() -> None:
    one, other = read_any(CACHE), read_any(T4)
    assert len(one) == len(other) == 90
    a, b = one.plans[0], other.plans[0]
    assert [d.name for d in a.decisions] == [d.name for d in b.decisions]
    assert (a.indices == b.indices).all()
    assert (a.status == b.status).all()
    np.testing.assert_allclose(a.time_s, b.time_s)
    assert one.best_s == min(v["time"] for v in cache()["cache"].values() if not isinstance(v["time"], str)) / 1e3


def test_what_decides_nothing_is_left_out_and_failures_stay() -> None:
    plan = read_any(CACHE).plans[0]
    assert "filter_height" not in [d.name for d in plan.decisions]
    failed = [plan.measurement(i) for i in np.flatnonzero(~plan.ok)]
    assert {(m.status, m.message) for m in failed} == {("crash", "RuntimeFailedConfig")}
    assert len(failed) == 4


def test_times_are_in_seconds_and_costs_are_all_that_was_spent() -> None:
    entry = next(iter(cache()["cache"].values()))
    plan = read_any(CACHE).plans[0]
    spent = ("compile_time", "verification_time", "benchmark_time", "framework_time", "strategy_time")
    assert plan.time_s[0] == pytest.approx(entry["time"] / 1e3)
    assert plan.cost_s[0] == pytest.approx(sum(entry[key] for key in spent) / 1e3)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("ending", [".json", ".json.gz"])
def test_a_recording_comes_back(tmp_path: Path, kind: str, ending: str) -> None:
    before, path = read_any(CACHE), tmp_path / f"out{ending}"
    write_measured(path, of_recording(before), kind)
    after = read_any(path)
    a, b = before.plans[0], after.plans[0]
    assert a.decisions == b.decisions
    assert (a.indices == b.indices).all()
    assert (a.status == b.status).all()
    np.testing.assert_allclose(a.time_s, b.time_s)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("file", [CACHE, T4])
def test_what_others_wrote_is_passed_on_whole(tmp_path: Path, kind: str, file: Path) -> None:
    """Parameters of one value, samples, and what measuring cost."""
    before = read_measured(file)
    write_measured(tmp_path / "out.json", before, kind)
    after = read_measured(tmp_path / "out.json")
    assert "filter_height" in before.parameters
    assert before.parameters == after.parameters
    for a, b in zip(before.measurements, after.measurements, strict=True):
        np.testing.assert_allclose(b.samples_s, a.samples_s)
        np.testing.assert_allclose(sum(b.costs_s.values()), sum(a.costs_s.values()), rtol=1e-6)
        assert sum(a.costs_s.values()) > 0


@pytest.mark.parametrize("kind", FORMATS)
def test_a_recording_s_costs_are_written(tmp_path: Path, kind: str) -> None:
    recording = read_any(DEPTHWISE)
    write_measured(tmp_path / "out.json", read_measured(DEPTHWISE), kind)
    after = read_any(tmp_path / "out.json")
    known = np.concatenate([p.cost_s for p in recording.plans])
    np.testing.assert_allclose(after.plans[0].cost_s, known, rtol=1e-6)
    assert known.min() > 0


def trial(number: int, plan: str, status: str = "ok", **schedule: int | str) -> Trial:
    time_s = number * 1e-3 if status == "ok" else None
    measurement = Measurement(status, time_s, costs_s={"build": 0.5, "check": 0.1, "time": 0.2})
    return Trial(number, plan, number, schedule, measurement)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_study_of_two_plans_comes_back_as_one_space(tmp_path: Path, kind: str) -> None:
    trials = [trial(1, "p", tile=4, order="mnk"), trial(2, "p", "timeout", tile=8, order="nmk")]
    trials.append(trial(3, "q", unroll=2))
    record = StudyRecord("gemm@native", {}, "def gemm…", "gemm", "native", "cpu", 0)
    write_measured(tmp_path / "s.json", of_study(record, trials), kind)
    found = read_any(tmp_path / "s.json")
    plan = found.plans[0]
    rows = [plan.space().schedule(int(row)).named for row in plan.space().listed]
    assert rows[0] == {PLAN: "p", "tile": "4", "order": "mnk", "unroll": ABSENT}
    assert rows[2] == {PLAN: "q", "tile": ABSENT, "order": ABSENT, "unroll": "2"}
    assert plan.time_s[0] == pytest.approx(1e-3)
    assert plan.cost_s[0] == pytest.approx(0.8)
    assert plan.measurement(1).status == ("timeout" if kind == "t4" else "crash")  # a cache has no word for it
    assert found.name == "gemm"


def test_t4_as_the_schema_has_it(tmp_path: Path) -> None:
    write_measured(tmp_path / "x.json", of_recording(read_any(CACHE)), "t4")
    written = json.loads((tmp_path / "x.json").read_text())
    assert written["schema_version"] == "1.0.0"
    for result in written["results"]:
        assert {"configuration", "times", "invalidity", "correctness", "measurements", "objectives"} <= set(result)
        assert isinstance(result["times"]["compilation_time"], float)
        assert result["invalidity"] in ("timeout", "compile", "runtime", "correctness", "constraints", "correct")
        assert (result["correctness"] == 1) == (result["invalidity"] == "correct")


def test_values_of_any_kind(tmp_path: Path) -> None:
    pairs = [({"a": v}, Measurement("ok", 1.0)) for v in (True, "fast", 2, 0.5, 1)]
    write_measured(tmp_path / "x.json", Measured.of("k", "d", pairs), "t4")
    (decision,) = read_any(tmp_path / "x.json").plans[0].decisions
    assert decision.labels == ("0.5", "1", "True", "2", "fast")


@pytest.mark.parametrize(
    ("values", "domain", "labels"),
    [
        ((7,), None, None),
        ((1, 2**70), (0, 1), ("1", "1180591620717411303424")),
        ((1, "1"), (0, 1), ("1", "'1'")),
    ],
)
def test_spaces_at_the_edge(values: tuple[Any, ...], domain: tuple[int, ...] | None, labels: Any) -> None:
    """One configuration alone, an integer that no column holds, values that read alike."""
    found = Measured.of("k", "d", [({"a": v}, Measurement("ok", 1.0)) for v in values]).recording()
    assert [(d.domain, d.labels) for d in found.plans[0].decisions] == ([] if domain is None else [(domain, labels)])
    space = found.plans[0].space()
    assert space.places(space.sample(5, np.random.default_rng(0))).min() >= 0
    assert len(space.enumerate()) == len(values)


def edited(value: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {k: v for k, v in {**value, **changes}.items() if v is not None}


def first(changes: dict[str, Any]) -> dict[str, Any]:
    """The T4 results, the first of them changed."""
    value = t4()
    value["results"][0] |= changes
    return value


BAD = {
    "another schema": (edited(t4(), schema_version="2.0.0"), "schema '2.0.0'"),
    "no schema": (edited(t4(), schema_version=None), "no schema version"),
    "another schema of a cache": (edited(cache(), schema_version="9.0"), "schema '9.0'"),
    "no keys": (edited(cache(), tune_params_keys=None), "tune_params_keys"),
    "an unknown unit": (edited(t4(), metadata={"timeunit": "weeks"}), "unit of time 'weeks'"),
    "an unknown failure": (first({"invalidity": "cosmic ray"}), "result 1: invalidity 'cosmic ray'"),
    "no configuration": (first({"configuration": {}}), "configuration 2 differs"),
    "a time that is none": (first({"measurements": [{"name": "time", "value": "soon"}]}), "result 1: 'soon' is not"),
    "a time of zero": (first({"measurements": [{"name": "time", "value": 0}]}), "result 1: time 0.0 s"),
    "a list as a value": (first({"configuration": {"block_size_x": [1]}}), r"block_size_x is \[1\]"),
    "no results": (edited(t4(), results=[]), "no configurations"),
    "nothing measured": ({"a": 1}, "no recording, Kernel Tuner cache, T4 or KTT"),
    "a list": ([1], "no recording, Kernel Tuner cache, T4 or KTT"),
    "a cut text": (CACHE.read_text()[:5000], "is cut short"),
    "an unfinished run": (CACHE.read_text().rstrip()[:-2], "is cut short"),
    "no JSON": ('{"cache": what}', "not JSON"),
    "nothing": ("", "is empty"),
    "a time beyond all floats": (first({"measurements": [{"name": "time", "value": 10**400}]}), "not a finite number"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong_is_said(tmp_path: Path, what: str) -> None:
    value, said = BAD[what]
    with pytest.raises(StoreError, match=said) as error:
        read_any(saved(tmp_path, value))
    assert "file.json" in str(error.value)


@pytest.mark.parametrize("keep", [3, 500, -3])
def test_a_gzip_that_is_cut_short(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "file.json.gz"
    path.write_bytes(T4.read_bytes()[:keep])
    with pytest.raises(StoreError, match="cut short"):
        read_any(path)


def test_a_damaged_gzip_and_no_file(tmp_path: Path) -> None:
    data = bytearray(T4.read_bytes())
    data[200:220] = b"\0" * 20
    (tmp_path / "x.gz").write_bytes(bytes(data))
    with pytest.raises(StoreError, match="damaged"):
        read_any(tmp_path / "x.gz")
    with pytest.raises(StoreError, match="cannot read"):
        read_any(tmp_path / "gone.json")
    with pytest.raises(StoreError, match="cannot write"):
        write_measured(tmp_path / "no" / "folder.json", of_recording(read_any(CACHE)), "t4")
    with pytest.raises(UnknownNameError, match="did you mean 't4'"):
        write_measured(tmp_path / "x.json", of_recording(read_any(CACHE)), "t5")
