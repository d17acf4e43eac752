"""A study is of one set of kernels: options that change what a kernel may leave out or assume give it another name."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from autosched import api
from autosched.ir.program import Program
from autosched.numerics_levels import DEFAULT_NUMERICS, NUMERICS_LEVELS, of_mappings
from autosched.search.request import TuneRequest
from autosched.search.tuning.identity import study_record
from autosched.search.tuning.tune import plans_of
from autosched.store.sqlite import SqliteStore
from autosched.tiling.variants.conditional import MODES

WINDOW = """
def window(X: f32[n, k], W: const[f32[3, k, m]], Y: f32[n, m], *, n=14, k=4, m=16):
    for p, j in grid(n, m):
        Y[p, j] = 0
        for r in range(3):
            if 0 <= p + r - 1 < n:
                for q in range(k):
                    Y[p, j] += X[p + r - 1, q] * W[r, q, j]
"""
INTEGERS = """
def product(X: s8[n, k], W: const[s8[k, m]], Y: s32[n, m], *, n=6, k=32, m=16):
    for p, j in grid(n, m):
        Y[p, j] = 0
        for r in range(k):
            Y[p, j] += s32(X[p, r]) * s32(W[r, j])
"""
GUARDED = """
def masked(X: f32[n, k], W: f32[k, m], Y: f32[n, m], *, n=6, k=9, m=16):
    for p, j in grid(n, m):
        Y[p, j] = 0
        for r in range(k):
            if p + r < 9:
                Y[p, j] += X[p, r] * W[r, j]
"""


def _requests(program: Program) -> list[TuneRequest]:
    target = api.target("x86-avx2")
    return [
        TuneRequest(program, target, device="simulator", numerics=level, conditions=mode)
        for level, mode in product(NUMERICS_LEVELS, MODES)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("text", [WINDOW, INTEGERS, GUARDED])
def test_studies_of_one_name_have_the_same_mappings(text: str) -> None:
    seen: dict[str, list[object]] = {}
    for request in _requests(api.parse(text)):
        _, plans = plans_of(request)
        found: list[object] = [(p.name, p.space.version, p.mappings) for p in plans]
        assert seen.setdefault(study_record(request, {"name": "simulator"}, plans).name, found) == found


def test_the_usual_levels_are_in_no_key() -> None:
    for request in _requests(api.parse(WINDOW)):
        key = study_record(request, {"name": "simulator"}, []).key
        assert key.get("numerics", "reassociated") == of_mappings(request.numerics)
        assert key.get("conditions", "guard") == request.conditions


def test_a_stricter_level_takes_no_trial_of_a_weaker_one(tmp_path: Path) -> None:
    """At `reassociated` a border is filled with zeros and the factors are assumed to be finite; at `special` an
    infinity behind the border must not matter."""
    program, places = api.parse(WINDOW), str(tmp_path / "a.db")
    names = []
    for level in ("reassociated", "special"):
        study = api.tune(program, target="x86-avx2", device="simulator", trials=4, numerics=level, store=places)
        names.append(study.name)
        assert study.best.trial.number <= 4
    assert names[0] != names[1]
    with SqliteStore(places) as store:
        stored = {s.record.name: s.done for s in store.summaries()}
        assert [stored[n] for n in names] == [4, 4]
        assert [store.study(n).settings["numerics"] for n in names] == ["reassociated", "special"]
    again = api.tune(program, target="x86-avx2", device="simulator", trials=4, numerics="reassociated", store=places)
    assert again.name == names[0]
    assert np.isfinite(again.best.time_s)


def test_a_study_of_the_former_default_goes_on(tmp_path: Path) -> None:
    """The default was `reassociated`: where no rewrite is used, `rescaled` accepts the same mappings, and its study is
    the same."""
    program, places = api.parse(WINDOW), str(tmp_path / "a.db")
    former = api.tune(program, target="x86-avx2", device="simulator", trials=2, numerics="reassociated", store=places)
    study = api.tune(program, target="x86-avx2", device="simulator", trials=4, store=places)
    assert DEFAULT_NUMERICS == "rescaled"
    assert study.name == former.name
    with SqliteStore(places) as store:
        (only,) = store.summaries()
        assert only.done == 4
        assert "numerics" not in only.record.key
