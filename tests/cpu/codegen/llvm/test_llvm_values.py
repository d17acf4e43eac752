"""Every operation, function and cast of the language, compiled, against the interpreter: the same bits."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.compiled.llvm_kernels import kernel
from support.match.examples import examples

from autosched.codegen.interpret.interpreter import run_kernel
from autosched.codegen.llvm.machine.jit import load
from autosched.codegen.llvm.module import print_llvm
from autosched.codegen.tree.kernel import Assign, Buffer, For, Kernel, Lane
from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.value import Arith, Call, Cast, Comparison, FromIndex, Literal, Logical, Read, Select, Unary, Value
from autosched.logic import Const, Var

INTS = [d for d in DTYPES.values() if d.is_integer]
FLOATS = [d for d in DTYPES.values() if d.is_float]
INDEX = (Var("i") * 16 + Var("e"),)
SCALAR_INDEX = (Var("i"),)


def corners(dt: DType, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Values where arithmetic goes wrong, and random bits."""
    if dt.is_integer:
        low, high = dt.limits
        chosen = [low, low + 1, high, high - 1, 0, 1, 2, 3, 5, high // 2, low // 2, dt.bits, dt.bits - 1, -1, -2, -3, 7]
        chosen += [int(x) for x in rng.integers(low, high, 7, dtype=np.uint64 if low == 0 else np.int64)]
        return np.array([c for c in chosen if low <= c <= high], object).astype(dt.numpy)
    info = ml_dtypes.finfo(dt.numpy)
    tiny, most = float(info.smallest_subnormal), float(info.max)
    chosen = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        1.5,
        2.5,
        -3.5,
        126.5,
        1e3,
        1e-3,
        tiny,
        -tiny,
        3 * tiny,
        most,
        -most,
        most / 2,
        float("nan"),
        float("inf"),
        -float("inf"),
        float(info.smallest_normal),
        2.0**31,
        -(2.0**31),
        2.0**63,
        3e9,
        -129.0,
    ]
    chosen += [float(x) for x in rng.standard_normal(6) * 10]
    with np.errstate(all="ignore"):
        values = np.array(chosen, np.float64).astype(np.float32 if dt.name == "tf32" else dt.numpy)
    if dt.name == "tf32":
        values = (values.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return values


def pairs(dt: DType) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """All pairs of corners (a third value beside each), a multiple of 16 of them."""
    rng = np.random.default_rng(7)
    c = corners(dt, rng)
    both = np.array(list(itertools.product(range(len(c)), repeat=2)))
    extra = rng.integers(0, len(c), (-len(both) % 16, 2))
    both = np.concatenate([both, extra])
    return c[both[:, 0]], c[both[:, 1]], c[rng.integers(0, len(c), len(both))]


def run(k: Kernel, arrays: dict[str, Any]) -> dict[str, Any]:
    """The compiled kernel's outputs."""
    outputs = {n: np.zeros(k.buffers[n].shape, k.buffers[n].dtype.numpy) for n in k.program.outputs}
    every = arrays | outputs
    call = load(print_llvm(k)).function("main", len(k.main.buffers))
    call(*(every[b].ctypes.data for b in k.main.buffers))
    return outputs


def same(got: Any, want: Any, loose_zero: bool = False, ulps: int = 0) -> Any:
    """Equal bits, or both NaN; a zero's sign may differ where numpy's own is not fixed."""
    width = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[got.dtype.itemsize]
    ok = got.view(width) == want.view(width)
    if got.dtype.kind in "fV" or got.dtype.name.startswith(("bfloat16", "float8")):
        with np.errstate(all="ignore"):
            g, w = got.astype(np.float64), want.astype(np.float64)
        ok |= np.isnan(g) & np.isnan(w)
        if loose_zero:
            ok |= (g == 0) & (w == 0)
        if ulps:
            with np.errstate(all="ignore"):
                ok |= np.abs(g - w) <= ulps * np.abs(np.spacing(w))
    return ok


def check(values: dict[str, Value], inputs: dict[str, Any], lanes: bool, ulps: int = 0) -> None:
    """One kernel with an output for each value, over arrays of one length, by vectors or one element at a time."""
    n = len(next(iter(inputs.values())))
    dtypes = {v.tensor: v.dtype for value in values.values() for v in all_reads(value)}
    buffers = [Buffer(x, dtypes[x], (n,), "global") for x in inputs if x in dtypes]
    buffers += [Buffer(name, v.dtype, (n,), "global") for name, v in values.items()]
    index, lane = (INDEX, Lane("e", 16)) if lanes else (SCALAR_INDEX, None)
    body = tuple(Assign(name, index, at(v, index), lane) for name, v in values.items())
    loop = For("i", Const(0), Const(n // 16 if lanes else n), body)
    k = kernel(buffers, (loop,), list(values))
    arrays = {b.name: inputs[b.name] for b in buffers if b.name in inputs}
    got, want = run(k, arrays), run_kernel(k, arrays)
    for name in values:
        good = same(got[name], want[name], "min" in name or "max" in name, ulps)
        if not good.all():
            where = int(np.flatnonzero(~good)[0])
            shown = {x: a[where] for x, a in arrays.items()}
            pytest.fail(f"{name} at {shown}: compiled {got[name][where]!r}, interpreted {want[name][where]!r}")


def all_reads(v: Value) -> tuple[Read, ...]:
    from autosched.ir.value import reads

    return reads(v)


def at(v: Value, index: Any) -> Value:
    from dataclasses import replace

    from autosched.ir.value import map_value

    return map_value(v, lambda node: replace(node, index=index) if isinstance(node, Read) else node)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("lanes", [True, False])
@pytest.mark.parametrize("dt", INTS, ids=str)
def test_integer_operations(dt: DType, lanes: bool) -> None:
    x, y, _ = pairs(dt)
    a, b = Read("x", INDEX, dt), Read("y", INDEX, dt)
    ops = {
        "add": "+",
        "sub": "-",
        "mul": "*",
        "div": "//",
        "rem": "%",
        "shl": "<<",
        "shr": ">>",
        "and_": "&",
        "or_": "|",
        "xor": "^",
        "min": "min",
        "max": "max",
    }
    values: dict[str, Value] = {n: Arith(op, a, b, dt) for n, op in ops.items()}
    values |= {"neg": Unary("-", a, dt), "inv": Unary("~", a, dt), "abs": Call("abs", (a,), dt)}
    values["ones"] = Call("popcount", (a,), dt)
    u8 = DTYPES["u8"]
    for op in ("<", "<=", "==", "!=", ">", ">="):
        values[f"cmp{len(values)}"] = Select(Comparison(op, a, b), Literal(1, u8), Literal(0, u8), u8)
    check(values, {"x": x, "y": y}, lanes)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("lanes", [True, False])
@pytest.mark.parametrize("dt", FLOATS, ids=str)
def test_float_operations(dt: DType, lanes: bool) -> None:
    x, y, z = pairs(dt)
    a, b, c = (Read(n, INDEX, dt) for n in "xyz")
    ops = {"add": "+", "sub": "-", "mul": "*", "quot": "/", "min": "min", "max": "max", "div": "//", "rem": "%"}
    values: dict[str, Value] = {n: Arith(op, a, b, dt) for n, op in ops.items()}
    values |= {f: Call(f, (a,), dt) for f in ("abs", "sqrt", "round", "floor", "ceil")}
    values |= {"neg": Unary("-", a, dt), "fma": Call("fma", (a, b, c), dt)}
    u8 = DTYPES["u8"]
    for op in ("<", "<=", "==", "!=", ">", ">="):
        values[f"cmp{len(values)}"] = Select(Comparison(op, a, b), Literal(1, u8), Literal(0, u8), u8)
    check(values, {"x": x, "y": y, "z": z}, lanes)


@pytest.mark.parametrize("dt", FLOATS, ids=str)
def test_functions(dt: DType) -> None:
    rng = np.random.default_rng(3)
    x = np.concatenate([corners(dt, rng).astype(np.float64), rng.standard_normal(480) * 4])
    with np.errstate(all="ignore"):
        x = x[: len(x) // 16 * 16].astype(np.float32 if dt.name == "tf32" else dt.numpy)
    if dt.name == "tf32":
        x = (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    a = Read("x", INDEX, dt)
    values: dict[str, Value] = {f: Call(f, (a,), dt) for f in ("exp", "log", "tanh", "erf", "sigmoid", "rsqrt")}
    # In f64 two libraries differ by a few units in the last place; a narrower type rounds that away.
    check(values, {"x": x}, True, ulps=8 if dt.name == "f64" else 0)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("source", list(DTYPES.values()), ids=str)
def test_casts(source: DType) -> None:
    rng = np.random.default_rng(5)
    x = corners(source, rng)
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
    else:
        x = np.concatenate([x, (rng.integers(-(2**62), 2**62, 480) >> rng.integers(0, 62, 480)).astype(x.dtype)])
    if source.name == "tf32":
        x = (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    x = np.resize(x, -(-len(x) // 16) * 16)
    a = Read("x", INDEX, source)
    values: dict[str, Value] = {f"to_{d}": Cast(a, d) for d in DTYPES.values()}
    values |= {f"sat_{d}": Cast(a, d, True) for d in INTS}
    check(values, {"x": x}, True)


@pytest.mark.parametrize("dt", list(DTYPES.values()), ids=str)
def test_literals_and_indices(dt: DType) -> None:
    x = corners(DTYPES["s32"], np.random.default_rng(0))[:16]
    number: int | float = 1 if dt.bits == 1 else 3
    values: dict[str, Value] = {
        "lit": Arith("+", Literal(number, dt), Cast(Read("x", INDEX, DTYPES["s32"]), dt), dt),
        "idx": FromIndex(Var("i") * 7 + 12345, dt),
    }
    if dt.is_float:
        values["frac"] = Arith("*", Literal(0.125, dt), Cast(Read("x", INDEX, DTYPES["s32"]), dt), dt)
        values["inf"] = Literal(float("inf"), dt)
    check(values, {"x": x}, True)


LEAVES = st.sampled_from([Read("x", INDEX, DTYPES["s32"]), Read("y", INDEX, DTYPES["s32"])])


def grow(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    s32 = DTYPES["s32"]
    conditions = st.tuples(inner, inner, st.sampled_from(["<", "==", ">="])).map(lambda t: Comparison(t[2], t[0], t[1]))
    joined = st.one_of(
        conditions,
        st.tuples(conditions, conditions, st.sampled_from(["and", "or"])).map(lambda t: Logical(t[2], (t[0], t[1]))),
        conditions.map(lambda c: Logical("not", (c,))),
        st.integers(0, 20).map(lambda n: Var("e") < n),
        st.integers(0, 60).map(lambda n: Var("i") * 16 + Var("e") < n),
        st.integers(0, 5).map(lambda n: Var("i") >= n),
    )
    narrow = st.sampled_from([DTYPES["u8"], DTYPES["s16"], DTYPES["f32"], DTYPES["bf16"]])
    return st.one_of(
        st.tuples(inner, inner, st.sampled_from(["+", "-", "*", "//", "%", "&", "^", "min", "max"])).map(
            lambda t: Arith(t[2], t[0], t[1], s32)
        ),
        st.tuples(joined, inner, inner).map(lambda t: Select(t[0], t[1], t[2], s32)),
        st.tuples(inner, narrow, st.booleans()).map(
            lambda t: Cast(Cast(t[0], t[1], t[2] and t[1].is_integer), s32, t[1].is_float and t[2])
        ),
    )


@examples(40)
@given(st.lists(st.recursive(LEAVES, grow, max_leaves=6), min_size=1, max_size=4))
def test_expressions(trees: list[Value]) -> None:
    x, y, _ = pairs(DTYPES["s32"])
    check(
        {f"o{n}": Arith("+", t, Read("x", INDEX, DTYPES["s32"]), DTYPES["s32"]) for n, t in enumerate(trees)},
        {"x": x[:64], "y": y[:64]},
        True,
    )
