"""Panels of one cache block: filled inside the block loops they hold what the tiles then read, for every thread."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.match.agreement import disagreement, expect
from support.plans import machine, plans_of
from support.programs.block_panels import PROGRAMS, WINDOWS, blocked, small

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import For, Kernel, Stmt, bodies
from autosched.costmodel.analytic.clock import clock
from autosched.costmodel.analytic.cpu.copies import copy_seconds
from autosched.ir import parse
from autosched.tiling.steps import BLOCK, PANEL


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_compute_the_program(name: str, threads: int) -> None:
    program = PROGRAMS[name]
    plan = next(p for p in plans_of(program, small(), threads) if p.tensor_parts)
    ids = blocked(plan)
    rows = np.random.default_rng(threads).choice(ids, size=3, replace=False).tolist()
    assert disagreement(plan, rows, expect(program)) is None


def test_a_register_tile_of_all_lines_has_no_loop_over_them() -> None:
    program, target = parse(WINDOWS), small()
    memories = tuple(replace(m, bytes={"L1": 128, "L2": 2048}.get(m.name, m.bytes)) for m in target.memories)
    plans = plans_of(program, replace(target, memories=memories))
    plan = next(p for p in plans if "vdpbf16ps" in p.name and "r.q" in p.name)
    ids = blocked(plan)
    rows = ids[plan.space.values(ids)["reg_y"] == 4]
    assert disagreement(plan, rows[:: max(1, len(rows) // 6)].tolist(), expect(program)) is None


def test_a_panel_is_filled_inside_the_loops_of_its_blocks() -> None:
    plan = next(p for p in plans_of(PROGRAMS["f32"], small()) if p.tensor_parts)
    chosen = {"reg_i": 4, "reg_j": 1, "block_i": 0, "block_j": 1, "block_p": 0, "order": "j i p", "inner": "rows"}
    others = {"pack_a": "direct", "pack_b": "block", "unroll": 1, "threads": 1, "prefetch": 0, "prefetch_out": "no"}
    kernel = lower(plan, plan.space.schedule(plan.space.row_of(chosen | others)))
    assert loops_around("pack B", kernel) == ["jb"]
    lanes = plan.tensor_parts[0].nest.lanes[0].unit
    assert kernel.buffers["B_panel"].elements == 24 * lanes


def loops_around(note: str, kernel: Kernel) -> list[str]:
    """The variables of the loops around the one whose note begins so."""

    def find(body: tuple[Stmt, ...], around: list[str]) -> list[str] | None:
        for stmt in body:
            if isinstance(stmt, For) and stmt.note.startswith(note):
                return around
            inside = [*around, stmt.var] if isinstance(stmt, For) else around
            for inner in bodies(stmt):
                found = find(inner, inside)
                if found is not None:
                    return found
        return None

    found = find(kernel.main.body, [])
    assert found is not None
    return found


def test_what_a_cache_holds_is_not_cut() -> None:
    plan = next(p for p in plans_of(PROGRAMS["f32"], machine()) if p.tensor_parts)
    assert not any(BLOCK in d.domain for d in plan.space.decisions if d.name.startswith("pack_"))


def test_the_clock_shares_out_only_what_threads_split() -> None:
    """A panel of B's blocks is packed by each thread where they share rows, and shared where they share columns."""
    plan = next(p for p in plans_of(PROGRAMS["f32"], small(), 2) if p.tensor_parts)
    (part,) = plan.tensor_parts
    ids = plan.space.enumerate().ids
    values = plan.space.values(ids)
    b_only = (values["pack_b"] == BLOCK) & (values["pack_a"] != BLOCK) & (values["pack_a"] != PANEL)
    ids = ids[b_only & (values["refills_b"] == 1)]
    values = plan.space.values(ids)
    seconds = copy_seconds(part.nest, part.names, values, plan.target)
    split = next(d for d in plan.space.decisions if d.name == "split")
    columns = values["split"] == split.labels.index("j")
    two = values["threads"] == 2
    alone = seconds[~two].max()
    np.testing.assert_allclose(seconds[two & columns], alone / 2)
    np.testing.assert_allclose(seconds[two & ~columns], alone)
    assert np.isfinite(clock(plan, values)["total"]).all()
