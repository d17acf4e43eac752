"""Parts of a pass: whatever the plan, the row and the threads, kernels compute the program that was given."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from fuzz.parted import search
from support.match.agreement import disagreement, expect
from support.plans import machine
from support.programs.in_parts import IN_PARTS, SIZES, parts_plans

from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.costmodel.analytic.clock import clock, floors, parts, timed_parts
from autosched.ir import run
from autosched.tiling.plans.plan import Plan, TileLoopsPart


def check(plan: Plan, name: str, count: int, seed: int = 0) -> None:
    ids = plan.space.sample(count, np.random.default_rng(seed))
    values = plan.space.values(ids)
    total = clock(plan, values)["total"]
    assert np.isfinite(total).all()
    assert np.allclose(sum(f(values) for f in parts(plan)), total)
    assert (sum(f(values) for f in floors(plan)) <= total * (1 + 1e-9)).all()
    assert disagreement(plan, ids.tolist(), expect(IN_PARTS[name])) is None


@cache
def one_query(size: int) -> Plan:
    return next(iter(parts_plans(IN_PARTS["one query"], machine(), 2, SIZES[size : size + 1])))


@pytest.mark.parametrize("size", range(len(SIZES)))
def test_one_query_over_a_cache(size: int) -> None:
    check(one_query(size), "one query", 2)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", IN_PARTS)
def test_parts_of_every_program(name: str, threads: int) -> None:
    plans = list(parts_plans(IN_PARTS[name], machine(), threads))
    assert plans
    for plan in plans:
        check(plan, name, 2, threads)


def test_threads_have_parts_of_their_own_and_one_merges_them() -> None:
    passing, merging = (p for p in one_query(0).parts if isinstance(p, TileLoopsPart))
    assert [t.name for t in passing.loops if t.parallel] == ["part"]
    assert merging.trips == 1
    assert {w.tensor for w in merging.windows.values()} >= {"M_part", "Z_part", "A_part"}
    assert not any(w.tensor == "S_block" for w in passing.windows.values())  # each thread keeps its own


@pytest.mark.sampled(7)
@pytest.mark.parametrize("size", range(len(SIZES)))
@pytest.mark.parametrize("kind", ["empty part", "empty row", "infinite", "no number", "great"])
def test_rows_that_hurt(kind: str, size: int) -> None:
    """A part without a finite element adds nothing; a row without one is what the program makes of it."""
    program = IN_PARTS["log-sum-exp"]
    x = np.random.default_rng(0).normal(size=(1, 48)).astype(np.float32)
    match kind:
        case "empty part":
            x[0, :30] = -np.inf
        case "empty row":
            x[:] = -np.inf
        case "infinite":
            x[0, 40] = np.inf
        case "no number":
            x[0, 3] = np.nan
        case "great":
            x[0, ::2] = np.float32(3e38)
    with np.errstate(all="ignore"):
        want = run(program, {"X": x})["Y"]
        (plan,) = parts_plans(program, machine(), 2, SIZES[size : size + 1])
        for row in plan.space.sample(2, np.random.default_rng(size)):
            got = run_kernel(lower(plan, plan.space.schedule(int(row))), {"X": x}, {})["Y"]
            np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.slow
def test_random_cascades() -> None:
    """`python -m tests.fuzz.parted --programs 500` looks at more of them."""
    count, wrong = search(0, 40)
    assert not wrong
    assert count["plans"] >= 5


def test_the_clock_counts_parts_side_by_side() -> None:
    plan = one_query(0)
    values = plan.space.values(plan.space.sample(200, np.random.default_rng(0)))
    columns = {name: values[name] for name in values.columns}
    passing = [f for f, p in zip(parts(plan), timed_parts(plan), strict=True) if p.around[:1] == (plan.parts[0],)]
    assert passing
    one, two = (columns | {"part.threads": np.full_like(columns["part.threads"], n)} for n in (1, 2))
    assert np.allclose(sum(f(one) for f in passing), 2 * sum(f(two) for f in passing))
