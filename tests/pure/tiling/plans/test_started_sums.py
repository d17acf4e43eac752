"""A stage in front of a product whose results its sums begin with is computed where they start."""

from __future__ import annotations

import numpy as np
import pytest
from support.match.agreement import disagreement, expect
from support.plans import plans_of

from autosched.ir import parse
from autosched.ir.program import Program
from autosched.tiling.plans.epilogue import fusable_start
from autosched.tiling.plans.plan import Plan

RESCALED = """
def f(P: f32[19, 23], V: f32[23, 37], m: f32[19], g: f32[37], A: f32[19, 37]):
    for i, e in grid(19, 37):
        START
    BETWEEN
    for i, j, e in grid(19, 23, 37):
        A[i, e] += P[i, j] * V[j, e]
"""
BYTES = """
def f(P: u8[9, 20], V: const[s8[20, 35]], m: s32[9], A: s32[9, 35]):
    for e, i in grid(35, 9):
        A[i, e] = A[i, e] * m[i] - 3
    for i, e in grid(9, 35):
        for j in range(20):
            A[i, e] += s32(P[i, j]) * s32(V[j, e])
"""
OTHERS = "for i in range(19):\n        {}"


def program(start: str, between: str = "") -> Program:
    return parse(
        RESCALED.replace("START", start).replace("    BETWEEN\n", f"    {between}\n" if between else ""), "f.py"
    )


def started(program: Program) -> list[Plan]:
    return [p for p in plans_of(program) if any(t.start is not None for t in p.tensor_parts)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "made",
    [
        program("A[i, e] = A[i, e] * m[i]"),
        program("A[i, e] *= m[i]"),
        program("A[i, e] = max(A[i, e], g[e]) + m[i] * g[e]"),
        program("A[i, e] = m[i] - g[e]"),
        program("A[i, e] = A[i, e] * m[i]", OTHERS.format("P[i, 0] = m[i]")),
        parse(BYTES, "f.py"),
    ],
)
def test_sums_begin_with_what_the_stage_makes(made: Program) -> None:
    plans = started(made)
    assert plans
    for plan in plans[:3]:
        assert disagreement(plan, plan.space.sample(8, np.random.default_rng(8)), expect(made)) is None
        (part,) = plan.tensor_parts
        assert part.start is not None
        assert f" from {part.start.stage.name}" in plan.name
        assert [s.assign.tensor for s in part.computed_stages] == ["A", "A"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "made",
    [
        program("A[i, e] = A[18 - i, e] * m[i]"),
        program("A[i, e] = A[i, e] * m[i]", OTHERS.format("m[i] = 0.0")),
        program("A[i, e] = A[i, e] * m[i]", OTHERS.format("P[i, 0] = A[i, 0]")),
        program("A[i, e] = A[i, e] * m[i]", OTHERS.format("A[i, 3] = 1.0")),
        program("if i < 7:\n            A[i, e] = A[i, e] * m[i]"),
        program("A[18 - i, e] = A[18 - i, e] * m[i]"),  # another order of elements: each is begun with its own
    ],
)
def test_what_has_to_be_done_before_stays_in_front(made: Program) -> None:
    stages = made.stages
    sums = next(s for s in stages if s.assign.op == "+=")
    last = max(n for n, s in enumerate(stages) if s.assign.tensor == "A" and s is not sums)
    assert fusable_start(stages[last], sums, stages[last + 1 : stages.index(sums)]) is None
    plans = plans_of(made)
    assert not started(made)
    assert disagreement(plans[0], plans[0].space.sample(4, np.random.default_rng(4)), expect(made)) is None


@pytest.mark.sampled("G[e, i]", "G[i, e]")
@pytest.mark.parametrize("read", ["G[e, i]", "G[i // 2, e]", "G[19 - i, e]", "G[i, e]"])
def test_a_start_that_reads_what_a_stage_behind_writes_stays_in_front(read: str) -> None:
    text = """
def f(P: f32[20, 9], V: f32[9, 20], G: f32[20, 20], A: f32[20, 20]):
    for i, e in grid(20, 20):
        A[i, e] = A[i, e] * READ
    for i, e, j in grid(20, 20, 9):
        A[i, e] += P[i, j] * V[j, e]
    for i, e in grid(20, 20):
        G[i, e] = A[i, e] * 2.0
"""
    made = parse(text.replace("READ", read), "f.py")
    assert not started(made)
    for plan in plans_of(made)[:3]:
        assert disagreement(plan, plan.space.sample(6, np.random.default_rng(0)), expect(made)) is None


def test_sums_that_read_their_target_begin_with_all_of_it() -> None:
    text = RESCALED.replace("START", "A[i, e] = A[i, e] * m[i]").replace("    BETWEEN\n", "")
    made = parse(text.replace("P[i, j] * V[j, e]", "A[i, j] * V[j, e]"), "f.py")
    assert fusable_start(made.stages[0], made.stages[1]) is None
