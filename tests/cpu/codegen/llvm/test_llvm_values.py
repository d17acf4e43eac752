"""Every operation, function and cast of the language, compiled, against the interpreter: the same bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.compiled.llvm_kernels import run, same
from support.match.examples import examples
from support.programs.value_cases import (
    COMPUTED,
    LIBRARY_FUNCTIONS,
    RANDOM_INPUTS,
    I,
    casts,
    corner_arrays,
    corners,
    differing,
    kernel_of,
    operations,
    random_arrays,
    read,
    small_values,
)

from autosched.codegen.interpret.interpreter import run_kernel
from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.oracle.numerics import round_float, store
from autosched.ir.value import Arith, Call, Cast, FromIndex, Literal, Value

FLOATS = [d for d in COMPUTED if d.is_float]


def check(values: dict[str, Value], inputs: dict[str, Any], dtype: DType, lanes: int = 16, ulps: int = 0) -> None:
    """One kernel with an output for each value, over arrays of one dtype and length, `lanes` elements at a time."""
    k = kernel_of("k", values, dict.fromkeys(inputs, dtype), len(next(iter(inputs.values()))), lanes)
    got, want = run(k, inputs), run_kernel(k, inputs)
    for name, value in values.items():
        loose = isinstance(value, Arith) and value.op in ("min", "max")
        good = same(got[name], want[name], loose, ulps)
        if not good.all():
            where = int(np.flatnonzero(~good)[0])
            shown = {x: a[where] for x, a in inputs.items()}
            pytest.fail(f"{name} at {shown}: compiled {got[name][where]!r}, interpreted {want[name][where]!r}")


@pytest.mark.sampled(7)
@pytest.mark.parametrize("lanes", [16, 1])
@pytest.mark.parametrize("dt", COMPUTED, ids=str)
def test_operations(dt: DType, lanes: int) -> None:
    values = operations(dt, ("abs", "sqrt", "round", "floor", "ceil"))
    if dt.is_float:
        x, y = read("x", dt), read("y", dt)
        values |= {"quotient": Arith("//", x, y, dt), "rest": Arith("%", x, y, dt)}
    step = 1 if lanes > 1 else 4  # one element at a time takes the interpreter longer
    check(values, {name: array[::step].copy() for name, array in corner_arrays(dt).items()}, dt, lanes)


@pytest.mark.parametrize("dt", FLOATS, ids=str)
def test_functions(dt: DType) -> None:
    drawn = np.random.default_rng(3).standard_normal(480) * 4
    x = np.concatenate([corners(dt), store(np.asarray(round_float(drawn, dt)), dt)])
    values: dict[str, Value] = {f: Call(f, (read("x", dt),), dt) for f in (*LIBRARY_FUNCTIONS, "rsqrt")}
    # In f64 two libraries differ by a few units in the last place; a narrower type rounds that away.
    check(values, {"x": x}, dt, ulps=8 if dt.name == "f64" else 0)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("source", list(DTYPES.values()), ids=str)
def test_casts(source: DType) -> None:
    rng = np.random.default_rng(5)
    x = corners(source)
    if source.is_float and source.bits >= 16 and source.name != "tf32":
        with np.errstate(all="ignore"):
            # Random bits of every exponent, and values next to ties of narrower types.
            bits = rng.integers(0, 2**source.bits, 480, dtype=np.uint64).astype(f"u{source.bytes}")
            x = np.concatenate([x, bits.view(source.numpy)])
            near = rng.integers(0, 2**12, 480).astype(np.float64) / 16 * 2.0 ** rng.integers(-20, 20, 480)
            nudged = near * (1 + rng.integers(-1, 2, 480) * 2.0**-40)
            x = np.concatenate([x, nudged.astype(source.numpy)])
    elif source.bits <= 8:
        x = np.arange(2**source.bits, dtype=np.uint8).view(source.numpy)
    elif source.is_integer:
        x = np.concatenate([x, (rng.integers(-(2**62), 2**62, 480) >> rng.integers(0, 62, 480)).astype(x.dtype)])
    check(casts(source), {"x": x}, source)


@pytest.mark.parametrize("dt", COMPUTED, ids=str)
def test_literals_and_indices(dt: DType) -> None:
    x = Cast(read("x", DTYPES["s32"]), dt)
    values: dict[str, Value] = {
        "lit": Arith("+", Literal(1 if dt.bits == 1 else 3, dt), x, dt), "idx": FromIndex(I * 7 + 12345, dt)
    }  # fmt: skip
    if dt.is_float:
        eighth = float(round_float(np.float64(0.125), dt))
        values |= {"frac": Arith("*", Literal(eighth, dt), x, dt), "inf": Literal(float("inf"), dt)}
    check(values, {"x": corners(DTYPES["s32"])}, DTYPES["s32"])


@examples(25)
@given(st.lists(small_values(), min_size=1, max_size=4), st.sampled_from([1, 8]), st.integers(0, 2**31))
def test_random_expressions(values: list[Value], lanes: int, seed: int) -> None:
    outputs = {f"y{n}": value for n, value in enumerate(values)}
    k = kernel_of("random", outputs, dict(RANDOM_INPUTS), 37, lanes)
    arrays = random_arrays(37, seed)
    got, want = run(k, arrays), run_kernel(k, arrays)
    for name, value in outputs.items():
        assert not differing(got[name], want[name]).any(), value
