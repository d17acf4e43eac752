"""Asking for a panel's next block: which schedules may, which lines are asked for, and what the clock makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pytest
from support.match.agreement import disagreement
from support.plans import machine, plans_of

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Buffer, For, If, Kernel, Prefetch, Stmt
from autosched.costmodel.analytic.clock import clock
from autosched.ir import workload
from autosched.logic import evaluate
from autosched.tiling.plans.plan import Plan
from autosched.tiling.steps.cpu.prefetch import NEXT

BASE = {"reg_j": 1, "pack_b": "panel", "inner": "rows"}


@pytest.fixture
def everything_streams(stream_all: Callable[[str], None]) -> None:
    stream_all("prefetch")


def wide(m: int, n: int, k: int, threads: int = 1, **types: str) -> Plan:
    plans = plans_of(workload("matmul", m=m, n=n, k=k, **types), machine(), threads)
    return next(p for p in plans if "zmm(i←j" in p.name)


def row_of(plan: Plan, **chosen: int | str) -> int:
    base: dict[str, int | str] = {d.name: d.domain[0] for d in plan.space.decisions}
    return plan.space.row_of({**base, **BASE, **chosen})


def walk(body: tuple[Stmt, ...], at: Mapping[str, int]) -> Iterator[tuple[Prefetch, dict[str, int]]]:
    """The prefetches of a body in the order of execution, with the values of the loops' variables."""
    for stmt in body:
        if isinstance(stmt, For):
            low, high = (int(evaluate(e, at)) for e in (stmt.lower, stmt.upper))
            for k in range(low, high, stmt.step):
                yield from walk(stmt.body, {**at, stmt.var: k})
        elif isinstance(stmt, If):
            if bool(evaluate(stmt.condition, at)):
                yield from walk(stmt.body, at)
        elif isinstance(stmt, Prefetch):
            yield stmt, dict(at)


def lines(kernel: Kernel, panel: Buffer) -> list[int]:
    """The cache lines of the panel that are asked for, in order; lines past its end too."""
    strides = [int(np.prod(panel.shape[k + 1 :])) for k in range(len(panel.shape))]
    found = []
    for stmt, at in walk(kernel.main.body, {}):
        if stmt.buffer == panel.name:
            offset = sum(int(evaluate(i, at)) * s for i, s in zip(stmt.index, strides, strict=True))
            found.append(offset * panel.dtype.bytes // 64)
    return found


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("everything_streams")
@pytest.mark.parametrize(
    ("types", "chosen"),
    [
        ({}, {"reg_i": 4, "reg_j": 2, "block_j": 1, "block_p": 128, "order": "j i p"}),
        ({}, {"reg_i": 4, "reg_j": 2, "block_j": 1, "block_p": 128, "order": "p j i", "unroll": 2}),
        ({}, {"reg_i": 4, "reg_j": 3}),
        ({}, {"reg_i": 5, "reg_j": 1, "block_p": 128, "order": "p j i", "unroll": 4}),
        ({"a": "u8", "b": "s8"}, {"reg_i": 3, "reg_j": 2, "block_j": 1, "block_p": 32, "order": "j i p"}),
    ],
)
def test_passes_share_out_the_next_block(types: dict[str, str], chosen: dict[str, int | str]) -> None:
    plan = wide(12, 192, 384, **types)
    kernel = lower(plan, plan.space.schedule(row_of(plan, prefetch="next", **chosen)))
    panel = kernel.buffers["B_panel"]
    asked = lines(kernel, panel)
    size = int(np.prod(panel.shape)) * panel.dtype.bytes // 64
    # All but the first block; where tiles change, the last of a depth block asks past it.
    assert len(set(asked) & set(range(size))) >= 0.6 * size
    passes = -(-12 // int(chosen["reg_i"]))
    assert len(asked) <= size * (1 + passes / int(chosen["reg_j"]))


@pytest.mark.usefixtures("everything_streams")
def test_each_line_of_the_next_block_is_asked_for_once_where_shares_are_even() -> None:
    plan = wide(8, 192, 384)
    chosen: dict[str, int | str] = {"reg_i": 4, "reg_j": 2, "block_j": 1, "block_p": 128, "order": "j i p"}
    kernel = lower(plan, plan.space.schedule(row_of(plan, prefetch="next", **chosen)))
    panel = kernel.buffers["B_panel"]
    block = 2 * 128
    size = int(np.prod(panel.shape)) * 4 // 64
    assert lines(kernel, panel) == list(range(block, size + block))


@pytest.mark.slow
@pytest.mark.usefixtures("everything_streams")
def test_rows_that_ask_for_the_next_block_compute_the_program() -> None:
    plan = wide(7, 40, 69)
    ids = plan.space.enumerate().ids
    ids = ids[plan.space.values(ids)["prefetch"] == NEXT]
    assert disagreement(plan, np.random.default_rng(1).choice(ids, size=4, replace=False).tolist()) is None


@pytest.mark.usefixtures("everything_streams")
def test_the_next_block_is_for_panels_that_several_passes_of_rows_read() -> None:
    plan = wide(8, 192, 384, threads=2)
    several: dict[str, int | str] = {"reg_i": 4, "prefetch": "next", "block_p": 128}
    assert plan.space.why_not(row_of(plan, **several)) == []
    assert plan.space.why_not(row_of(plan, **several, threads=2, split="j")) == []
    for other in (
        {"reg_i": 8},
        {"pack_b": "direct"},
        {"inner": "lanes"},
        {"reg_i": 2, "block_i": 2},
        {"threads": 2, "split": "i"},
    ):
        assert "one pass of rows over each block of a panel" in plan.space.why_not(row_of(plan, **several | other))


def test_a_block_and_the_next_one_fit_the_second_cache() -> None:
    plan = wide(16, 4096, 4096)
    large = row_of(plan, reg_i=4, reg_j=6, prefetch="next")
    assert plan.space.why_not(large) == ["a block of 1,572,864 bytes is asked for (at most 262,144)"]


def test_the_clock_hides_memory_behind_all_passes() -> None:
    plan = wide(16, 4096, 4096)
    found = [row_of(plan, reg_i=8, reg_j=3, block_p=512, prefetch=p) for p in ("no", "far", "next")]
    no, far, following = clock(plan, plan.space.values(np.array(found)))["total"]
    assert following < far < no
