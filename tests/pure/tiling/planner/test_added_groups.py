"""Sums of groups that a nest adds up as they are summed: of which programs, and what one plan of them does."""

from __future__ import annotations

import dataclasses
from collections import Counter

import numpy as np
import pytest
from support.cards.checked_kernels import wrong_interpreted
from support.cards.gpu_plans import CATALOGUE

from autosched import ir
from autosched.machine.catalogue import load_target
from autosched.search.tuning.tune import usable
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.plan import Plan

TEXT = """
def f(A: f16[64, 128], B: f16[64, 128], R: f32[64, 4], S: f32[4, 64], D: f32[64], C: f32[64, 64]{more}):
    P: f32[4, 64, 64]
    for q, i, j in grid(4, 64, 64):
        P[q, i, j] = {begin}
        for p in range(32):
            {guard}P[q, i, j] += f32(A[i, 32 * q + p]) * f32(B[j, 32 * q + p])
{between}    for i, j in grid(64, 64):
        C[i, j] = {start}
        for q in range(4):
            C[i, j] {op} {value}
{behind}"""
PLAIN = {
    "more": "", "begin": "0", "guard": "", "between": "", "start": "0", "op": "+=", "value": "P[q, i, j] * R[i, q]",
    "behind": "",
}  # fmt: skip


def plans(text: str, *only: str) -> tuple[Plan, ...]:
    target = dataclasses.replace(load_target("nvidia-h200"), cores=3)
    return plan_program(ir.parse(text), target, CATALOGUE, usable(CATALOGUE, target, "simulator", only)).every


def adding_of(text: str) -> Plan | None:
    return next((p for p in plans(text, "cuda/wgmma.m64n64k16.*") if any(t.nest.groups for t in p.tensor_parts)), None)


def adding(**changes: str) -> Plan | None:
    return adding_of(TEXT.format(**PLAIN | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"start": "1", "value": "P[q, i, j] * (R[i, q] * S[q, j])"},
        {"value": "exp(P[q, i, j])"},
        {"value": "P[q, i, j] * P[q, i, j]"},
        {"value": "P[q, i, j]"},
    ],
)
def test_what_is_made_of_each_sum_once_is_added_up(changes: dict[str, str]) -> None:
    plan = adding(**changes)
    assert plan is not None
    assert plan.name.endswith("adding up P")
    assert [p.nest.stage.name for p in plan.own_tensor_parts] == ["C"]
    assert plan.stages_on_intrinsics == {"C", "P"}


@pytest.mark.parametrize(
    "changes",
    [
        {"op": "-="},
        {"start": "D[j]"},
        {"begin": "1"},
        {"value": "P[q, i, j] * C[i, j]"},
        {"value": "P[q, j, i] + P[q, i, j]"},
        {"guard": "if p < i + 3:\n                "},
        {"more": ", X: f32[64]", "behind": "    for i in range(64):\n        X[i] = P[0, i, i]\n"},
        {"more": ", X: f16[64, 128]", "between": "    for i, p in grid(64, 128):\n        A[i, p] = X[i, p]\n"},
    ],
)
def test_anything_else_is_stored(changes: dict[str, str]) -> None:
    assert adding(**changes) is None


def test_what_follows_on_each_element_of_the_whole_sum_is_fused() -> None:
    more = {"more": ", Y: f32[64, 64]", "behind": "    for r, c in grid(64, 64):\n        Y[r, c] = C[r, c] * D[c]\n"}
    plan = adding(**more)
    assert plan is not None
    (part,) = plan.own_tensor_parts
    assert [(f.stage.name, f.axes) for f in part.epilogue] == [("Y", {"r": "i", "c": "j"})]


SHARED = ["C[i + j, 0]", "C[i, j // 8]", "C[i % 16, j]", "C[i, max(j, 3)]", "C[2 * i - j + 63, 0]"]


@pytest.mark.parametrize("target", SHARED)
def test_a_target_that_several_iterations_share_is_none(target: str) -> None:
    text = TEXT.format(**PLAIN).replace("C: f32[64, 64]", "C: f32[256, 64]").replace("C[i, j] +=", f"{target} +=")
    assert adding_of(text.replace("        C[i, j] = 0\n", "")) is None


def test_what_follows_writes_nothing_that_the_sum_reads() -> None:
    """Other blocks still read it."""
    more = {"behind": "    for r, c in grid(64, 64):\n        A[r, c] = f16(C[r, c])\n"}
    plan = adding(**more)
    assert plan is not None
    (part,) = plan.own_tensor_parts
    assert part.epilogue == ()


@pytest.mark.parametrize("name", ["e", "ir", "jr", "warpgroup", "slice"])
def test_axes_may_have_the_names_of_the_kernels_variables(name: str) -> None:
    loop = "for i, {} in grid(64, 64):\n        C"
    text = TEXT.format(**PLAIN).replace(loop.format("j"), loop.format(name))
    text = text.replace("C[i, j]", f"C[i, {name}]").replace("+= P[q, i, j]", f"+= P[q, i, {name}]")
    plan = adding_of(text)
    assert plan is not None
    assert [*wrong_interpreted(plan, 2, 0, Counter())] == []


def test_shares_are_whole_groups() -> None:
    """A block that has a share of the reduction has all slices of each of its groups."""
    plan = adding()
    assert plan is not None
    values = plan.space.values(plan.space.thinned(2000, np.random.default_rng(0)))
    columns = {name.rsplit(".", 1)[-1]: np.ravel(v) for name, v in values.columns.items()}
    assert (columns["split_slices"] % columns["promote"] == 0).all()
    assert {*np.unique(columns["promote"])} >= {1, 2}


def test_how_else_the_sums_would_be_added_up_makes_no_second_plan() -> None:
    found = plans(TEXT.format(**PLAIN), "cuda/wgmma.m64n64k16.f16.f32", "cuda/fma.f32.*")
    named = [p.name for p in found if any(t.nest.groups for t in p.tensor_parts)]
    alike = [n for n in named if n.startswith("C: cuda/wgmma")]
    assert alike == ["C: cuda/wgmma.m64n64k16.f16.f32(i←i, j←j, k←p) adding up P"]


def test_a_tile_that_registers_do_not_hold_twice_has_no_plan() -> None:
    found = plans(TEXT.format(**PLAIN), "cuda/wgmma.m64n256k16.*")
    assert not any(t.nest.groups for p in found for t in p.tensor_parts)
