"""Every mapping that matching reports is in a plan or has a reason why it is in none; `tune` takes one name or many."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import autosched
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of
from autosched.tiling.planner.rejections import by_reason, rejections

BYTES = {"m": 64, "n": 64, "k": 64, "a": "u8", "b": "s8", "acc": "s32"}
SAID = {
    "a check that saves nothing": ("x86-avx512", {}, "x86/vpmaddubsw.vpmaddwd.zmm", "has to be checked"),
    "a slow form": ("x86-avx512", {}, "x86/vpdpbusd.zmm", "more than 4 times the cycles of x86/vpdpbusd.zmm"),
    "the same once more": ("x86-avx512", {}, "x86/vpdpbusds.zmm", "would tie with those of x86/vpdpbusd.zmm"),
    "a substitute": ("x86-avx512", {}, "portable/mac.u8.u8.s32.v16", "none of the machine's own fits"),
    "an adapter that is not needed": ("x86-avx512", {}, "x86/vpmaddwd.zmm", "only where no instruction fits"),
    "a refused condition": (
        "x86-avx2", {"conditions": "refuse"}, "x86/vpmaddubsw.vpmaddwd.ymm", "64, and conditions are refused",
    ),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SAID)
def test_what_is_left_out_has_a_reason(name: str) -> None:
    target, options, intrinsic, said = SAID[name]
    request, matches, plans = _planned(target, options.get("conditions", "guard"))
    found = rejections(matches, plans, request.target, request.conditions)
    assert any(x.intrinsic == intrinsic and said in x.reason for x in found), found
    mappings = sum(len(m.mappings) for m in matches)
    planned = {(m.intrinsic.name, str(m.axes), str(m.operands)) for p in plans for m in p.mappings}
    as_they_are = [m for p in plans for m in p.mappings if not m.adapters]
    assert len(found) >= mappings - len(planned), "none goes without a word"
    assert not any(x.intrinsic == m.intrinsic.name and x.axes == _axes(m) for x in found for m in as_they_are)
    assert sum(len(which) for _, which in by_reason(found)) == len(found)


@cache
def _planned(target: str, conditions: str) -> Any:
    request = TuneRequest(autosched.workload("matmul", **BYTES), autosched.target(target), conditions=conditions)
    return request, *plans_of(request)


def _axes(mapping: Any) -> str:
    return ", ".join(f"{x}←{'.'.join(fused) or '1'}" for x, fused in mapping.axes.items())


@pytest.mark.parametrize("only", ["portable/mac.f32.f32.f32.v1", None])
def test_one_name_is_a_list_of_one_and_none_is_all(only: str | None) -> None:
    program = autosched.workload("matmul", m=4, n=4, k=4)
    study = autosched.tune(program, "portable", device="simulator", trials=1, intrinsics=only, store=":memory:")
    assert study.record.settings["only"] == ([only] if only else [])
