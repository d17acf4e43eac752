"""The interpreter's values against the oracle's: scalar and by lanes, on corners of every dtype."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.compiled.kernel_check import check_kernel
from support.match.examples import examples
from support.programs.value_cases import (
    RANDOM_INPUTS,
    casts,
    corners,
    differing,
    kernel_of,
    operations,
    random_arrays,
    small_values,
)

from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.tree.text import print_kernel
from autosched.ir import parse, run
from autosched.ir.dtypes import DTYPES
from autosched.ir.value import Value


@examples(60)
@given(small_values(), st.sampled_from([1, 4, 5]), st.integers(0, 2**31))
def test_random_expressions(value: Value, lanes: int, seed: int) -> None:
    kernel = kernel_of("random", {"y": value}, dict(RANDOM_INPUTS), 13, lanes)
    check_kernel(kernel)
    arrays = random_arrays(13, seed)
    got, want = run_kernel(kernel, arrays)["y"], run(kernel.program, arrays)["y"]
    assert not differing(got, want).any()


@pytest.mark.sampled(5)
@pytest.mark.parametrize("dtype", ["s4", "u8", "s32", "u64", "e4m3", "bf16", "tf32", "f32"])
def test_values_print_as_the_language_that_they_came_from(dtype: str) -> None:
    """A printed value parses back to a program that computes the same."""
    d = DTYPES[dtype]
    c = corners(d)
    arrays = {"x": c, "y": c[::-1].copy(), "z": np.roll(c, 3)}
    for values, inputs in ((operations(d), "xyz"), (casts(d), "x")):
        used = {name: arrays[name] for name in inputs}
        kernel = kernel_of("k", values, dict.fromkeys(inputs, d), len(c))
        lines = [line.strip() for line in print_kernel(kernel).splitlines() if "[i] = " in line]
        assert len(lines) == len(values)
        tensors = ", ".join(f"{n}: {kernel.buffers[n].dtype}[{len(c)}]" for n in kernel.buffers)
        text = f"def k({tensors}):\n    for i in range({len(c)}):\n" + "".join(f"        {line}\n" for line in lines)
        got, want = run(parse(text), used), run_kernel(kernel, used)
        for name in values:
            assert not differing(got[name], want[name]).any(), name
