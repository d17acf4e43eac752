"""Files of KTT, AutoTVM, Ansor, BAT and of the public hub: what is read of them, and what is refused with a reason."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.paths import TESTS

import autosched
from autosched.errors import StoreError, UsageError
from autosched.search.evaluate.training_rows import RecordedRows
from autosched.store.exchanged import read_all, read_any, read_measured, write_measured
from autosched.store.measured import LEFT_OUT, REPLACED
from autosched.store.records import STATUSES

DATA = TESTS / "data" / "other_tuners"
KTT, AUTOTVM, OLD = DATA / "ktt_pnpoly_3090_cut.json.gz", DATA / "autotvm_cut.log", DATA / "autotvm_0.1.log"
ANSOR, BAT = DATA / "ansor_cut.json", DATA / "TRIAD" / "1.csv"
CACHE, T4 = (DATA.parent / "kernel_tuner" / f"convolution_A4000_cut{end}" for end in (".json", "_T4.json.gz"))


def text(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()


def saved(folder: Path, content: str | bytes, name: str = "file") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def statuses(recording: Any) -> dict[str, int]:
    kinds = [STATUSES[int(s)] for plan in recording.plans for s in plan.status]
    return {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}


# What is read


def test_ktt() -> None:
    """A real file, cut: times are in microseconds there, failures have none."""
    found = read_any(KTT)
    results = json.loads(text(KTT))["Results"]
    assert (found.name, found.device["name"], len(found)) == ("Pnpoly", "NVIDIA GeForce RTX 3090", 38)
    assert [d.name for d in found.plans[0].decisions] == ["BLOCK_SIZE_X", "TILE_SIZE", "BETWEEN_METHOD", "USE_METHOD"]
    assert statuses(found) == {"ok": 32, "crash": 6}
    assert found.best_s == pytest.approx(min(r["TotalDuration"] for r in results if r["Status"] == "Ok") * 1e-6)
    assert found.columns["BLOCK_SIZE_X"][0] == results[0]["Configuration"][1]["Value"]
    first = results[0]["TotalDuration"] + results[0]["TotalOverhead"]
    assert found.plans[0].cost_s[0] == pytest.approx(first * 1e-6)


def test_autotvm() -> None:
    """Each task is a space; factors of splits are numbers; the one that follows from the others is left out."""
    dense, matmul = read_all(AUTOTVM)
    assert dense.name == "dense_pack.x86 128x768 768x768"
    assert dense.device["name"].startswith("llvm")
    assert [d.name for d in dense.plans[0].decisions] == ["tile_y.1", "tile_x.2", "ann", "unroll_kw"]
    assert dense.plans[0].decisions[0].domain == (1, 4, 16)
    assert statuses(dense) == {"ok": 10, "crash": 1, "timeout": 1}
    assert dense.plans[0].repeats.tolist()[0] == 2
    assert dense.best_s == pytest.approx(np.median([1e-4, 1.02e-4]))
    assert matmul.settings[REPLACED] == 1, "measured twice: the last one counts"
    assert matmul.columns["time_s"].max() == pytest.approx(6.9e-5)
    (left,) = dense.settings[LEFT_OUT]
    assert left == "the task conv2d_NCHWc.x86 1x3x224x224 32x3x3x3, of which no trial came out right"
    with pytest.raises(StoreError, match="holds 2 recordings, and one is wanted"):
        read_any(AUTOTVM)


def test_older_autotvm() -> None:
    found = read_any(OLD)
    assert [d.name for d in found.plans[0].decisions] == ["tile_f.1", "auto_unroll_max_step"]
    assert (len(found), statuses(found)) == (12, {"ok": 12})


def test_ansor() -> None:
    """A sketch is a plan: in it all rows have the same decisions."""
    found = read_any(ANSOR)
    assert found.name.startswith("conv2d_layer 1 7 7 512")
    assert [(p.name, len(p)) for p in found.plans] == [("sketch 1", 12), ("sketch 2", 6)]
    assert [d.name for d in found.plans[0].decisions] == ["2.SP.1", "2.SP.2", "2.SP.3", "9.PR"]
    assert [d.domain for d in found.plans[1].decisions] == [(1, 2), (1, 2, 8), (2, 8, 64), (0, 512)]
    assert statuses(found) == {"ok": 17, "timeout": 1}
    assert found.complete
    table = autosched.simulate(found, ["random", "genetic"], trials=8, repeats=3)
    assert table.best_s == found.best_s


def test_bat() -> None:
    """Times are in seconds there; 10,000 stands for none."""
    found = read_any(BAT)
    assert (found.name, len(found)) == ("TRIAD", 24)
    assert [d.name for d in found.plans[0].decisions] == ["BLOCK_SIZE", "WORK_PER_THREAD", "LOOP_UNROLL_TRIAD"]
    assert statuses(found) == {"ok": 21, "build": 1, "refused": 1, "crash": 1}
    assert found.best_s == pytest.approx(1.52e-5)
    assert found.plans[0].repeats.max() == 3
    assert "OUT_OF_RESOURCES" in "".join(found.plans[0].messages.values())


def test_a_file_of_the_hub_is_named_by_its_place(tmp_path: Path) -> None:
    path = saved(tmp_path, T4.read_bytes(), "cachefiles/convolution_milo/A4000_T4.json.gz")
    found = read_any(path)
    assert (found.name, found.device["name"]) == ("convolution_milo", "A4000")
    assert read_any(T4).name == "convolution_A4000_cut_T4"


def test_a_time_under_another_name(tmp_path: Path) -> None:
    """As KTT's own script converts its results to T4."""
    value = json.loads(text(T4))
    for result in value["results"]:
        result["objectives"] = ["TotalDuration"]
        for measurement in result["measurements"]:
            measurement |= {"name": "TotalDuration", "unit": "Milliseconds"}
    found = read_any(saved(tmp_path, json.dumps(value)))
    assert found.best_s == read_any(T4).best_s


@pytest.mark.parametrize("path", [KTT, OLD, ANSOR, BAT])
def test_all_can_be_gzipped_and_exported(tmp_path: Path, path: Path) -> None:
    before = read_any(saved(tmp_path, gzip.compress(text(path).encode()), f"{path.parent.name}/{path.name}.gz"))
    assert len(before) == len(read_any(path))
    write_measured(tmp_path / "out.json", read_measured(path), "kernel-tuner")
    after = read_any(tmp_path / "out.json")
    assert (len(after), after.best_s) == (len(before), pytest.approx(before.best_s))


# What is refused


def lines(path: Path, change: Callable[[dict[str, Any]], object], at: int = 1) -> str:
    found = path.read_text().splitlines()
    value = json.loads(found[at])
    change(value)
    found[at] = json.dumps(value)
    return "\n".join(found) + "\n"


def ktt(change: Callable[[dict[str, Any]], object]) -> str:
    value = json.loads(text(KTT))
    change(value)
    return json.dumps(value)


def results(**fields: Any) -> Callable[[dict[str, Any]], object]:
    return lambda value: [r.update(fields) for r in value["Results"]]


WRONG: dict[str, tuple[str, str]] = {
    "ktt cut short": (text(KTT)[:5000], "cut short"),
    "ktt in XML": ("<?xml version='1.0'?><TuningData/>", "OutputFormat::JSON"),
    "ktt of no unit": (ktt(lambda v: v["Metadata"].pop("TimeUnit")), "unknown unit of time None"),
    "ktt of a list for a unit": (ktt(lambda v: v["Metadata"].update(TimeUnit=["ms"])), "unknown unit of time"),
    "ktt of a number for a name": (
        ktt(lambda v: v["Results"][3]["Configuration"][0].update(Name=7)), "7 names no parameter"
    ),
    "ktt without a name": (
        ktt(lambda v: v["Results"][0]["Configuration"][0].update(Name=None)), "None names no parameter"
    ),
    "ktt of half a character": (
        ktt(lambda v: v["Results"][3]["Configuration"][0].update(Name="\ud800")), r"'\\ud800' names no parameter"
    ),
    "ktt of another status": (ktt(results(Status="Fine")), "result 1: status 'Fine'"),
    "ktt without times": (ktt(results(TotalDuration=0)), "result 1: TotalDuration 0 is not above 0"),
    "ktt with a text": (ktt(results(TotalDuration="quick")), "result 1: 'quick' is not a finite number"),
    "ktt of all failures": (ktt(results(Status="CompilationFailed")), "none of the 38 configurations"),
    "ktt of no results": (ktt(lambda v: v.update(Results=[])), "not empty"),
    "ktt of other parameters": (ktt(lambda v: v["Results"][4]["Configuration"].pop()), "configuration 5 differs"),
    "ktt with a parameter twice": (
        ktt(lambda v: v["Results"][2]["Configuration"].append(v["Results"][2]["Configuration"][0])), "result 3: a param"
    ),
    "autotvm cut short": (AUTOTVM.read_text()[:-40], "line 18 ends in the middle"),
    "autotvm of one line, cut": (AUTOTVM.read_text()[:100], "cut short"),
    "autotvm with another line": (AUTOTVM.read_text() + "gASVKA==\n", r":19: not JSON"),
    "autotvm of another version": (lines(AUTOTVM, lambda v: v.update(version=0.9)), ":2: a log of AutoTVM '0.9'"),
    "autotvm without knobs": (lines(AUTOTVM, lambda v: v.pop("config")), ":2: 'config' is missing"),
    "autotvm of another knob": (
        lines(AUTOTVM, lambda v: v["config"]["entity"][0].__setitem__(1, "zz")), ":2: the knob tile_y is of kind 'zz'"
    ),
    "autotvm with a knob less": (lines(AUTOTVM, lambda v: v["config"]["entity"].pop()), "configuration 2 differs"),
    "autotvm of another error": (lines(AUTOTVM, lambda v: v["result"].__setitem__(1, 77)), ":2: error 77 is none"),
    "autotvm of no time": (lines(AUTOTVM, lambda v: v["result"].__setitem__(0, [])), ":2: a trial without an error"),
    "autotvm of all failures": (
        AUTOTVM.read_text().splitlines()[-1] + "\n", "none of the 1 trials of 1 tasks came out right"
    ),
    "ansor of another version": (lines(ANSOR, lambda v: v.update(v="v9.9")), ":2: a log of the auto-scheduler 'v9.9'"),
    "ansor without steps": (lines(ANSOR, lambda v: v["i"].pop()), ":2: "),
    "ansor with a text": (lines(ANSOR, lambda v: v["i"][1][1][1].__setitem__(4, ["x"])), ':2: the factor "x"'),
    "lines of something else": ('{"a": 1}\n{"a": 2}\n', "no log of AutoTVM"),
    "bat cut short": (BAT.read_text()[:-90], ":25: it does not have 16 values"),
    "bat without times": (BAT.read_text().replace("objective", "objectif", 1).replace("error", "objective", 1), ":2: "),
    "bat with a text": (BAT.read_text().replace(",2.368e-05,", ",quick,"), "could not convert"),
    "bat of deep runtimes": (
        re.sub(r'"\[[^]]*\]"', '"' + "[" * 5000 + '"', BAT.read_text(), count=1), ":2: the runtimes"
    ),
    "bat of endless runtimes": (
        re.sub(r'"\[[^]]*\]"', '"[1e308, 1e308]"', BAT.read_text(), count=1), ":2: 'inf' is not a finite number"
    ),
    "bat of no rows": (BAT.read_text().partition("\n")[0] + "\n", "no configurations"),
    "bat of all failures": (BAT.read_text().replace(",Correct,", ",RuntimeError,"), "none of the 24"),
    "a description of a space": ('{"General": {}, "ConfigurationSpace": {}}', "describes a space"),
    "an archive": ("PK\x03\x04...", "is a zip archive"),
    "a cache of a score": (
        json.dumps({"tune_params_keys": ["a"], "objective": "score", "cache": {"1": {"a": 1, "score": 2}}}),
        "objective 'score'",
    ),
    "results of a score": (
        text(T4).replace('["time"]', '["score"]').replace('"name": "time"', '"name": "score"'), "its objective is score"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_said(name: str, tmp_path: Path) -> None:
    content, said = WRONG[name]
    path = saved(tmp_path, content)
    with pytest.raises(StoreError, match=said) as error:
        read_all(path)
    assert str(path) in str(error.value) or "configurations" in error.value.message


@pytest.mark.parametrize("path", [KTT, ANSOR, BAT])
def test_constant_times_leave_nothing_to_rank(path: Path, tmp_path: Path) -> None:
    same = {
        KTT: lambda: ktt(results(TotalDuration=5.0)),
        BAT: lambda: re.sub(r",Correct,[^,]+,", ",Correct,1e-05,", BAT.read_text()),
        ANSOR: lambda: "\n".join(
            json.dumps({**v, "r": [[1e-3], 0, 1.0, 1]}) for v in map(json.loads, ANSOR.read_text().splitlines())
        ),
    }[path]()
    with pytest.raises(UsageError, match=r"took .* s, so there is nothing to rank"):
        RecordedRows.of(read_any(saved(tmp_path, same)))


def test_nothing_of_a_file_is_run(tmp_path: Path) -> None:
    """BAT writes lists as texts, and old logs are pickles: neither is evaluated."""
    mark = tmp_path / "mark"
    evil = f"__import__('pathlib').Path('{mark}').touch()"
    table = BAT.read_text().replace('"[2.7848e-05', f'"[{evil}')
    for content in (table, lines(AUTOTVM, lambda v: v["config"]["entity"][0].__setitem__(2, evil))):
        with pytest.raises(StoreError):
            read_all(saved(tmp_path, content))
    assert not mark.exists()
