"""Value expressions that cover every operation, function and cast of the language, and data on which they go wrong."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from autosched.codegen.tree.kernel import Assign, Buffer, For, Function, Kernel, Lane
from autosched.ir.dtypes import BOOL, DTYPES, DType
from autosched.ir.nodes import Assign as ProgramAssign
from autosched.ir.nodes import Axis, Loop, Tensor
from autosched.ir.oracle.numerics import round_float, store
from autosched.ir.program import Program
from autosched.ir.value import (
    Arith,
    Call,
    Cast,
    Comparison,
    FromIndex,
    Literal,
    Logical,
    Read,
    Select,
    Unary,
    Value,
    map_value,
)
from autosched.logic import TRUE, Const, Var, ceil_div
from autosched.logic.walk import substitute_bool, substitute_int

INTEGERS = tuple(d for d in DTYPES.values() if d.is_integer)
COMPUTED = tuple(d for d in DTYPES.values() if not d.scale)
I = Var("i")  # noqa: E741
INT_OPS = ("+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^", "min", "max")
FLOAT_OPS = ("+", "-", "*", "/", "min", "max")
EXACT_FUNCTIONS = ("abs", "sqrt", "rsqrt", "round", "floor", "ceil")
LIBRARY_FUNCTIONS = ("exp", "log", "tanh", "erf", "sigmoid")
COMPARISONS = ("<", "<=", "==", "!=", ">", ">=")
Arrays = dict[str, np.ndarray[Any, Any]]


def read(name: str, dtype: DType) -> Read:
    return Read(name, (I,), dtype)


def operations(dtype: DType, functions: Iterable[str] = EXACT_FUNCTIONS) -> dict[str, Value]:
    """Each operator, comparison and function on `x y z` of one dtype."""
    x, y, z = (read(n, dtype) for n in "xyz")
    one, none = Literal(1, DTYPES["u8"]), Literal(0, DTYPES["u8"])
    values: dict[str, Value] = {
        f"compare{n}": Select(Comparison(op, x, y), one, none, one.dtype) for n, op in enumerate(COMPARISONS)
    }
    both = Logical("and", (Comparison("<", x, y), Logical("not", (Comparison("==", z, x),))))
    values["logic"] = Select(Logical("or", (both, Comparison(">", z, y))), x, y, dtype)
    if dtype.is_float:
        values |= {f"float{n}": Arith(op, x, y, dtype) for n, op in enumerate(FLOAT_OPS)}
        values |= {f"{name}_": Call(name, (x,), dtype) for name in functions}
        values |= {"negate": Unary("-", x, dtype), "fused": Call("fma", (x, y, z), dtype)}
    else:
        values |= {f"int{n}": Arith(op, x, y, dtype) for n, op in enumerate(INT_OPS)}
        values |= {"negate": Unary("-", x, dtype), "invert": Unary("~", x, dtype)}
        values |= {f"{name}_": Call(name, (x,), dtype) for name in ("abs", "popcount")}
    if dtype.name in ("f32", "f64"):
        values["scaled"] = Call("scalb", (x, y), dtype)
    if dtype.name in ("s32", "u32", "s64", "u64"):
        wide = DTYPES[f"f{dtype.bits}"]
        values["looked_up"] = Call("lookup", (x, *(Literal(n / 3, wide) for n in range(8))), wide)
    values["index"] = FromIndex(I * 5 - 700, dtype)
    return values


def casts(source: DType) -> dict[str, Value]:
    """Casts of `x` into every dtype, saturating ones too."""
    x = read("x", source)
    values: dict[str, Value] = {f"to_{d}": Cast(x, d) for d in COMPUTED}
    alike = {d: Call(f"bits_{d}", (x,), d) for d in DTYPES.values() if reads_bits_of(d, source)}
    values |= {f"read_as_{d}": Cast(v, DTYPES["f32"]) if d.scale else v for d, v in alike.items()}
    return values | {f"clamped_{d}": Cast(x, d, True) for d in INTEGERS}


def reads_bits_of(dtype: DType, source: DType) -> bool:
    """Whether `bits_` of a source has one answer: the bits of a NaN are left open."""
    return dtype != source and dtype.bits == source.bits and not dtype.padding and source.finite


def corners(dtype: DType) -> np.ndarray[Any, Any]:
    """Values at which arithmetic in `dtype` goes wrong, and some ordinary ones."""
    rng = np.random.default_rng(5)
    if dtype.is_integer:
        low, high = dtype.limits
        chosen = {
            low,
            low + 1,
            low // 2,
            -3,
            -2,
            -1,
            0,
            1,
            2,
            3,
            7,
            dtype.bits - 1,
            dtype.bits,
            high // 2,
            high - 1,
            high,
        }
        chosen |= {int(x) for x in rng.integers(low, high, 6, dtype=np.int64 if low else np.uint64)}
        kept = sorted(c for c in chosen if low <= c <= high)
        return np.array(kept, np.int64 if low else np.uint64).astype(dtype.numpy)
    if dtype.scale:
        return np.arange(256).astype(np.uint8).view(dtype.numpy)
    info = ml_dtypes.finfo(dtype.numpy)
    tiny, normal, most = float(info.smallest_subnormal), float(info.smallest_normal), float(info.max)
    edges = [
        0.0,
        1.0,
        0.5,
        1.5,
        2.5,
        126.5,
        127.5,
        1e-3,
        tiny,
        3 * tiny,
        normal,
        most,
        most / 2,
        2.0**31,
        2.0**63,
        2.0**64,
        3e9,
    ]
    edges += [float("inf"), *(float(v) for v in rng.standard_normal(4) * 10)]
    values = np.array([*edges, *(-v for v in edges), float("nan")], np.float64)
    return store(np.asarray(round_float(values, dtype)), dtype)


def corner_arrays(dtype: DType) -> Arrays:
    """`x y z`: all pairs of corners in x and y."""
    c = corners(dtype)
    pairs = np.array(list(itertools.product(range(len(c)), repeat=2)))
    third = np.random.default_rng(6).integers(0, len(c), len(pairs))
    return {"x": c[pairs[:, 0]], "y": c[pairs[:, 1]], "z": c[third]}


def kernel_of(name: str, values: dict[str, Value], inputs: dict[str, DType], n: int, lanes: int = 1) -> Kernel:
    """`output[i] = value` for each of `values` (which read at `i`), `lanes` at a time; its program says the same."""
    tensors = {t: Tensor(t, d, (Const(n),)) for t, d in inputs.items()}
    tensors |= {out: Tensor(out, v.dtype, (Const(n),)) for out, v in values.items()}
    stages = tuple(ProgramAssign(out, (I,), "=", v) for out, v in values.items())
    program = Program(name, "", tensors, {}, tuple(tensors), {}, {}, (Loop(Axis("i", Const(0), Const(n)), stages),))
    at = I * lanes + Var("e") if lanes > 1 else I
    lane = Lane("e", lanes) if lanes > 1 else None
    valid = at < n if n % lanes else TRUE

    def moved(value: Value) -> Value:
        here = {"i": at}
        return map_value(value, on_int=lambda x: substitute_int(x, here), on_bool=lambda x: substitute_bool(x, here))

    body = tuple(Assign(out, (at,), moved(v), lane, valid) for out, v in values.items())
    loop = For("i", Const(0), ceil_div(n, lanes), body)
    buffers = {t: Buffer(t, x.dtype, (n,), "global", t) for t, x in tensors.items()}
    return Kernel(name, program, buffers, (), Function("main", tuple(buffers), (loop,)))


def differing(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any], ulps: int = 0) -> np.ndarray[Any, Any]:
    """Where two arrays of one dtype differ; NaN equals NaN, zeros of either sign are equal."""
    if got.dtype.kind in "iu" or "int" in got.dtype.name:
        return np.asarray(got != want)
    a, b = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= ulps * np.abs(np.spacing(want if want.dtype.kind == "f" else b))
    return np.asarray(~((a == b) | (np.isnan(a) & np.isnan(b)) | near))


@st.composite
def small_values(draw: st.DrawFn, depth: int = 3) -> Value:
    """A random expression over `x_<dtype>` inputs: operators, casts, choices and functions that round exactly."""
    return draw(_of(draw(st.sampled_from(COMPUTED)), depth))


@st.composite
def _of(draw: st.DrawFn, dtype: DType, depth: int) -> Value:
    kinds = ["read", "read", "literal"]
    alike = [d for d in DTYPES.values() if reads_bits_of(dtype, d)]
    if depth and alike:
        kinds += ["bits"]
    if dtype.scale:
        kinds = ["read", *kinds[3:]]
    elif depth:
        kinds += ["arith"] * 4 + ["cast"] * 2 + ["select", "unary", "call", "index"]

    def part(of: DType = dtype) -> Value:
        return draw(_of(of, depth - 1))

    match draw(st.sampled_from(kinds)):
        case "read":
            return read(f"x_{dtype}", dtype)
        case "literal":
            if dtype.is_integer:
                return Literal(draw(st.integers(*dtype.limits)), dtype)
            number = draw(st.floats(-8, 8, width=32))
            return Literal(float(round_float(np.float64(number), dtype)), dtype)
        case "arith":
            return Arith(draw(st.sampled_from(FLOAT_OPS if dtype.is_float else INT_OPS)), part(), part(), dtype)
        case "cast":
            source = draw(st.sampled_from(list(DTYPES.values())))
            return Cast(part(source), dtype, dtype.is_integer and draw(st.booleans()))
        case "bits":
            return Call(f"bits_{dtype}", (part(draw(st.sampled_from(alike))),), dtype)
        case "select":
            other = draw(st.sampled_from(COMPUTED))
            condition: Any = Comparison(draw(st.sampled_from(COMPARISONS)), part(other), part(other))
            if draw(st.booleans()):
                condition = Logical(draw(st.sampled_from(["and", "or"])), (condition, I % 3 < 2), BOOL)
            return Select(condition, part(), part(), dtype)
        case "unary":
            return Unary("-" if dtype.is_float else draw(st.sampled_from("-~")), part(), dtype)
        case "call":
            if dtype.is_float and draw(st.booleans()):
                return Call("fma", (part(), part(), part()), dtype)
            return Call(
                draw(st.sampled_from(["abs", "sqrt", "round", "floor"] if dtype.is_float else ["abs", "popcount"])),
                (part(),),
                dtype,
            )
        case _:
            return FromIndex(I * draw(st.integers(-300, 300)) + draw(st.integers(-70000, 70000)), dtype)


RANDOM_INPUTS = MappingProxyType({f"x_{d}": d for d in DTYPES.values()})


def random_arrays(n: int, seed: int) -> Arrays:
    """Corners of every dtype, drawn at random: the inputs of `small_values`."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.choice(corners(d), n)
        if d.numpy in (np.float32, np.float64)
        else corners(d)[rng.integers(0, len(corners(d)), n)]
        for name, d in RANDOM_INPUTS.items()
    }
