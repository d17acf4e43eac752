"""Tile loops: whatever the plan, the row and the threads, kernels compute the program that was given."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from fuzz.cascades import cascade
from hypothesis import event, given
from hypothesis import strategies as st
from support.match.agreement import disagreement, expect
from support.match.examples import examples
from support.plans import machine
from support.programs.one_pass import ONE_PASS, one_pass_plans

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Branch, For, Kernel, statements
from autosched.costmodel.analytic.clock import clock, floors, parts
from autosched.ir import parse
from autosched.tiling.plans.plan import Plan, TileLoopsPart
from autosched.tiling.steps.cpu.pack import PANEL

TARGETS = (machine(), machine(frozenset({"avx2", "fma"}), registers=16, vector_bytes=32))


def check(plan: Plan, name: str, count: int, seed: int = 0) -> None:
    ids = plan.space.sample(count, np.random.default_rng(seed))
    values = plan.space.values(ids)
    total = clock(plan, values)["total"]
    assert np.isfinite(total).all()
    assert np.allclose(sum(f(values) for f in parts(plan)), total)
    assert (sum(f(values) for f in floors(plan)) <= total * (1 + 1e-9)).all()
    assert disagreement(plan, ids.tolist(), expect(ONE_PASS[name])) is None


def test_one_pass_computes_the_program() -> None:
    check(even(1), "even", 2)


@pytest.mark.slow
@pytest.mark.parametrize(("target", "threads"), [(0, 2), (1, 1)])
@pytest.mark.parametrize("name", ONE_PASS)
def test_one_pass_on_every_machine(name: str, target: int, threads: int) -> None:
    plans = list(one_pass_plans(ONE_PASS[name], TARGETS[target], threads))
    assert plans
    for plan in plans:
        check(plan, name, 2, threads)


@pytest.mark.slow
@examples(40)
@given(st.integers(0, 10**6), st.integers(0, 1), st.integers(1, 2))
def test_random_cascades(seed: int, target: int, threads: int) -> None:
    program = parse(cascade(seed), filename="f.py")
    count = 0
    for plan in one_pass_plans(program, TARGETS[target], threads, ((3, 4),)):
        ids = plan.space.sample(2, np.random.default_rng(seed))
        assert disagreement(plan, ids.tolist(), expect(program, seed)) is None
        count += 1
    event(f"plans: {count}")


@cache
def even(threads: int) -> Plan:
    return next(iter(one_pass_plans(ONE_PASS["even"], machine(), threads, ((8, 16),))))


def kernel_of(threads: int = 1) -> Kernel:
    plan = even(threads)
    ids = plan.space.sample(400, np.random.default_rng(1))
    (part,) = (p for p in plan.parts if isinstance(p, TileLoopsPart))
    values = plan.space.values(ids)
    packed = next(d.name for d in plan.space.decisions if d.name.endswith("S_block.pack_b"))
    fits = (values[part.names("threads")] == threads) & (values[packed] == PANEL)
    return lower(plan, plan.space.schedule(int(ids[fits][0])))


def test_what_comes_again_is_packed_outside_the_loop_that_does_not_move_it() -> None:
    kernel = kernel_of()
    (heads,) = [s for s in kernel.main.body if isinstance(s, For) and s.var == "b"]
    first, *_, last = (s for s in heads.body if isinstance(s, For))
    assert (first.var, last.var) == ("j_block", "i_tile")
    assert any("K_panel" in str(s) for s in statements(first.body))
    assert kernel.buffers["K_panel"].shape[0] == 2  # each block of the axis has its own


def test_threads_have_tiles_of_their_own() -> None:
    kernel = kernel_of(threads=2)
    assert kernel.threads == 2
    assert kernel.buffers["S_block_2"].shape == (2, 8, 16)
    assert kernel.buffers["O"].shape == (2, 16, 16)


def test_rows_as_written_are_behind_a_branch() -> None:
    branches = [s for s in kernel_of().statements if isinstance(s, Branch)]
    assert len(branches) == 5  # a tile, then the sum; a tile, then rows and elements of the result
