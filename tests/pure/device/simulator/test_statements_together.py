"""Statements of a chip beside each other: what is tied waits, what is not runs on, and nothing is done twice."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from support.chips import measured, planned

import autosched
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Assign, For, If, IntrinsicCall, Kernel, Stmt
from autosched.costmodel.analytic.clock import clock
from autosched.costmodel.analytic.spatial.spatial_clock import spatial_tensor
from autosched.device.simulator.device import estimate
from autosched.device.simulator.engine import TICKS, ServiceSpan
from autosched.device.simulator.spatial.spatial_model import StatementRun, play_run, queued_statements, runs
from autosched.device.simulator.spatial.together import QUEUES, conflict, oldest_beside
from autosched.device.simulator.trace import trace
from autosched.device.simulator.walk.facts import Facts
from autosched.device.simulator.walk.walk import facts
from autosched.ir.value import reads
from autosched.tiling.plans.plan import Plan

TWO = """
def two(A: s8[m, k], B: const[s8[k, n]], C: s32[m, n], G: s8[m, k], H: const[s8[k, n]],
        F: s32[m, n], *, m=64, n=64, k=64):
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
    for i, j in grid(m, n):
        F[i, j] = 0
        for p in range(k):
            F[i, j] += s32(G[i, p]) * s32(H[p, j])
"""


BY_FACTS: dict[int, tuple[Kernel, list[tuple[Stmt, Facts]]]] = {}


def kernels(plan: Plan, count: int) -> list[tuple[Kernel, tuple[Facts, ...]]]:
    rows = plan.space.sample(count, np.random.default_rng(0))
    made = [lower(plan, plan.space.schedule(int(row))) for row in rows]
    found = [(k, tuple(facts(k, s) for s in k.main.body)) for k in made]
    BY_FACTS.update({id(k): (k, list(zip(k.main.body, parts, strict=True))) for k, parts in found})
    return found


def times(plan: Plan, kernel: Kernel, parts: tuple[Facts, ...]) -> tuple[float, float]:
    """Cycles of all statements together, and one after the other."""
    ends = [play_run(kernel, StatementRun((found,), 0.0), plan.target, plan.units).outcome.end for found in parts]
    (run,) = runs(kernel, parts, plan.target, plan.units)
    return play_run(kernel, run, plan.target, plan.units).outcome.end / TICKS, sum(ends) / TICKS


@pytest.mark.parametrize("name", ["systolic", "vector"])
def test_copies_of_the_next_statement_run_below_this_ones_work(name: str) -> None:
    (plan, *_) = planned(name, autosched.parse(TWO))
    shorter = [together / apart for k, p in kernels(plan, 12) for together, apart in [times(plan, k, p)]]
    assert min(shorter) < 0.97
    assert max(shorter) < 1.1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["systolic", "vector"])
@pytest.mark.parametrize("of", ["softmax", "attention", "mlp"])
def test_what_is_tied_waits_and_each_unit_does_one_thing_at_a_time(name: str, of: str) -> None:
    (plan, *_) = planned(name, of)
    tied = 0
    for kernel, parts in kernels(plan, 4):
        for run in runs(kernel, parts, plan.target, plan.units):
            spans: list[ServiceSpan] = []

            def record(span: ServiceSpan, kept: list[ServiceSpan] = spans) -> bool:
                kept.append(span)
                return True

            played = play_run(kernel, run, plan.target, plan.units, record)
            queued, _, _ = queued_statements(kernel, run, plan.target, plan.units)
            by_actor: dict[int, list[ServiceSpan]] = defaultdict(list)
            by_server: dict[int, list[ServiceSpan]] = defaultdict(list)
            for span in spans:
                by_actor[span.actor].append(span)
                by_server[span.server].append(span)
            for own in by_server.values():
                ordered = sorted(own, key=lambda s: (s.start, s.end))
                assert all(a.end <= b.start for a, b in pairwise(ordered))
            for server, ticks in enumerate(played.outcome.busy):
                assert ticks == sum(busy[server] for busy in played.busy) <= played.outcome.end
            for n, second in enumerate(queued if len(run.parts) > 1 else ()):
                for m, first in enumerate(queued[:n]):
                    early = [s.end for q in range(len(QUEUES)) for s in by_actor[len(QUEUES) * m + q]]
                    for q, queue in enumerate(QUEUES):
                        late = [s.start for s in by_actor[len(QUEUES) * n + q] if s.end > s.start]
                        if conflict(first, second, queue) and early and late:
                            tied += 1
                            assert max(early) <= min(late)
            check_by_text(kernel, run, by_actor)
    assert tied


def check_by_text(kernel: Kernel, run: StatementRun, by_actor: dict[int, list[ServiceSpan]]) -> None:
    """What the loops say by themselves: what a statement reads of an earlier one is not taken before that is done. (It
    was, where accumulators are stored by a statement of their own.)"""
    first = kernel.main.body.index(next(s for s, f in BY_FACTS[id(kernel)][1] if f is run.parts[0]))
    touched = [accesses(kernel, kernel.main.body[first + n]) for n in range(len(run.parts))]
    queues = range(len(QUEUES))
    spans = [
        [[s for s in by_actor[len(QUEUES) * n + q] if s.end > s.start] for q in queues] for n in range(len(run.parts))
    ]
    for n, (read, _) in enumerate(touched):
        for m, (_, written) in enumerate(touched[:n]):
            early = [s.end for queue in spans[m] for s in queue]
            late = [queue for queue in spans[n] if queue]
            if read & written and early and late:
                assert max(early) <= max(s.end for queue in late for s in queue), (m, n)
                assert len(late) > 1 or max(early) <= min(s.start for s in late[0]), (m, n, read & written)


def accesses(kernel: Kernel, stmt: Stmt) -> tuple[set[str], set[str]]:
    """Buffers outside of registers that a statement reads and writes."""
    reading, writing = set[str](), set[str]()

    def visit(inner: Stmt) -> None:
        match inner:
            case Assign():
                writing.add(inner.buffer)
                reading.update(r.tensor for r in reads(inner.value))
            case IntrinsicCall():
                writing.add(inner.operands[inner.intrinsic.accumulator.name].buffer)
                reading.update(ref.buffer for ref in inner.operands.values())
            case For() | If():
                for each in inner.body:
                    visit(each)

    visit(stmt)
    memory = {name for name, b in kernel.buffers.items() if b.scope != "register"}
    return reading & memory, writing & memory


def test_scratchpads_that_hold_one_statement_only() -> None:
    """Then the next one's copies wait for all of this one."""
    (plan, *_) = planned("systolic", autosched.parse(TWO))
    kernel, parts = kernels(plan, 1)[0]
    first = oldest_beside(kernel, parts, plan.target)
    assert first == [0] * len(parts)
    held = [sum(kernel.buffers[b].elements for b in p.buffers if kernel.buffers[b].scope == "shared") for p in parts]
    pads = tuple(
        dataclasses.replace(m, bytes=max(held)) if "inputs" in m.holds else m for m in plan.target.memories
    )
    small = dataclasses.replace(plan.target, memories=pads)
    alone = oldest_beside(kernel, parts, small)
    assert alone[-1] > 0
    (run,) = runs(kernel, parts, small, plan.units)
    tight = play_run(kernel, run, small, plan.units).outcome.end
    assert tight >= play_run(kernel, run, plan.target, plan.units).outcome.end


def test_too_many_events_are_played_one_after_the_other() -> None:
    (plan, *_) = planned("systolic", autosched.parse(TWO))
    kernel, parts = kernels(plan, 1)[0]
    (run,) = runs(kernel, parts, plan.target, plan.units)
    apart = play_run(kernel, run, plan.target, plan.units, most=2)
    alone = [play_run(kernel, StatementRun((found,), 0.0), plan.target, plan.units).outcome.end for found in parts]
    assert apart.outcome.end == sum(alone) == apart.ends[-1]
    assert apart.outcome.busy == play_run(kernel, run, plan.target, plan.units).outcome.busy


def test_traces_and_statements_add_up_to_the_time() -> None:
    (plan, *_) = planned("vector", "attention")
    for kernel, parts in kernels(plan, 3):
        found = estimate(kernel, list(parts), plan.target, plan.units)
        total = sum(s.seconds for s in found.statements) + found.seconds["start"]
        assert total == pytest.approx(found.seconds["total"])
        drawn = trace(kernel, plan.target, plan.units)
        assert drawn["otherData"]["seconds"] == pytest.approx(found.seconds["total"])


def test_rows_are_right_and_above_their_bound() -> None:
    (plan, *_) = planned("vector", autosched.parse(TWO, m=9, n=21, k=19))
    for row, m in measured(plan, 3):
        assert m.ok, (row, m.message)
        assert m.max_abs_error == 0


def ranks(values: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(values))


@pytest.mark.slow
def test_the_clock_counts_copies_that_run_below_the_part_before() -> None:
    """And ranks rows as the simulator does. Where the second product reads what the first writes it waits."""
    (plan, *_) = planned("vector", autosched.parse(TWO, m=96, n=96, k=96))
    ids = plan.space.sample(30, np.random.default_rng(0))
    made = [lower(plan, plan.space.schedule(int(row))) for row in ids]
    played = [estimate(k, [facts(k, s) for s in k.main.body], plan.target, plan.units).seconds["total"] for k in made]
    found = clock(plan, plan.space.values(ids))["total"]
    assert np.corrcoef(ranks(found), ranks(np.array(played)))[0, 1] > 0.9
    values = plan.space.values(ids)
    first, second = plan.tensor_parts
    alone = spatial_tensor(second, values, replace(plan, parts=(second,)))["total"]
    behind = spatial_tensor(second, values, plan)["total"]
    assert (behind <= alone).all()
    assert (behind < alone).any()
    tied = first.nest.stage.assign
    written = replace(first.nest.stage, assign=replace(tied, tensor=second.nest.mapping.operands["a"].tensor))
    before = replace(first, nest=replace(first.nest, stage=written))
    assert (spatial_tensor(second, values, replace(plan, parts=(before, second)))["total"] == alone).all()
