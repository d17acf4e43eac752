"""Rows that begin anywhere in a line cost the copy engine a second line, which blocks of a cluster can share."""

from typing import Any

import numpy as np
import pytest
from support.cards.gpu_plans import plans

from autosched.costmodel.analytic.clock import clock
from autosched.costmodel.analytic.gpu.gpu_traffic import further_lines
from autosched.tiling.plans.plan import Plan

HALF = {"t": "f16", "out": "f16"}
ROW: dict[str, int | str] = {
    "reg_i": 1,
    "groups_i": 3,
    "reg_j": 1,
    "groups_j": 1,
    "stage_a": "descriptor",
    "block_p": 4,
    "unroll": 1,
    "swizzle": "128 B",
    "copy": "TMA",
    "stages": 3,
    "vector": "element",
    "roles": "producer",
    "persistent": "yes",
    "group": 1,
    "split": 1,
    "gather": "memory",
    "epilogue": "shared",
}


def plan(size: int) -> Plan:
    _, found = plans("matmul", "cuda/wgmma.m64n192k16.f16.f32", m=size, n=size, k=size, **HALF)
    return next(p for p in found if "i←i" in p.name)


@pytest.mark.parametrize(
    ("size", "span", "expected"), [(3072, 128, 0), (3008, 128, 0), (3000, 128, 7 / 8), (3000, 32, 1 / 8), (3040, 64, 0)]
)
def test_lines_beyond_those_that_rows_fill(size: int, span: int, expected: float) -> None:
    """Rows of 6,000 bytes begin at any multiple of 16, of 6,080 at 0 and 64."""
    nest = plan(size).tensor_parts[0].nest
    assert further_lines(nest, "a", np.array([float(span)]))[0] == expected


@pytest.mark.parametrize(("size", "pays"), [(3000, True), (3008, False), (3072, False)])
def test_clusters_pay_where_rows_are_no_whole_lines(size: int, pays: bool) -> None:
    """Measured on an H100: 106 and 86 us at 3000, 78 and 79 at 3008, 79 and 80 at 3072."""
    found = plan(size)
    rows: list[dict[str, Any]] = [ROW | {"cluster": c} for c in ("none", "2 along j")]
    alone, two = clock(found, found.space.values([found.space.row_of(r) for r in rows]))["total"]
    assert (two < 0.95 * alone) == pays
