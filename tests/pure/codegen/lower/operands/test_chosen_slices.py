"""Slices that data choose: whatever the plan, the row, the threads and the data, kernels compute the program given."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from support.match.agreement import disagreement, expect
from support.match.examples import examples
from support.plans import machine
from support.programs.chosen import CHOSEN, chosen_plans, random_choice

from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Chosen, If, IntrinsicCall, Kernel, statements
from autosched.codegen.tree.text import print_kernel
from autosched.costmodel.analytic.clock import clock, floors, parts
from autosched.device.simulator.walk.walk import facts
from autosched.ir import parse
from autosched.tiling.plans.plan import Plan
from autosched.tiling.steps.cpu.pack import PANEL

TARGETS = (machine(), machine(frozenset({"avx2", "fma"}), registers=16, vector_bytes=32))


def check(plan: Plan, name: str, count: int) -> None:
    ids = plan.space.sample(count, np.random.default_rng(len(name)))
    values = plan.space.values(ids)
    total = clock(plan, values)["total"]
    assert np.isfinite(total).all()
    assert np.allclose(sum(f(values) for f in parts(plan)), total)
    assert (sum(f(values) for f in floors(plan)) <= total * (1 + 1e-9)).all()
    assert disagreement(plan, ids.tolist(), expect(CHOSEN[name])) is None


@pytest.mark.parametrize("name", CHOSEN)
def test_every_kind_of_choice(name: str) -> None:
    (plan,) = chosen_plans(CHOSEN[name], machine())
    check(plan, name, 1)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("target", [0, 1])
@pytest.mark.parametrize("name", CHOSEN)
def test_on_every_machine(name: str, target: int, threads: int) -> None:
    (plan,) = chosen_plans(CHOSEN[name], TARGETS[target], threads)
    check(plan, name, 6)


@examples(5)
@given(st.integers(0, 10**6), st.integers(0, 1), st.integers(1, 2))
def test_random_choices(seed: int, target: int, threads: int) -> None:
    program = parse(random_choice(seed), filename="f.py")
    count = 0
    for plan in chosen_plans(program, TARGETS[target], threads):
        ids = plan.space.sample(2, np.random.default_rng(seed))
        assert disagreement(plan, ids.tolist(), expect(program, seed)) is None
        count += 1
    event(f"plans: {count}")


@cache
def experts() -> Plan:
    (plan,) = chosen_plans(CHOSEN["experts"], machine())
    return plan


def kernel(pack: int | None = None) -> Kernel:
    plan = experts()
    ids = plan.space.sample(200, np.random.default_rng(0))
    packed = next(d.name for d in plan.space.decisions if d.name.endswith("pack_b"))
    values = plan.space.values(ids)[packed]
    return lower(plan, plan.space.schedule(int(ids[values == pack][0] if pack is not None else ids[0])))


@pytest.mark.parametrize("chosen", [(0, 0, 0), (2, 2, 2), (2, 0, 1)])
def test_any_choice_with_and_without_panels(chosen: tuple[int, ...]) -> None:
    expected = expect(CHOSEN["experts"])
    arrays = expected.arrays | {"E": np.array(chosen, np.int32)}
    x, w = arrays["X"].astype("f8"), arrays["W"].astype("f8")
    want = np.concatenate([x[8 * b : 8 * b + 8] @ w[e] for b, e in enumerate(chosen)])
    for made in (kernel(PANEL), kernel()):
        assert np.allclose(run_kernel(made, arrays)["Y"], want, rtol=1e-4, atol=1e-4)


def test_a_choice_outside_reads_the_nearest_slice() -> None:
    """Callers refuse such data; a kernel that gets them all the same reads nothing outside of the tensor."""
    arrays = expect(CHOSEN["experts"]).arrays
    outside, nearest = (np.array(e, np.int32) for e in ((-7, 3, 2**31 - 1), (0, 2, 2)))
    for made in (kernel(PANEL), kernel()):
        found = [run_kernel(made, arrays | {"E": e})["Y"] for e in (outside, nearest)]
        assert np.array_equal(*found)


def test_panels_of_constants_are_of_all_slices() -> None:
    made = kernel(PANEL)
    (prepare,) = made.prepare
    assert made.buffers["W_panel"].scope == "packed"
    assert made.buffers["W_panel"].shape[0] == 3
    assert "E" not in prepare.buffers
    (choice,) = [s for s in made.statements if isinstance(s, Chosen)]
    assert "with i_block_W = E[i_block] in 0..3:" in print_kernel(made)
    assert any("W_panel" in str(s) for s in statements(choice.body))


def test_the_simulator_counts_the_body_of_a_choice() -> None:
    made = kernel(PANEL)
    found = [facts(made, stmt) for stmt in made.main.body]
    calls = sum(issue.runs for f in found for issue in f.issues)
    lanes = next(f.issues[0] for f in found if f.issues).intrinsic.accumulator.elements
    assert calls == 24 * 12 * -(-20 // lanes)
    assert "E" in set().union(*(f.buffers for f in found))


@pytest.mark.parametrize("rows", [(0, 12, 5, 1), (-3, 2**31 - 1, 12, 0)])
def test_rows_that_data_leave_out_are_neither_computed_nor_looked_at(rows: tuple[int, ...]) -> None:
    """What lies there may be no number. Tiles without a row that counts run no instruction."""
    arrays = dict(expect(CHOSEN["masked"]).arrays)
    x = arrays["X"].astype("f8")
    want = np.where((np.arange(12) < np.array(rows)[:, None])[..., None], x @ arrays["W"].astype("f8"), 0)
    arrays["X"] = arrays["X"].copy()
    for number, count in enumerate(rows):
        arrays["X"][number, max(0, count) :] = np.nan
    (plan,) = chosen_plans(CHOSEN["masked"], machine())
    for row in plan.space.sample(4, np.random.default_rng(1)).tolist():
        made = lower(plan, plan.space.schedule(row))
        found = run_kernel(made, arrays | {"R": np.array(rows, np.int32)})["Y"]
        assert np.allclose(found, want, rtol=1e-4, atol=1e-4)
        asked = [s for s in made.statements if isinstance(s, If) and "x_R" in str(s.condition)]
        calls = [c for s in asked for c in statements(s.body) if isinstance(c, IntrinsicCall)]
        assert len(calls) == sum(isinstance(s, IntrinsicCall) for s in made.statements)
