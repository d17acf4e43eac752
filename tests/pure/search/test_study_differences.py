"""A study that is new although the store has one of the same program: what differs is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from autosched import api
from autosched.cli.progress import Progress
from autosched.search.events import NearMiss
from autosched.search.request import TuneRequest
from autosched.search.tuning.differences import differences
from autosched.search.tuning.identity import study_record
from autosched.search.tuning.tune import prepare
from autosched.store.sqlite import SqliteStore

TARGET = api.target("x86-avx2")
REQUEST = TuneRequest(api.workload("matmul", m=8, n=8, k=8), TARGET, device="simulator", trials=1)
DEVICE = {"name": "cpu", "cpu": "EPYC (model 2)", "threads": 1, "cache": "warm"}


def apart(device: dict[str, Any] | None = None, **changed: Any) -> tuple[str, ...]:
    stored = study_record(REQUEST, DEVICE, ())
    return differences(stored, study_record(replace(REQUEST, **changed), DEVICE | (device or {}), ()))


@pytest.mark.parametrize(
    ("device", "changed", "said"),
    [
        ({"threads": 2}, {}, ("threads 1 there, 2 here",)),
        ({"cpu": "Xeon (model 9)"}, {}, ("cpu EPYC (model 2) there, Xeon (model 9) here",)),
        ({"name": "simulator", "kind": "simulator"}, {}, ("device cpu there, simulator here",)),
        ({}, {"target": replace(TARGET, cores=7, version="other")}, (f"cores {TARGET.cores} there, 7 here",)),
        ({}, {"target": replace(TARGET, version="other")}, ("other figures of the target",)),
        ({}, {"target": api.target("x86-avx512")}, ("target x86-avx2 there, x86-avx512 here",)),
        ({}, {"families": ("one pass",)}, ("--plans all there, one pass here",)),
        ({}, {"only": ("x86/a*", "x86/b")}, ("-i all there, x86/a*, x86/b here",)),
        ({}, {"numerics": "bitwise"}, ("numerics rescaled there, bitwise here",)),
        ({"threads": 2, "cache": "cold"}, {"conditions": "refuse", "numerics": "bitwise"}, 3),
    ],
)
def test_what_differs_is_named(device: dict[str, Any], changed: dict[str, Any], said: tuple[str, ...] | int) -> None:
    found = apart(device, **changed)
    if isinstance(said, int):
        assert len(found) == said + 1
        assert found[-1] == "1 more"
    else:
        assert found == said


def test_what_only_plans_depend_on() -> None:
    stored = study_record(REQUEST, DEVICE, ())
    wanted = replace(stored, key=stored.key | {"spaces": "others"})
    assert differences(stored, wanted) == ("other plans or spaces",)


def test_a_new_study_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    store = SqliteStore(":memory:")
    heard: list[Any] = []
    for threads in (1, 2, 2):
        prepare(replace(REQUEST, store=store, threads=threads), heard.append).device.close()
    (event,) = (e for e in heard if isinstance(e, NearMiss))
    assert event.differences == ("threads 1 there, 2 here",)
    Progress(REQUEST, quiet=False, verbose=False)(event)
    said = capsys.readouterr().err
    assert said == f"note   a new study, though {event.study} is of the same program: threads 1 there, 2 here\n"
