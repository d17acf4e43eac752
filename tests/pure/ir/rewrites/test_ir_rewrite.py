"""Rewrites compute the same, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.examples import examples
from support.plans import CONV, small_programs

from autosched.ir import parse, random_inputs, run, workload
from autosched.ir.rewrites.rewrite import drop_rounding, drop_unit_axes, simplify
from autosched.ir.value import Arith, Cast


def same(program, rewritten) -> None:
    arrays = random_inputs(program, np.random.default_rng(5))
    want, found = run(program, arrays), run(rewritten, arrays)
    assert want.keys() == found.keys()
    for name, value in want.items():
        assert np.array_equal(value, found[name], equal_nan=value.dtype.kind == "f")


@examples(30)
@given(st.fixed_dictionaries({n: st.integers(1, 3) for n in ("h", "w", "ci", "co", "kh", "kw")}), st.integers(0, 2))
def test_unit_axes_are_dropped_and_nothing_else_changes(sizes: dict[str, int], pad: int) -> None:
    grown = sizes | {"h": sizes["h"] + sizes["kh"], "w": sizes["w"] + sizes["kw"], "pad": pad}
    program = parse(CONV, filename="conv.py", sizes=grown)
    rewritten, steps = simplify(program)
    assert all(a.extent > 1 for s in rewritten.stages for a in s.axes)
    assert bool(steps) == any(a.extent == 1 for s in program.stages for a in s.axes)
    same(program, rewritten)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", small_programs())
def test_simplified_programs_compute_the_same(name: str) -> None:
    program = small_programs()[name]
    same(program, simplify(program)[0])


def test_a_program_without_unit_axes_is_left_alone() -> None:
    program = workload("matmul", m=4, n=4, k=4, a="f32", b="f32")
    assert drop_unit_axes(program) is None
    assert simplify(program) == (program, ())


@pytest.mark.parametrize("cast", ["s32", "sat_s8", "u8", "sat_u16"])
@pytest.mark.parametrize("source", ["f32", "f64", "bf16"])
def test_a_conversion_rounds_by_itself(cast: str, source: str) -> None:
    out = cast.removeprefix("sat_")
    head = f"def f(A: {source}[40], B: {out}[40]):"
    program = parse(f"{head}\n    for i in range(40):\n        B[i] = {cast}(round(A[i] * A[i]))\n")
    step = drop_rounding(program)
    assert step is not None
    assert drop_rounding(step.after) is None
    assert isinstance(step.after.stages[0].assign.value, Cast)
    assert isinstance(step.after.stages[0].assign.value.operand, Arith)
    odd = [np.nan, np.inf, -np.inf, 0.5, 1.5, 2.5, -0.5, -1.5, 126.5, 127.5, -128.5, 255.5, 65535.5, 3e9, -3e9, 2.0**31]
    numbers = np.concatenate([odd, np.linspace(-300, 300, 24)])
    arrays = {"A": numbers.astype(program.tensors["A"].dtype.numpy)}
    for name, value in run(program, arrays).items():
        assert np.array_equal(value, run(step.after, arrays)[name])
