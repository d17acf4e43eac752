"""Random data: full integer ranges, floats in [-1, 1), both within what the program assumes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.examples import examples

import autosched.ir as ir
from autosched.errors import ProgramError
from autosched.ir.dtypes import DTYPES


@pytest.mark.parametrize("name", [n for n, d in DTYPES.items() if not d.scale])
def test_ranges(name: str) -> None:
    dtype = DTYPES[name]
    program = ir.parse(f"def f(A: {name}[4000], s: {name}, C: {name}[1]):\n    C[0] = A[0] + s\n")
    data = ir.random_inputs(program, np.random.default_rng(0))
    assert list(data) == ["A", "s"] or list(data) == ["A", "s", "C"]
    a = data["A"]
    assert a.dtype == dtype.numpy
    assert a.shape == (4000,)
    if dtype.is_integer:
        low, high = dtype.limits
        assert low <= min(int(x) for x in a) <= low + 2 ** max(0, dtype.bits - 6)
        assert high >= max(int(x) for x in a) >= high - 2 ** max(0, dtype.bits - 6)
    else:
        wide = a.astype(np.float64)
        most = dtype.greatest if dtype.finite else 1.0
        assert -most <= wide.min() < -0.9 * most
        assert 0.9 * most < wide.max() <= most
    arrays, scalars = ir.split_inputs(program, data)
    assert set(arrays) >= {"A"}
    assert set(scalars) == {"s"}
    ir.run(program, arrays, scalars)


@examples(60)
@given(st.sampled_from(list(DTYPES)), st.integers(-20, 20), st.integers(0, 30), st.integers(0, 5))
def test_assumptions_hold(name: str, low: int, width: int, seed: int) -> None:
    program = ir.parse(
        f"def f(A: {name}[50], C: f32[1]):\n    assume({low} <= A <= {low + width})\n    C[0] = f32(A[0])\n"
    )
    dtype = DTYPES[name]
    try:
        data = ir.random_inputs(program, np.random.default_rng(seed))
    except ProgramError:
        if dtype.is_integer:
            assert low > dtype.limits[1] or low + width < dtype.limits[0]
        else:
            assert not low <= float(dtype.numpy(low)) <= low + width
        return
    wide = data["A"].astype(np.float64)
    assert low <= wide.min()
    assert wide.max() <= low + width


def test_the_same_seed_gives_the_same_data() -> None:
    program = ir.workload("matmul", m=4, n=4, k=4)
    one, two = (ir.random_inputs(program, np.random.default_rng(5)) for _ in range(2))
    assert all((one[n] == two[n]).all() for n in one)
