"""Rows that bypass the caches, ask for the next row, and run several at once: what is offered where, and that every
such row computes the program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.match.agreement import disagreement, expect
from support.plans import covering_rows, machine
from support.programs.scalar_programs import functions, scalar_plans

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Assign, Kernel, Prefetch, StoreFence, statements
from autosched.costmodel.analytic.clock import clock
from autosched.costmodel.analytic.cpu.scalar_cycles import DIVISION_CYCLES, formula_cycles
from autosched.ir import parse, workload
from autosched.ir.program import Program
from autosched.ir.rewrites.reuse import keep_common
from autosched.machine.target import Memory
from autosched.tiling.plans.plan import FusedLoopsPart, Plan, ScalarPart

SMALL = replace(
    machine(), memories=tuple(replace(m, bytes=256) if m.shared_by == "core" else m for m in machine().memories)
)
"""A machine whose cores' caches hold next to nothing."""
KEPT = keep_common(workload("softmax", m=5, n=37))
assert KEPT is not None
PROGRAMS = {
    "softmax": KEPT.after,
    "layer_norm": workload("layer_norm", m=5, n=37),
    "elementwise": workload("elementwise", m=7, n=45),
    "deep": parse(
        """
def deep(X: bf16[k, m, n], Y: bf16[k, m, n], *, k=2, m=5, n=33):
    S: f32[k, m]
    for p in range(k):
        for i in range(m):
            S[p, i] = 0
            for j in range(n):
                S[p, i] += f32(X[p, i, j])
            for j in range(n):
                Y[p, i, j] = bf16(f32(X[p, i, j]) - S[p, i])
""",
        filename="deep.py",
    ),
}


def row_of(plan: Plan, **chosen: int) -> int:
    names = {d.name.split(".")[-1]: d.name for d in plan.space.decisions}
    return plan.space.row_of({names[n]: v for n, v in chosen.items()})


def kernel_of(wanted: Program, **chosen: int) -> Kernel:
    plan = scalar_plans(wanted, SMALL)[0]
    return lower(plan, plan.space.schedule(row_of(plan, **chosen)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "threads"), [("softmax", 1), *((name, 3) for name in PROGRAMS)])
def test_every_row_computes_the_program(name: str, threads: int) -> None:
    wanted = PROGRAMS[name]
    expected = expect(wanted)
    plan = scalar_plans(wanted, SMALL, threads)[0]
    assert any(d.name.endswith("stores") for d in plan.space.decisions)
    assert disagreement(plan, covering_rows(plan), expected) is None


def test_what_stages_leave_in_the_output_stays_in_one_row() -> None:
    kernel = kernel_of(PROGRAMS["softmax"], vector=16, rows=2, stores=1)
    assert kernel.buffers["Y_row"].shape == (1, 2, 37)
    stored = [s for s in statements(kernel.main.body) if isinstance(s, Assign) and s.buffer == "Y"]
    assert stored
    assert all(s.stream for s in stored)
    assert kernel.main.body[-1] == StoreFence()
    plain = kernel_of(PROGRAMS["softmax"], vector=16, rows=2)
    assert "Y_row" not in plain.buffers
    inside = statements(plain.main.body)
    assert not any(isinstance(s, StoreFence) or (isinstance(s, Assign) and s.stream) for s in inside)


def test_all_lines_of_the_next_rows_are_asked_for() -> None:
    kernel = kernel_of(workload("softmax", m=6, n=64), vector=16, unroll=2, rows=2, ahead=1)
    asked = {str(s.index) for s in statements(kernel.main.body) if isinstance(s, Prefetch)}
    assert {s.buffer for s in statements(kernel.main.body) if isinstance(s, Prefetch)} == {"X"}
    assert len(asked) == 2 * 2  # rows, lines of a trip


def test_what_moves_with_an_axis_of_the_first_stage_alone_is_not_asked_for() -> None:
    text = """
def planes(X: f32[h, n, l], W: f32[n, l], Y: f32[h, n], *, h=3, n=5, l=70):
    M: f32[h, n]
    for b in range(h):
        for i in range(n):
            M[b, i] = 0
            for j in range(l):
                M[b, i] += W[i, j] * X[b, i, j]
        for i in range(n):
            Y[b, i] = 0
            for j in range(l):
                Y[b, i] += exp(W[i, j] - M[b, i])
"""
    wanted = parse(text)
    plan = scalar_plans(wanted, SMALL)[0]
    assert plan.parts[0].shared == ("b",)
    assert disagreement(plan, covering_rows(plan), expect(wanted)) is None


def test_far_rows_are_those_that_follow_16_kib_on() -> None:
    for n, rows, behind in ((1024, 1, 4), (1024, 2, 4), (768, 1, 5), (500, 4, 8)):
        kernel = kernel_of(workload("softmax", m=36, n=n), vector=16, rows=rows, ahead=2)
        at = {str(s.index[0]) for s in statements(kernel.main.body) if isinstance(s, Prefetch)}
        assert {f"i + {behind + r}" for r in range(rows)} <= at


def test_rows_that_are_far_anyway_have_one_distance() -> None:
    plan = scalar_plans(workload("softmax", m=64, n=1024), SMALL)[0]
    values = plan.space.values(plan.space.enumerate().ids)
    rows, ahead = (next(v for k, v in values.items() if k.endswith(name)) for name in ("rows", "ahead"))
    assert set(rows[ahead == 2].tolist()) == {1, 2}
    long = scalar_plans(workload("softmax", m=64, n=4096), SMALL)[0]
    assert [d.domain for d in long.space.decisions if d.name.endswith("ahead")] == [(0, 1)]


def test_what_only_the_first_cache_cannot_hold_is_asked_for_a_row_ahead() -> None:
    wanted = workload("softmax", m=40, n=256)  # of 40 KiB
    for caches, domains in (((16, 64), [(0, 1)]), ((4, 16), [(0, 1, 2)]), ((64, 64), [])):
        memories = (Memory("L1", caches[0] << 10, 2e11), Memory("L2", caches[1] << 10, 1e11))
        here = replace(SMALL, memories=(*memories, *SMALL.memories[2:]))
        plan = scalar_plans(wanted, here)[0]
        assert [d.domain for d in plan.space.decisions if d.name.endswith("ahead")] == domains


READ_LATER = """
def f(X: f32[m, n], Y: f32[m, n], *, m=9, n=40):
    S: f32[m]
    for i in range(m):
        S[i] = 0
        for j in range(n):
            S[i] += X[i, j]
        for j in range({low}, n):
            Y[i, j] = {first}
        for j in range(n):
            {last}
"""


@pytest.mark.parametrize(
    ("low", "first", "last", "buffered"),
    [
        ("0", "X[i, j] * S[i]", "Y[i, j] = Y[i, j] / X[i, j]", True),
        ("0", "X[i, j] * S[i]", "Y[i, j] += X[i, j]", True),
        ("0", "X[i, j] * S[i]", "Y[i, j] = Y[i, n - 1 - j] + 1", None),  # half of them wait for others
        ("0", "X[i, j] * S[i]", "S[i] = S[i] + Y[i, j]", None),  # read after its last store
        ("1", "X[i, j] * S[i]", "Y[i, j] = X[i, j] - S[i]", None),  # other elements
    ],
)
def test_where_stores_may_bypass_the_caches(low: str, first: str, last: str, buffered: bool | None) -> None:
    wanted = parse(READ_LATER.format(low=low, first=first, last=last), filename="f.py")
    found = [p.nontemporal for plan in scalar_plans(wanted, SMALL) for p in plan.parts if isinstance(p, FusedLoopsPart)]
    assert {s.buffered if s else None for s in found} == {buffered}
    large = [p for plan in scalar_plans(wanted) for p in plan.parts if isinstance(p, FusedLoopsPart | ScalarPart)]
    assert all(p.nontemporal is None for p in large)  # what a core's caches hold is written through them


def test_the_clock_sends_large_results_past_the_caches() -> None:
    for wanted, chosen in (
        (workload("softmax", m=4096, n=1024), {"stores": 1, "ahead": 1}),
        (workload("elementwise", m=4096, n=4096), {"stores": 1}),
        (workload("softmax", m=1536, n=128), {"rows": 4}),
    ):
        plan = scalar_plans(wanted)[0]
        ids = plan.space.enumerate().ids
        best = plan.space.schedule(int(ids[np.argmin(clock(plan, plan.space.values(ids))["total"])]))
        found = {name.split(".")[-1]: value for name, value in best.values.items()}
        assert found.items() >= chosen.items(), plan.name


def test_a_formula_takes_as_long_as_its_operations() -> None:
    known = functions().formulas
    cycles = {name: formula_cycles(f) for (name, dtype), f in known.items() if dtype == "f32"}
    assert cycles["rsqrt"] == 2 * DIVISION_CYCLES
    assert cycles["exp"] < cycles["tanh"]  # which has a quotient
    assert cycles["exp"] < cycles["log"]
