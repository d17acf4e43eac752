"""Copies with a border, and interleaved ones, of one channel or image at a time."""

from __future__ import annotations

import numpy as np
import pytest
from support.match.agreement import disagreement, expect
from support.plans import plans_of
from support.programs.copied_parts import PROGRAMS, parted

from autosched.codegen.lower import lower
from autosched.ir import workload
from autosched.tiling.steps import EACH_PART, part_axes


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_compute_the_program(name: str) -> None:
    plan, rows = parted(name)
    assert disagreement(plan, rows, expect(PROGRAMS[name])) is None


def test_a_copy_holds_the_channels_of_a_tile() -> None:
    plan, rows = parted("channels")
    for row in rows:
        schedule = plan.space.schedule(row)
        (copy,) = [b for b in lower(plan, schedule).buffers.values() if b.name == "X_padded"]
        threads = schedule.values["threads"]
        shape = copy.shape if threads == 1 else copy.shape[1:]
        assert copy.shape[0] == threads or threads == 1
        assert shape[:2] == (1, schedule.values["reg_o"])


def test_parts_are_of_loops_around_the_blocks() -> None:
    """A channel that is summed over is no part; nor are lines within a block copied one by one."""
    (plan, *_) = [p for p in plans_of(workload("conv2d", h=6, w=18, ci=3, co=4, layout="nchw")) if p.tensor_parts]
    nest = plan.tensor_parts[0].nest
    assert not any(part_axes(nest, o) for o, read in nest.mapping.operands.items() if read.tensor == "X")
    plan, _ = parted("channels")
    ids = plan.space.enumerate().ids
    values = plan.space.values(ids)
    assert not (values["lines"][values["copy_b"] == EACH_PART]).any()
    assert np.unique(values["lines"]).tolist() == [0, 1]
