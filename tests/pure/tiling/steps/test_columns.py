"""Panels whose registers lie in columns: when they are offered, where their elements lie, and what the clock says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.match.agreement import disagreement
from support.plans import machine, plans_of

from autosched.codegen.lower import lower
from autosched.costmodel.analytic.clock import clock
from autosched.ir import workload
from autosched.tiling.plans.plan import Plan
from autosched.tiling.steps import COLUMNS, column_units

BASE = {"reg_j": 1, "pack_b": "columns"}


@pytest.fixture
def everything_streams(stream_all: Callable[[str], None]) -> None:
    stream_all("columns")


def wide(m: int, n: int, k: int, **types: str) -> Plan:
    return next(p for p in plans_of(workload("matmul", m=m, n=n, k=k, **types), machine()) if "zmm(i←j" in p.name)


def row_of(plan: Plan, **chosen: int | str) -> int:
    base: dict[str, int | str] = {d.name: d.domain[0] for d in plan.space.decisions}
    return plan.space.row_of({**base, **BASE, **chosen})


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("everything_streams")
@pytest.mark.parametrize(
    ("types", "chosen"),
    [
        ({}, {"reg_i": 3, "reg_j": 2}),
        ({}, {"reg_i": 2, "reg_j": 4, "block_j": 1, "block_p": 128, "unroll": 2}),
        ({}, {"reg_j": 3, "order": "p j i", "block_p": 128, "block_j": 1}),
        ({"t": "bf16"}, {"reg_i": 3, "reg_j": 2}),
        ({"a": "u8", "b": "s8"}, {"reg_i": 1, "reg_j": 5}),
    ],
    ids=str,
)
def test_columns_hold_what_a_panel_holds(types: dict[str, str], chosen: dict[str, int | str]) -> None:
    program = workload("matmul", m=5, n=75, k=330, **types)
    plan = next(p for p in plans_of(program, machine()) if "zmm(i←j" in p.name)
    prefix = "" if any(d.name == "reg_j" for d in plan.space.decisions) else "C."
    named = {f"{prefix}{k}": v for k, v in {**BASE, **chosen}.items()}
    base: dict[str, int | str] = {d.name: d.domain[0] for d in plan.space.decisions}
    row = plan.space.row_of({**base, **named})
    assert plan.space.legal(np.array([row]))[0]
    assert disagreement(plan, [row]) is None


@pytest.mark.usefixtures("everything_streams")
def test_a_column_is_one_stretch_along_the_depth() -> None:
    plan = wide(1, 64, 96)
    kernel = lower(plan, plan.space.schedule(row_of(plan, reg_j=2)))
    (panel,) = (b for b in kernel.buffers.values() if b.scope == "packed")
    assert panel.shape == (2, 2, 96, 16)  # tiles, columns, depth, lanes


def test_columns_of_whole_pages_begin_a_few_lines_apart() -> None:
    assert column_units(100, 32) == 100
    assert column_units(4096, 32) == 4096 + 8
    assert column_units(64, 64) == 64 + 4


@pytest.mark.usefixtures("everything_streams")
def test_one_register_is_no_column() -> None:
    plan = wide(1, 64, 96)
    rows = np.array([row_of(plan, reg_j=r) for r in (1, 2)])
    assert plan.space.legal(rows).tolist() == [False, True]


def test_they_are_offered_for_constants_that_come_from_memory() -> None:
    def kinds(n: int, k: int, name: str) -> tuple[int, ...]:
        plan = wide(1, n, k)
        return next(d.domain for d in plan.space.decisions if d.name == name)

    assert COLUMNS in kinds(4096, 4096, "pack_b")
    assert COLUMNS not in kinds(512, 512, "pack_b")  # 1 MiB
    assert COLUMNS not in kinds(4096, 4096, "pack_a")  # no constant


def test_the_clock_prefers_several_streams_from_memory() -> None:
    plan = wide(1, 4096, 4096)
    rows = np.array([row_of(plan, reg_j=8, pack_b=kind) for kind in ("columns", "panel")])
    columns, panel = clock(plan, plan.space.values(rows))["memory"].tolist()
    assert columns < panel
