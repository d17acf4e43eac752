"""Chains: whatever the tile, the place and the threads, kernels compute the program, and hold no more than a tile."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.match.agreement import disagreement, expect
from support.match.examples import examples
from support.plans import machine
from support.programs.chained import CHAINED, chained_plans, chained_texts

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import For, statements
from autosched.costmodel.analytic.clock import clock, floors
from autosched.ir import parse
from autosched.tiling.plans.plan import Plan

TARGETS = (machine(), machine(frozenset({"avx2", "fma"}), registers=16, vector_bytes=32))


def row(plan: Plan, **wanted: int) -> int:
    """A legal row with these decisions of the chain."""
    ids = plan.space.sample(4000, np.random.default_rng(0))
    values = plan.space.values(ids)
    fits = np.all([values[f"chain.{name}"] == value for name, value in wanted.items()], axis=0)
    return int(ids[fits][0])


@pytest.mark.parametrize("name", CHAINED)
def test_chains_compute_the_program(name: str) -> None:
    program = CHAINED[name]
    expected = expect(program)
    plan = chained_plans(program, machine())[0]
    ids = plan.space.sample(2, np.random.default_rng(3)).tolist()
    assert disagreement(plan, ids, expected) is None


@pytest.mark.slow
@examples(10)
@given(chained_texts(), st.integers(0, 1), st.integers(1, 3), st.integers(0, 99))
def test_random_chains(text: str, target: int, threads: int, seed: int) -> None:
    program = parse(text, filename="f.py")
    plans = chained_plans(program, TARGETS[target], threads)
    event(f"chains: {len(plans)}")
    for plan in plans[:1]:
        ids = plan.space.sample(3, np.random.default_rng(seed))
        values = plan.space.values(ids)
        total = clock(plan, values)["total"]
        assert np.isfinite(total).all()
        assert (sum(f(values) for f in floors(plan)) <= total * (1 + 1e-9)).all()
        assert disagreement(plan, ids.tolist(), expect(program, seed)) is None


def test_each_thread_has_a_tile_of_its_own() -> None:
    (plan, *_) = chained_plans(CHAINED["mlp"], machine())
    shapes = {}
    for place in (0, 1):
        for threads in (1, 2):
            kernel = lower(plan, plan.space.schedule(row(plan, rows=24, place=place, threads=threads)))
            shapes[place, threads] = kernel.buffers["R"].shape
            assert "H" not in kernel.buffers
            assert kernel.threads == threads
            shared = [s for s in statements(kernel.main.body) if isinstance(s, For) and s.var == "thread"]
            assert len(shared) == (threads > 1)
    assert shapes == {(0, 1): (24, 40), (0, 2): (2, 24, 40), (1, 1): (50, 40), (1, 2): (50, 40)}


def test_an_output_that_is_handed_on_stays_whole() -> None:
    (plan, *_) = chained_plans(CHAINED["kept"], machine())
    kernel = lower(plan, plan.space.schedule(row(plan, rows=12)))
    assert kernel.buffers["H"].shape == (29, 32)
    assert [d.domain for d in plan.space.decisions if d.name == "chain.place"] == [(1,)]
