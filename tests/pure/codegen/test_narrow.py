"""Assignments wider than a vector, cut into several: the same numbers, and no wide vector is left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.compiled.kernel_check import check_kernel
from support.programs.kernel_cases import inputs_for

from autosched.codegen.c import print_c
from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.lower import lower
from autosched.codegen.passes.narrow import narrow
from autosched.codegen.tree.kernel import Kernel
from autosched.ir import workload
from autosched.machine.catalogue import load_target
from autosched.tiling.planner.make_plans import make_plans


def _rows_of(name: str, width: int, **sizes: int) -> Kernel:
    """The first row of the first plan whose vectors have that many elements."""
    plan = make_plans(workload(name, **sizes), load_target("x86-avx512"), {}, threads=1)[0]
    for row in plan.space.enumerate().ids:
        schedule = plan.space.schedule(int(row))
        if {v for k, v in schedule.named.items() if k.endswith("vector")} == {width}:
            return lower(plan, schedule)
    raise AssertionError(width)


@pytest.mark.parametrize(("name", "sizes"), [("softmax", {"m": 2, "n": 77}), ("layer_norm", {"m": 2, "n": 45})])
@pytest.mark.parametrize("limit", [16, 32, 64])
def test_the_same_in_narrower_vectors(name: str, sizes: dict[str, int], limit: int) -> None:
    wide = replace(_rows_of(name, 32, **sizes), vector_bytes=limit)
    narrower = narrow(wide)
    check_kernel(narrower)
    arrays = inputs_for(wide.program)
    want, got = run_kernel(wide, arrays), run_kernel(narrower, arrays)
    for output in want:
        np.testing.assert_array_equal(got[output], want[output])
    text = print_c(wide).source
    assert f"vector_size({limit})" in text
    assert f"vector_size({2 * limit})" not in text


@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
def test_lanes_are_combined_in_ever_narrower_vectors(name: str) -> None:
    """Each half is added to the other as a vector of its own: no lane is computed that nobody reads, in C either."""
    narrower = narrow(replace(_rows_of(name, 32, m=2, n=64), vector_bytes=64))
    halves = {b.shape[-1] for b in narrower.buffers.values() if b.name.rsplit("_", 1)[-1].isdigit()}
    assert halves == {16, 8, 4, 2, 1}
    assert "select_f32x16((s32x16){-1" not in print_c(narrower).source  # no halves put together of two vectors


def test_what_fits_stays() -> None:
    kernel = _rows_of("softmax", 16, m=2, n=77)
    assert narrow(kernel) is kernel
