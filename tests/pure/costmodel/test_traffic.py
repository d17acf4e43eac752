"""What a nest moves between caches: a block that is cut off at the end moves what is left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from support.plans import machine, plans_of

from autosched.costmodel.analytic.cpu.traffic import LoopColumn, traffic
from autosched.ir import workload

PAGE = 4096
PRODUCT = next(p for p in plans_of(workload("matmul", m=64, n=196, k=1024), machine()) if p.name.endswith("ymm(i←j)"))
DEPTHWISE = next(
    p for p in plans_of(workload("depthwise_conv2d", h=56, w=56, c=144), machine()) if p.name.endswith("zmm(i←o)")
)
(PART,) = DEPTHWISE.tensor_parts
IMAGE_BYTES = 56 * 56 * 144 * 4


def fetched(capacity: float, **chosen: int | str) -> float:
    base: dict[str, int | str] = {d.name: d.domain[0] for d in DEPTHWISE.space.decisions}
    row = DEPTHWISE.space.row_of({**base, "lines": "within", **chosen})
    values = DEPTHWISE.space.values(np.array([row]))
    (found,) = traffic(PART.nest, PART.names, values, (capacity,), PAGE)
    return float(found[0])


def test_a_last_block_that_is_smaller_moves_less() -> None:
    """Nine tiles of channels, once through: in blocks of eight, of four, or one by one."""
    capacity = IMAGE_BYTES / 2
    found = {block: fetched(capacity, block_o=block) for block in (1, 4, 8)}
    assert 1.9 * IMAGE_BYTES < found[1] < 2.3 * IMAGE_BYTES  # the image in, the image out
    assert max(found.values()) < 1.05 * min(found.values()), found


def test_what_trips_cover_is_never_less_than_one() -> None:
    axis = next(a for a in PART.nest.axes if a.name == "o")
    assert axis.units * axis.unit == 144
    loop = LoopColumn(axis, np.array([2.0, 1.0, 9.0, 3.0]), np.array([128.0, 192.0, 16.0, 16.0]))
    np.testing.assert_allclose(loop.covered, [1.125, 1.0, 9.0, 3.0])


def test_short_runs_of_lines_that_lie_apart_are_whole_lines() -> None:
    """Rows of 784 bytes, of which a tile takes 32 a step: two and a half times as many; in a panel they lie side by
    side."""
    (part,) = PRODUCT.tensor_parts
    base: dict[str, int | str] = {d.name: d.domain[0] for d in PRODUCT.space.decisions}
    rows = [PRODUCT.space.row_of({**base, "pack_b": kind, "block_p": 0}) for kind in ("direct", "panel")]
    values = PRODUCT.space.values(np.array(rows))
    (apart, side_by_side) = traffic(part.nest, part.names, values, (100 * 1024.0,), PAGE)[0]
    assert 1.4 < (apart - side_by_side) / (1024 * 196 * 4) < 1.6


def test_a_tile_that_walks_further_than_a_cache_holds_leaves_nothing_for_the_next() -> None:
    """A row of A and eight columns of B are 4 and 32 KiB: of a smaller cache each row reads columns anew."""
    (part,) = PRODUCT.tensor_parts
    base: dict[str, int | str] = {d.name: d.domain[0] for d in PRODUCT.space.decisions}
    rows = [PRODUCT.space.row_of({**base, "pack_b": "panel", "block_p": size}) for size in (0, 512)]
    values = PRODUCT.space.values(np.array(rows))
    rows_of_a, columns_of_b = 64 * 1024 * 4 * 25, 1024 * 200 * 4  # A once for each eight columns
    for capacity, times in ((40 * 1024.0, (1, 1)), (20 * 1024.0, (64, 1))):
        found = traffic(part.nest, part.names, values, (capacity,), PAGE)[0]
        np.testing.assert_allclose(found, rows_of_a + columns_of_b * np.array(times), rtol=0.1)


def product_of(n: int, **chosen: int | str) -> float:
    """Bytes into a cache of 256 KiB for 96 rows, a depth of 512 and n columns, 16 at a time; nothing is constant."""
    program = workload("matmul", m=96, n=n, k=512)
    loose = replace(program, tensors={name: replace(t, const=False) for name, t in program.tensors.items()})
    plan = next(p for p in plans_of(loose, machine()) if p.name.endswith("ymm(i←j)"))
    (part,) = plan.tensor_parts
    base: dict[str, int | str] = {d.name: d.domain[0] for d in plan.space.decisions}
    row = plan.space.row_of({**base, "reg_j": 2, "block_p": 256, "inner": "rows", **chosen})
    return float(traffic(part.nest, part.names, plan.space.values(np.array([row])), (256 * 1024.0,), PAGE)[0][0])


def test_rows_a_power_of_two_apart_share_few_sets_of_a_cache() -> None:
    """256 rows of 64 bytes are 16 KiB, which tiles of rows find again in any cache of 256; but not where they begin
    4 KiB apart, at the same set each (weights of a 7x7x512 convolution on Zen 3: 6.5 ms, and 2.9 from panels)."""
    assert product_of(1024) > 10 * product_of(1024 + 16)
    assert product_of(1024, pack_b="panel") < 1.1 * product_of(1024 + 16, pack_b="panel")
