"""Plans of programs with several products: their best mappings come first, and ids number their rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.cards.gpu_plans import H200
from support.match.agreement import disagreement, expect
from support.plans import machine, plans_of

from autosched.costmodel.analytic.clock import clock, floors, parts, run_length
from autosched.ir import parse
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.tiling.planner.nests import MOST_PLANS
from autosched.tiling.space.bounded import Timed
from autosched.tiling.space.counting import HUGE, counted
from autosched.tiling.space.enumerate import Legal
from autosched.tiling.space.independent_groups import IndependentGroups
from autosched.tiling.space.space import Space
from autosched.tiling.step import Decision, Step
from autosched.tiling.steps.part_steps import numbered

TWICE = """
def twice(A: {t}[m, k], B: const[{t}[n, k]], C: const[{t}[q, n]], E: f32[m, q], *, m=256, n=512, k=256, q=384):
    T: {t}[m, n]
    D: f32[m, n]
    for i, j in grid(m, n):
        D[i, j] = 0
        for p in range(k):
            D[i, j] += f32(A[i, p]) * f32(B[j, p])
        T[i, j] = {t}(D[i, j])
    for i, j in grid(m, q):
        E[i, j] = 0
        for p in range(n):
            E[i, j] += f32(T[i, p]) * f32(C[j, p])
"""


def program(t: str) -> Program:
    return parse(TWICE.format(t=t))


def wide(name: str, several: int) -> list[Step]:
    """A part of `several` decisions of a thousand values each, the last of them labelled."""
    labels = tuple(map(str, range(1000)))
    decisions = [Decision(f"{name}.{k}", tuple(range(1000))) for k in range(several - 1)]
    return [Step(name, tuple(decisions)), Step(f"{name} last", (Decision(f"{name}.last", tuple(range(1000)), labels),))]


def held(steps: list[Step]) -> set[str]:
    return {d.name for s in steps for d in s.decisions if d.domain == (0,)}


def test_a_space_that_ids_number_stays_as_it_is() -> None:
    parts = [wide("a", 3), wide("b", 3)]
    assert numbered(parts) == [s for steps in parts for s in steps]


@pytest.mark.parametrize(
    ("several", "names"),
    [(3, {"a.last", "b.last", "c.last"}), (4, {"a.last", "b.last", "c.last", "a.2", "b.2", "c.2"})],
)
def test_the_last_decisions_of_each_part_are_held_first(several: int, names: set[str]) -> None:
    steps = numbered([wide("a", several), wide("b", several), wide("c", several)])
    assert held(steps) == names
    space = Space("three", steps)
    assert space.size == 10**18
    assert all(len(d.labels) in (0, len(d.domain)) for d in space.decisions)


def test_parts_inside_tile_loops_are_held_in_turn_too() -> None:
    """All of them are one part of the plan around them."""
    inside = [*wide("i.j.a", 3), *wide("i.j.b", 3)]
    assert held(numbered([inside, wide("c", 3)])) == {"i.j.a.last", "i.j.b.last", "c.last"}


def test_a_decision_that_names_a_value_is_held_first_and_there() -> None:
    own = Decision("a.vector", tuple(range(10)), tuple("abcdefghij"), held=7)
    first, *others = numbered([[Step("a", (own, Decision("a.prefetch", (0, 1))))], wide("b", 6)])
    assert first.decisions[0].domain == (7,)
    assert first.decisions[0].labels == ("h",)
    assert first.decisions[1].domain == (0, 1)
    assert not held(others)


def test_a_decision_that_gives_way_late_does_so_at_its_value() -> None:
    own = Decision("a.prefetch", tuple(range(10)), tuple("abcdefghij"), late=7)
    first, *others = numbered([[Step("a", (Decision("a.vector", (1, 2), held=2), own))], wide("b", 6)])
    assert [d.domain for d in first.decisions] == [(2,), (7,)]
    assert first.decisions[1].labels == ("h",)
    assert held(others) == set()


def test_threads_are_held_last() -> None:
    threads = Step("t", (Decision("t.threads", (1, 2)),))
    several = numbered([[threads], wide("a", 4), wide("b", 4), wide("c", 4)])
    assert several[0].decisions[0].domain == (1, 2)
    assert len(held(several)) >= 3


def test_two_products_on_a_gpu_have_plans_whose_rows_are_numbered() -> None:
    plans = plans_of(program("bf16"), H200, only=("cuda/wgmma.m64n64k16.bf16.f32", "cuda/wgmma.m64n128k16.bf16.f32"))
    assert all(len(plan.tensor_parts) == 2 for plan in plans)
    (neutral,) = plans[0].space.canonical([0])
    assert not plans[0].space.violated(int(neutral))


class Unlisted(Space):
    """A space that fails the test when its rows are listed."""

    def enumerate(self, *_: object, **__: object) -> Legal:
        raise AssertionError("the space is being listed")


@pytest.mark.slow
def test_two_products_on_a_gpu_are_laid_out_and_ranked_without_a_list() -> None:
    """10^18 rows: to list the first of the legal ones takes half a minute, and to rank all of them for ever."""
    (plan, *_) = plans_of(program("bf16"), H200, only=("cuda/wgmma.m64n128k16.bf16.f32",))
    assert plan.space.size > HUGE

    plan = replace(plan, space=Unlisted(plan.space.name, plan.space.steps, plan.space.constants))
    assert counted(plan.space, most=1 << 18) is not None
    laid = SearchSpace([plan], clock, run_length=run_length, floors=floors, parts=parts, threads=1)
    assert laid.legal > 10**8 > laid.rows
    rows, found = laid.best(2000)
    assert len(rows.distinct()) == 2000
    assert plan.space.legal(rows.ids).all()
    assert np.array_equal(laid.analytic(rows), found)
    timed = [Timed(*both) for both in zip(parts(plan), floors(plan), strict=True)]
    search = IndependentGroups(plan.space, timed, lambda ids: laid.analytic(Rows.of(0, ids)))
    best = search.best(2000)
    assert best.proved
    assert search.looked_at < 1e7
    assert np.array_equal(best.seconds, found)
    near = plan.space.neighbours(int(best.ids[0]))
    better = near[laid.analytic(Rows.of(0, near)) < found[-1]]
    assert np.isin(better, best.ids).all()


@pytest.mark.sampled("target0-bf16")
@pytest.mark.parametrize(("target", "t"), [(machine(), "bf16"), (H200, "f16")])
def test_the_best_mappings_of_all_stages_come_first(target: Target, t: str) -> None:
    plans = plans_of(program(t), target, only=("x86/*", "cuda/mma*"))
    assert len(plans) == MOST_PLANS
    for k in range(2):
        chosen = {str(plan.tensor_parts[k].title) for plan in plans}
        assert len(chosen) > 1


UNREAD = """
def unread(X: f32[16, 8], W: f32[8, 16], Y: f32[16, 16]):
    T: f32[16, 16]
    for i, j in grid(16, 16):
        T[i, j] = 0
        for p in range(8):
            T[i, j] += X[i, p] * W[p, j]
    for i, j in grid(16, 16):
        Y[i, j] = X[i, 0] + W[0, j]
"""


@pytest.mark.sampled("cpu")
@pytest.mark.parametrize("target", [machine(), H200], ids=["cpu", "gpu"])
def test_a_product_that_nobody_reads_has_plans(target: Target) -> None:
    program = parse(UNREAD, filename="f.py")
    plan = next(p for p in plans_of(program, target, 1) if p.tensor_parts)
    ids = plan.space.sample(1, np.random.default_rng(0)).tolist()
    assert disagreement(plan, ids, expect(program)) is None
