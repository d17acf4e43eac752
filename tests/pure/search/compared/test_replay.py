"""Recorded spaces: the device that replays them, their files, and strategies that search them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conformance.device import DeviceConformance
from support.paths import TESTS

import autosched
from autosched.device.protocol import Device
from autosched.device.registry import device as open_device
from autosched.device.replay import ReplayDevice
from autosched.errors import StoreError, UnknownNameError, UsageError
from autosched.search.evaluate.recorder import RowDone, again, rescored
from autosched.search.evaluate.recording import record
from autosched.search.request import TuneRequest
from autosched.search.space.recorded import plans_of, space_of
from autosched.search.tuning.tune import prepare
from autosched.store.recorded_space import RecordedPlan, RecordedSpace
from autosched.store.records import STATUSES
from autosched.store.replay_file import read_replay, write_replay
from autosched.tiling.candidate import Candidate
from autosched.tiling.space.listed import ListedSpace
from autosched.tiling.step import Decision

FILE = TESTS / "data" / "replay_depthwise.json.gz"
"""60 rows of a depthwise convolution of 56x56x144, measured on a Zen 5."""
RECORDED = read_replay(FILE)
DEPTHWISE = autosched.workload("depthwise_conv2d", c=144)
DECISIONS = (Decision("tile", (1, 2, 4)), Decision("order", (0, 1), ("mn", "nm")))


def table(indices: Sequence[Sequence[int]], status: Sequence[str], **more: object) -> RecordedPlan:
    rows = len(status)
    times = np.array([1e-3 * (n + 1) if s == "ok" else np.nan for n, s in enumerate(status)])
    nothing = np.full(rows, np.nan)
    numbers = np.array([STATUSES.index(s) for s in status], np.uint8)
    return RecordedPlan("p", DECISIONS, np.array(indices, np.int32), numbers, times, nothing, nothing, **more)


THREE = RecordedSpace("three", (table([[0, 0], [2, 1], [1, 0]], ["ok", "crash", "ok"], messages={1: "SIGSEGV"}),))


class TestReplay(DeviceConformance):
    deterministic = True

    @pytest.fixture
    def device(self) -> Device:
        return ReplayDevice(path=str(FILE))

    @pytest.fixture
    def candidates(self) -> Sequence[Candidate]:
        space = space_of(RECORDED)
        return space.candidates(space.locate([0, 17, 59]))


def test_a_recording_says_what_was_measured():
    device = ReplayDevice(recording=THREE)
    (plan,) = plans_of(THREE)
    ids = [plan.space.row_of(v) for v in ({"tile": 1}, {"tile": 4, "order": "nm"}, {"tile": 2}, {"tile": 4})]
    found = [device.measure(device.build(Candidate(plan, i))) for i in ids]
    assert [(m.status, m.time_s, m.message) for m in found[:3]] == [
        ("ok", 1e-3, ""),
        ("crash", None, "SIGSEGV"),
        ("ok", 3e-3, ""),
    ]
    assert found[3].status == "refused"
    assert "not among the 3 recorded rows" in found[3].message


def test_candidates_of_another_space_are_known_by_their_names():
    """The space that the rows were drawn from numbers them otherwise."""
    wider = (Decision("order", (1, 0), ("nm", "mn")), Decision("tile", (1, 2, 3, 4)))
    other = RecordedSpace(
        "wider", (replace(THREE.plans[0], decisions=wider, indices=np.array([[1, 0], [0, 3], [1, 1]])),)
    )
    (plan,) = plans_of(other)
    device = ReplayDevice(recording=THREE)
    assert device.measure(device.build(Candidate(plan, plan.space.row_of({"order": "mn", "tile": 2})))).time_s == 3e-3
    assert device.measure(device.build(Candidate(plan, plan.space.row_of({"tile": 3})))).status == "refused"


def test_a_file_comes_back_as_it_went(tmp_path: Path):
    path = tmp_path / "again.json.gz"
    write_replay(path, RECORDED)
    assert gzip.decompress(path.read_bytes()) == gzip.decompress(FILE.read_bytes())
    path.write_bytes(gzip.decompress(path.read_bytes()))
    assert read_replay(path).plans[0].space().version == RECORDED.plans[0].space().version
    failed = RecordedSpace("three", THREE.plans, legal=6, settings={"seed": 3})
    write_replay(path, failed)
    again = read_replay(path)
    assert (again.legal, again.settings, again.plans[0].messages) == (6, {"seed": 3}, {1: "SIGSEGV"})
    assert [STATUSES[s] for s in again.plans[0].status] == ["ok", "crash", "ok"]
    assert again.plans[0].decisions == DECISIONS


def damaged(change: object) -> bytes:
    data = json.loads(gzip.decompress(FILE.read_bytes()))
    change(data)
    return gzip.compress(json.dumps(data).encode())


WRONG = {
    "cut off": (FILE.read_bytes()[:3000], "cut short"),
    "no schema": (b"{}", "no recording"),
    "half a text": (gzip.compress(b"{"), "cut short"),
    "a huge index": (damaged(lambda d: d["plans"][0]["indices"][0].__setitem__(0, 2**70)), "not a whole"),
    "another schema": (damaged(lambda d: d.update(schema="autosched/replay/9")), "schema 'autosched/replay/9'"),
    "a field gone": (damaged(lambda d: d.pop("plans")), "plans is missing"),
    "a short column": (damaged(lambda d: d["plans"][0]["spread"].pop()), "spread has 20 values, and there are 21 rows"),
    "an index outside": (damaged(lambda d: d["plans"][0]["indices"][0].__setitem__(0, 99)), "from 0 to 2"),
    "a row twice": (damaged(lambda d: [c.__setitem__(0, c[1]) for c in d["plans"][0]["indices"]]), "rows 0 and 1"),
    "an unknown status": (damaged(lambda d: d["plans"][0]["status"].__setitem__(0, "fine")), "not a whole"),
    "ok without a time": (damaged(lambda d: d["plans"][0]["time_s"].__setitem__(0, None)), "has no time"),
    "no rows": (damaged(lambda d: d.update(plans=[])), "no rows"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_damaged_file_is_told_what_is_wrong(name: str, tmp_path: Path):
    content, said = WRONG[name]
    path = tmp_path / "wrong.json.gz"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=said) as error:
        read_replay(path)
    assert str(path) in error.value.message


def test_what_does_not_fit_the_recording_is_refused():
    with pytest.raises(UsageError, match="needs a recording"):
        open_device("replay")
    with pytest.raises(StoreError, match="cannot read"):
        open_device("replay:nowhere.json.gz")
    with pytest.raises(UsageError, match="not of this matmul"):
        open_device(f"replay:{FILE}", autosched.workload("matmul", m=8))
    with pytest.raises(UsageError, match="recorded with threads 1, not 2"):
        open_device(f"replay:{FILE}", threads=2)
    with pytest.raises(UnknownNameError):
        open_device("simulator:x")
    with pytest.raises(UnknownNameError):
        TuneRequest(DEPTHWISE, autosched.target("portable"), device="replayed")


def test_tuning_on_a_recording_finds_its_optimum():
    study = autosched.tune(DEPTHWISE, "portable", device=f"replay:{FILE}", trials=60, strategy="random")
    assert len(study.searched) == 60
    assert study.best_s == RECORDED.best_s
    assert study.record.target == "native"  # the recorded machine, whatever was asked for
    again = autosched.tune(DEPTHWISE, "portable", device=f"replay:{FILE}", trials=8, strategy="clock")
    assert [t.analytic_s for t in again.searched] == sorted(t.analytic_s for t in again.searched)


def test_strategies_are_compared_without_a_machine():
    table = autosched.compare(DEPTHWISE, ["random", "clock"], f"replay:{FILE}", trials=8, seeds=5, target="portable")
    assert {row.status for row in table.rows} == {"ok"}
    assert min(row.time_s for row in table.rows if row.time_s) >= RECORDED.best_s


# A space that is a list


def listed(rows: int = 40) -> ListedSpace:
    decisions = [Decision(name, (5, 1, 7, 3)) for name in "abcd"]
    chosen = np.random.default_rng(1).choice(256, rows, replace=False)
    indices = np.stack(np.unravel_index(chosen, (4, 4, 4, 4)), axis=1)
    return ListedSpace("listed", decisions, indices, {"sum": indices.sum(axis=1)})


def test_a_listed_space_has_its_rows_and_no_other():
    space = listed()
    found = space.enumerate()
    assert len(found) + sum(found.rejected.values()) == found.total == 256
    assert sorted(space.listed.tolist()) == found.ids.tolist()
    assert space.legal(np.arange(256)).sum() == 40
    assert space.enumerate(limit=7).complete is False
    assert (space.ids_of(space.values(space.listed)) == space.listed).all()
    assert (space.values(space.listed)["sum"] == sum(space.rows(space.listed)[n].astype(int) for n in "abcd")).all()
    assert space.version != listed(39).version
    with pytest.raises(ValueError, match="listed twice"):
        ListedSpace("twice", space.decisions, [[0, 0, 0, 0], [0, 0, 0, 0]])


def test_moves_in_a_listed_space_stay_in_it():
    rng = np.random.default_rng(0)
    for rows in (40, 3, 1):
        space = listed(rows)
        ids = space.listed[rng.integers(0, rows, 50)]
        mutants = space.mutate(ids, rng)
        assert space.legal(mutants).all()
        assert rows == 1 or (mutants != ids).any()
        assert space.legal(space.crossover(ids, space.listed[rng.integers(0, rows, 50)], rng)).all()
        assert len(set(space.sample(50, rng).tolist())) == rows
        assert space.legal(space.neighbours(int(ids[0]))).all()


# Today's engine on recorded rows


def test_rows_are_found_again_by_name():
    """Domains in another order, a value that is gone, a decision that is gone: what can be named stays."""
    (first, *rest) = RECORDED.plans
    again, lost = rescored(RECORDED)
    assert lost == 0
    for old, new in zip(RECORDED.plans, again.plans, strict=True):
        assert old.name == new.name
        assert (old.time_s == new.time_s).all()
        named = [
            {d.name: d.label(d.domain[i]) for d, i in zip(p.decisions, p.indices[0], strict=True)} for p in (old, new)
        ]
        assert named[0].items() <= named[1].items()
    turned = []
    for d, column in zip(first.decisions, first.indices.T, strict=True):
        turned.append((replace(d, domain=d.domain[::-1], labels=d.labels[::-1]), len(d.domain) - 1 - column))
    gone = Decision("gone", (0, 1))
    there = np.arange(len(first)) % 2  # half of the rows have had an effect that nothing has today
    changed = replace(
        first,
        decisions=(*(d for d, _ in turned), gone),
        indices=np.stack([*(column for _, column in turned), there], axis=1).astype(np.int32),
    )
    found, lost = rescored(replace(RECORDED, plans=(changed, *rest)))
    assert lost == there.sum()
    assert (found.plans[0].indices == again.plans[0].indices[there == 0]).all()
    assert np.allclose(found.plans[0].terms["total"], again.plans[0].terms["total"][there == 0])
    with pytest.raises(StoreError, match="no row"):
        rescored(replace(RECORDED, plans=(replace(first, name="another"),)))


@pytest.mark.slow
def test_recording_a_space():
    """On the simulator: rows of all plans, the same with the same seed, and their times are the device's."""
    program = autosched.workload("matmul", m=8, n=16, k=16, a="u8", b="s8")
    request = TuneRequest(program, autosched.target("x86-avx512"), device="simulator", only=("x86/vpdpbusd.*",), seed=3)
    told: list[RowDone] = []
    found = record(request, 12, created="today", on_row=told.append)
    assert len(found) == 12 < found.legal
    assert [t.done for t in told] == list(range(13))
    assert told[-1].done == told[-1].total
    assert min(r.best_s for r in told if r.best_s) == told[-1].best_s
    assert found.settings["seed"] == 3
    assert str(program) == found.program
    for other in (record(request, 12, created="today"), record(request, 12, jobs=2)):
        for a, b in zip(found.plans, other.plans, strict=True):
            assert (a.indices == b.indices).all()
            assert (a.time_s == b.time_s).all()
    recorded, ours, tuning = found.plans[0], ReplayDevice(program, recording=found), prepare(request)
    plan = next(p for p in tuning.plans if p.name == recorded.name)
    row = {d.name: d.label(d.domain[i]) for d, i in zip(recorded.decisions, recorded.indices[0], strict=True)}
    candidate = Candidate(plan, plan.space.row_of(row))
    simulated = {r: tuning.device.measure(tuning.device.build(candidate), r).time_s for r in ("search", "final")}
    assert ours.measure(ours.build(candidate)).time_s in simulated.values()
    with pytest.raises(UsageError, match="nothing to record"):
        record(request, 0)
    with pytest.raises(UsageError, match="disturb each other"):
        record(replace(request, device="cpu"), 12, jobs=2)


@pytest.mark.slow
def test_all_rows_of_a_recording_are_measured_anew():
    """On the simulator, which repeats itself: visits give back what was measured, to noise of 1 %."""
    program = autosched.workload("matmul", m=8, n=16, k=16, a="u8", b="s8")
    request = TuneRequest(program, autosched.target("x86-avx512"), device="simulator", only=("x86/vpdpbusd.*",), seed=3)
    there = record(request, 12)
    slow = replace(there, plans=tuple(replace(p, time_s=np.full(len(p), 1.0)) for p in there.plans))
    assert all((p.time_s == 1.0).all() for p in again(slow).plans)
    told: list[RowDone] = []
    found = again(slow, visits=2, on_row=told.append)
    assert [t.done for t in told] == list(range(1, 2 * len(found) + 1))
    assert told[-1].total == told[-1].done
    assert told[-1].best_s == pytest.approx(found.best_s)
    for a, b in zip(there.plans, found.plans, strict=True):
        assert (a.indices == b.indices).all()
        assert a.time_s == pytest.approx(b.time_s, rel=0.05)
