"""The clock on a GPU ranks published kernels as they ran: no constant of it comes from the table of shapes."""

from __future__ import annotations

from itertools import pairwise

import pytest

from autosched.costmodel.analytic.gpu.gpu_clock import TERMS
from benchmarks.published import fp8, ladder, median_error, spearman, table


def test_the_ladder_of_a_hand_written_kernel() -> None:
    """Seven configurations in the right order, each within 25 %."""
    lines = ladder()
    assert len(lines) == 7
    predicted = [line.predicted for line in lines]
    assert all(a < b for a, b in pairwise(predicted)), table(lines)
    assert all(abs(line.error) <= 0.25 for line in lines), table(lines)


@pytest.mark.slow
def test_shapes_in_fp8() -> None:
    lines = fp8(widths=(16, 32, 64, 128, 192))
    assert spearman(lines) >= 0.95, table(lines)
    assert median_error(lines) <= 0.10, table(lines)
    assert {line.bound for line in lines} <= set(TERMS)
    by_name = {line.name: line for line in lines}
    assert by_name["64 x 24576 x 1536"].bound == "dram"  # few rows: weights are read once, and that is all
    assert by_name["4096 x 4096 x 7168"].predicted == pytest.approx(1304, rel=0.25)
