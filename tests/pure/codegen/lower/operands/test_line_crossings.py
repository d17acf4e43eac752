"""Loads that touch two cache lines: those of rows that do not begin where a line does."""

from __future__ import annotations

import pytest
from support.plans import machine, plans_of

from autosched.ir import workload
from autosched.tiling.steps.common.layout import line_crossings


@pytest.mark.parametrize(
    ("columns", "share"),
    [(64, 0.0), (72, 0.5), (255, 15 / 16), (68, 0.75)],
    ids=["whole lines", "half lines", "no common start", "quarters"],
)
def test_share_of_crossing_loads(columns: int, share: float) -> None:
    """Vectors of 16 f32 along B's rows; a row of 72 begins in the middle of a line every second time."""
    program = workload("matmul", m=6, n=columns, k=8)
    plan = next(
        p for p in plans_of(program, machine()) if "zmm" in p.name and "j" in p.tensor_parts[0].nest.lanes[0].name
    )
    assert line_crossings(plan.tensor_parts[0].nest, "b", 64) == share


def test_a_splat_crosses_no_line() -> None:
    plan = next(p for p in plans_of(workload("matmul", m=6, n=64, k=7), machine()) if p.tensor_parts)
    assert line_crossings(plan.tensor_parts[0].nest, "a", 64) == 0.0
