"""Families of plans that are not searched: each reason by itself, with its number."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.plans import machine, plans_of

from autosched.errors import NoScheduleError, UnknownNameError
from autosched.ir import parse, workload
from autosched.machine.catalogue import load_target
from autosched.machine.target import Target
from autosched.search.request import TuneRequest
from autosched.search.tuning.identity import reopen, study_record
from autosched.search.tuning.tune import planned
from autosched.tiling.planner.families import (
    AS_WRITTEN,
    DEFERRED,
    NO_NEST,
    NOT_ASKED,
    NOT_CHOSEN,
    ONE_PASS,
    SLICES,
    TILES,
    family_of,
    not_planned,
    weaker_levels,
    with_each_family,
)
from autosched.tiling.planner.nests import MOST_PLANS, WITHIN
from autosched.tiling.planner.plan_program import _passed_over

PRODUCTS = """
def two(A: f32[m, k], B: f32[k, n], C: f32[n, l], Y: f32[m, l], *, m={m}, k=16, n=32, l=32):
    X: f32[m, n]
    for i, j in grid(m, n):
        X[i, j] = 0
        for p in range(k):
            X[i, j] += A[i, p] * B[p, j]
    for i, j in grid(m, l):
        Y[i, j] = 0
        for p in range(n):
            Y[i, j] += X[i, p] * C[p, j]
"""


def with_caches(size: int) -> Target:
    """A machine whose cores have caches of so many bytes."""
    target = machine()
    own = (replace(m, bytes=size) if m.shared_by != "device" else m for m in target.memories)
    return replace(target, memories=tuple(own))


def test_plans_that_are_passed_over_have_a_reason_with_its_number() -> None:
    first, *_ = plans_of(parse(PRODUCTS.format(m=64)), machine())
    plans = planned(TuneRequest(parse(PRODUCTS.format(m=64)), with_caches(4096))).plans
    tiled = next(p for p in plans if family_of(p) == TILES)
    assert family_of(first) != TILES
    near = _passed_over([first], [first, tiled], {id(first): 100.0, id(tiled): 200.0})
    assert near == {TILES: f"{MOST_PLANS} plans of other kinds take fewer cycles, and no more are searched"}
    far = _passed_over([first], [first, tiled], {id(first): 100.0, id(tiled): 730.0})
    assert far == {TILES: f"its plans take 7.3 times the cycles of the best plan; up to {WITHIN:g} times are searched"}
    assert not _passed_over([first, tiled], [first, tiled], {id(first): 1.0, id(tiled): 9.0})


def test_each_reason_why_there_are_no_tiles() -> None:
    program = parse(PRODUCTS.format(m=64))
    fits = dict(not_planned(program, machine(), "rescaled", {}))
    assert fits[TILES] == "stages hand on 8 KiB, which a core's own caches hold"
    assert dict(not_planned(program, with_caches(128), "rescaled", {}))[TILES] == (
        "stages hand on 128 bytes for each i, more than half of a core's own caches hold"
    )
    assert dict(not_planned(program, with_caches(1024), "rescaled", {TILES: "because"}))[TILES] == "because"


def test_one_pass_says_what_the_planner_said() -> None:
    attention = workload("attention", h=1, n=64, l=64, d=16)
    assert dict(not_planned(attention, machine(), "rescaled", {ONE_PASS: "because"}))[ONE_PASS] == "because"
    assert dict(not_planned(attention, machine(), "bitwise", {}))[ONE_PASS] == "it needs --numerics rescaled"


def test_a_family_that_only_the_level_keeps_out_names_the_level() -> None:
    rounded = workload("attention_rounded", h=1, n=64, l=64, d=16)
    for target in (machine(), load_target("nvidia-h200")):
        assert dict(weaker_levels(rounded, target, "rescaled")) == {ONE_PASS: "real"}
        assert dict(not_planned(rounded, target, "rescaled", {}))[ONE_PASS].endswith("; it needs --numerics real")
        assert dict(weaker_levels(rounded, target, "real")) == {}
    attention = workload("attention", h=1, n=64, l=64, d=16)
    assert dict(weaker_levels(attention, machine(), "reassociated")) == {ONE_PASS: "rescaled"}
    assert dict(weaker_levels(attention, machine(), "rescaled")) == {}
    assert dict(weaker_levels(workload("matmul_int4"), machine(), "bitwise")) == {DEFERRED: "rescaled"}
    assert dict(weaker_levels(workload("matmul_int4"), machine(), "rescaled")) == {}


@pytest.mark.slow
def test_plans_of_a_family_that_is_asked_for() -> None:
    attention = workload("attention", h=1, n=512, l=512, d=64)
    asked = TuneRequest(attention, machine(), families=(ONE_PASS,), only=("x86/vfmadd.f32.zmm",))
    found = planned(asked)
    assert {family_of(p) for p in found.plans} == {ONE_PASS}
    assert {family_of(p) for p in found.every} > {ONE_PASS}, "fallbacks may be of others"
    assert found.left_out[AS_WRITTEN] == NOT_ASKED
    both = planned(replace(asked, families=(ONE_PASS, AS_WRITTEN)))
    assert {family_of(p) for p in both.plans} == {ONE_PASS, AS_WRITTEN}
    record = study_record(asked, {}, found.plans)
    assert reopen(record, asked.catalogue).families == (ONE_PASS,)


def test_a_family_without_plans_is_refused_with_its_reason() -> None:
    rounded = workload("attention_rounded", h=1, n=64, l=64, d=16)
    with pytest.raises(NoScheduleError, match=r"one pass: it needs --numerics rescaled|real") as refused:
        planned(TuneRequest(rounded, machine(), families=(ONE_PASS,), numerics="reassociated"))
    assert AS_WRITTEN in (refused.value.hint or "")
    with pytest.raises(NoScheduleError, match="slices: the program gives no reason for one"):
        planned(TuneRequest(workload("matmul"), machine(), families=(SLICES,)))
    with pytest.raises(UnknownNameError, match="family of plans 'onepass'"):
        TuneRequest(rounded, machine(), families=("onepass",))


def test_no_level_opens_what_has_no_products() -> None:
    """A softmax in one pass is not laid out at any level, and the note would mislead."""
    assert dict(weaker_levels(workload("softmax", m=64, n=64), machine(), "bitwise")) == {}


def test_slices_that_data_choose_are_for_cpus_and_instructions() -> None:
    program = workload("matmul_experts", m=64, n=64, k=64)
    assert dict(not_planned(program, load_target("nvidia-h200"), "rescaled", {})) == {SLICES: NOT_CHOSEN}
    assert any(family_of(p) == SLICES for p in planned(TuneRequest(program, machine())).plans)
    narrow = workload("matmul_experts", m=64, n=1, k=64)
    assert planned(TuneRequest(narrow, machine())).left_out.get(SLICES, NO_NEST) == NO_NEST


def test_each_family_near_the_best_has_a_plan() -> None:
    plans = planned(TuneRequest(parse(PRODUCTS.format(m=64)), with_caches(4096))).plans
    tiled = next(p for p in plans if family_of(p) == TILES)
    one, other = [p for p in plans if family_of(p) != TILES][:2]
    cycles = {id(one): 100.0, id(other): 110.0, id(tiled): 140.0}
    assert with_each_family([one, other], [one, other, tiled], cycles) == [one, tiled]
    assert with_each_family([one, other], [one, other, tiled], cycles | {id(tiled): 160.0}) == [one, other]
    assert with_each_family([one], [one, other, tiled], cycles) == [one]  # no family gives up its only plan


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("f32(A[i, p]) * f32(B[p, j])", r"no factor is the same along all of the sum, or in groups .* \(C\)"),
        ("f32(A[i, p])", "no stage is a product of matrices"),
    ],
)
def test_why_no_factor_is_deferred(body: str, why: str) -> None:
    text = "def f(A: f16[64, 64], B: f16[64, 64], C: f32[64, 64]):\n    for i, j in grid(64, 64):\n"
    text += f"        C[i, j] = 0\n        for p in range(64):\n            C[i, j] += {body}\n"
    request = TuneRequest(parse(text), load_target("nvidia-h100"), device="simulator", families=("deferred",))
    with pytest.raises(NoScheduleError, match=f"deferred: {why}"):
        planned(request)
