"""Which plans are alike but for the width of their instructions, and that others are searched before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autosched.ir import workload
from autosched.machine.catalogue import load_target
from autosched.machine.target import Target
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import planned
from autosched.tiling.planner.families import (
    NOT_MADE,
    TILES,
    TILES_KEPT,
    TILES_TWICE,
    family_of,
    family_of_names,
    not_planned,
)
from autosched.tiling.planner.nests import MOST_PLANS
from autosched.tiling.planner.rank import plan_cycles
from autosched.tiling.planner.structure import NEAR, different_first, structure_of
from autosched.tiling.plans.plan import Plan
from autosched.tiling.variants.shared_runs import shared_runs
from autosched.tiling.variants.tiled_stages import why_no_borders

KINDS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 300)), min_size=1, max_size=20)


@given(KINDS)
def test_others_come_before_those_alike(drawn: Sequence[tuple[int, int]]) -> None:
    found = sorted(drawn, key=lambda one: one[1])
    order = different_first(found, lambda one: one[0], lambda one: one[1])
    assert sorted(order) == sorted(found)
    assert order[0] == found[0]
    near = [kind for kind, cycles in found if cycles <= NEAR * found[0][1]]
    others = len(set(near))
    assert {kind for kind, _ in order[:others]} == set(near)
    assert order[others:] == sorted(order[others:], key=lambda one: one[1])


def block(name: str = "x86-avx512", **sizes: int) -> TuneRequest:
    return TuneRequest(workload("inverted_residual", **sizes), load_target(name))


@pytest.fixture(scope="module")
def large() -> tuple[Sequence[Plan], Sequence[Plan]]:
    """The searched plans of a large block, and all."""
    found = planned(block(h=112, w=112, st=2, ci=32, c=192, co=32))
    return found.plans, found.every


@pytest.mark.slow
def test_no_plan_is_left_out_for_one_that_is_like_another(large: tuple[Sequence[Plan], Sequence[Plan]]) -> None:
    searched, every = large
    assert len(searched) == MOST_PLANS < len(every)
    kinds = [structure_of(p) for p in searched]
    cycles = [plan_cycles(p) for p in searched]
    assert cycles == sorted(cycles)
    left = [p for p in every if structure_of(p) not in kinds and plan_cycles(p) <= NEAR * cycles[0]]
    assert left  # more than are searched
    assert len(set(kinds)) == len(kinds)
    assert {TILES_KEPT, TILES_TWICE} <= {family_of(p) for p in searched}


def test_the_width_of_an_instruction_and_small_parts_make_no_other_plan() -> None:
    every = planned(TuneRequest(workload("mlp", m=64, k=64, f=256, n=64), load_target("x86-avx512"))).every
    names = {p.name: structure_of(p) for p in every}
    for name, kind in names.items():
        wide = name.replace(".ymm", ".zmm")
        assert names.get(wide, kind) == kind
    assert len(set(names.values())) > 1
    first, *_ = every
    part, *_ = first.tensor_parts
    other = replace(first, parts=(replace(part, epilogue=()), *first.parts[1:]))
    assert structure_of(other) != structure_of(first)


@pytest.mark.slow
def test_scalar_code_beside_nests_leaves_room_for_plans_with_all_products_on_instructions() -> None:
    found = planned(TuneRequest(workload("mla_decode"), load_target("x86-avx512"))).plans
    assert any({"S", "U", "A"} <= {t.nest.stage.name for t in p.tensor_parts} for p in found)


def with_caches(size: int) -> Target:
    target = load_target("x86-avx512")
    own = (replace(m, bytes=size) if m.shared_by != "device" else m for m in target.memories)
    return replace(target, memories=tuple(own))


@pytest.mark.slow
def test_tiles_that_keep_rows_and_that_compute_them_twice_are_two_families() -> None:
    program = workload("inverted_residual", h=14, w=14, ci=8, c=48, co=8)
    for size, family in ((1 << 14, TILES_KEPT), (1 << 16, TILES_TWICE)):
        searched = {family_of(p) for p in planned(TuneRequest(program, with_caches(size))).plans}
        assert family in searched
    small = dict(not_planned(program, with_caches(1 << 14), "rescaled", {}))
    assert small[TILES_TWICE].endswith("compute 2 more, above 50% of their own")
    assert small[TILES_KEPT] == NOT_MADE
    large = dict(not_planned(program, with_caches(1 << 22), "rescaled", {}))
    assert large[TILES].endswith("which a core's own caches hold")
    assert not {TILES_KEPT, TILES_TWICE} & large.keys()


def test_why_tiles_keep_no_rows_or_compute_none_twice() -> None:
    assert family_of_names(["tiles of 2, borders kept"]) == TILES_KEPT
    assert family_of_names(["tiles of 48, borders computed twice"]) == TILES_TWICE
    assert family_of_names(["tiles of 48"]) == TILES
    *_, run = shared_runs(workload("inverted_residual", h=56, w=14, ci=8, c=48, co=8), 0)
    each = run.row_bytes
    assert (run.again, why_no_borders(run, [8 * each], True)) == (2.0, "")
    assert why_no_borders(run, [8 * each], False) == "tiles of 3 compute 2 more, above 50% of their own"
    assert why_no_borders(run, [80 * each], False) == ""
    often = replace(run, extent=400)
    tile = max(often.tiles([300 * each]))
    assert tile > 40
    assert why_no_borders(often, [300 * each], True).endswith("compute 2 more, which is hardly anything")
    alone = replace(run, keeping=None)
    assert why_no_borders(alone, [8 * each], True) == "the next tile of y needs no row that one has computed"
