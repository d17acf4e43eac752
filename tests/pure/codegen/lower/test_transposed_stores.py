"""Tiles whose lanes lie apart in memory and whose rows lie side by side are transposed before they are stored."""

from __future__ import annotations

import numpy as np
import pytest
from support.match.agreement import disagreement, expect
from support.plans import plans_of
from support.programs.transposed_stores import ONLY, PROGRAMS, rows_of_all_sizes

from autosched.codegen.analysis.access import classify
from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Assign, statements
from autosched.ir.value import reads
from autosched.tiling.plans.plan import Plan
from autosched.tiling.steps.cpu.register_transpose import chunks, store_cycles, transposed_row


def turned(name: str) -> tuple[Plan, str]:
    """The first plan that turns its stores, and the axis of its rows."""
    for plan in plans_of(PROGRAMS[name], only=ONLY):
        row = plan.tensor_parts and transposed_row(plan.tensor_parts[0].nest)
        if row:
            return plan, row.name
    raise AssertionError(f"no plan of {name} turns its stores")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_compute_the_program(name: str) -> None:
    plan, row = turned(name)
    assert disagreement(plan, rows_of_all_sizes(plan, row), expect(PROGRAMS[name])) is None


def test_lanes_leave_together() -> None:
    """15 rows, in tiles of 14, 8 and 7: each lane's elements are neighbours in one store of up to eight."""
    plan, row = turned("swapped")
    ids = plan.space.enumerate().ids
    values = plan.space.values(ids)
    for size in (14, 8, 7):
        schedule = plan.space.schedule(int(ids[(values[f"reg_{row}"] == size) & (values["block_p"] == 0)][0]))
        kernel = lower(plan, schedule)
        stores = [s for s in statements(kernel.main.body) if isinstance(s, Assign) and s.buffer == "C"]
        kinds = [classify(s.index, kernel.buffers["C"].shape, s.lane).kind for s in stores]
        assert "contiguous" in kinds
        assert ("strided" in kinds) == (15 % size == 1)  # a row that is left alone


@pytest.mark.parametrize("name", ["nchw_fused", "mixed", "updated"])
def test_fused_stages_read_pieces_of_rows(name: str) -> None:
    plan, row = turned(name)
    ids = plan.space.enumerate().ids
    values = plan.space.values(ids)
    schedule = plan.space.schedule(int(ids[values[f"reg_{row}"] == 7][0]))
    kernel = lower(plan, schedule)
    shape = kernel.buffers["R"].shape
    stores = [s for s in statements(kernel.main.body) if isinstance(s, Assign) and s.buffer in plan.program.outputs]
    found = [classify(r.index, shape, s.lane).kind for s in stores for r in reads(s.value) if r.tensor == "R"]
    assert "contiguous" in found


def test_what_is_stored_whole_is_not_turned() -> None:
    for name in ("swapped", "swapped_bytes"):
        for plan in plans_of(PROGRAMS[name], only=ONLY):
            for part in plan.tensor_parts:
                lanes = [m for a in part.nest.lanes for m, _, _ in a.members]
                assert (transposed_row(part.nest) is None) == ("i" in lanes)


@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_chunks_hold_each_row_once(lanes: int) -> None:
    for rows in range(1, 29):
        found = chunks(rows, lanes)
        assert [k for first, count, _ in found for k in range(first, first + count)] == list(range(rows))
        assert all(count <= size <= lanes and size & (size - 1) == 0 for _, count, size in found)


def test_more_rows_cost_less_each() -> None:
    assert store_cycles(np.array([1.0, 2.0, 4.0, 8.0]), 16.0).tolist() == [16.0, 9.0, 6.0, 5.0]
