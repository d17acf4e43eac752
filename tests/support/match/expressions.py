"""Random expressions over elements, and inputs of every kind for them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.oracle import numerics
from autosched.ir.value import Arith, Call, Cast, Comparison, Literal, Read, Select, Unary, Value
from autosched.tensorize.body.counterexample import leaves

FLOATS = [DTYPES[n] for n in ("f16", "f32", "bf16", "e4m3", "e5m2", "e2m1", "f64", "tf32")]
INTEGERS = [DTYPES[n] for n in ("u4", "s4", "u8", "s8", "u16", "s16", "u32", "s32", "s64")]
LEAVES = 3


def expression(rng: Random, dtype: DType, depth: int, integers: Sequence[DType] = INTEGERS) -> Value:
    """A value of a dtype; one of integers computes with integers alone."""

    def part(of: DType = dtype) -> Value:
        return expression(rng, of, depth - 1, integers)

    if depth == 0 or rng.random() < 0.15:
        if rng.random() < 0.25:
            number = rng.choice((0, 1, 2, 3, -1, -2, 0.5, 0.25, -0.5, 4, 200))
            if dtype.is_float:
                return Literal(float(numerics.round_float(number, dtype)), dtype)
            return Literal(min(max(int(number), dtype.limits[0]), dtype.limits[1]), dtype)
        return Read(f"{dtype}{rng.randrange(LEAVES)}", (), dtype)
    kind = rng.randrange(10)
    if kind < 4:
        ops = ("+", "-", "*", "/") if dtype.is_float else ("+", "-", "*", "//", "%", "<<", ">>", "&", "|", "^")
        op = rng.choice((*ops, "*", "+", "min", "max"))
        left = part()
        return Arith(op, left, left if rng.random() < 0.1 else part(), dtype)
    if kind == 4:
        return Unary("-" if dtype.is_float else rng.choice("-~"), part(), dtype)
    if kind == 5 and dtype.is_float:
        return Call("fma", (part(), part(), part()), dtype)
    if kind == 6:
        name = rng.choice(("abs", "sqrt", "rsqrt", "floor") if dtype.is_float else ("abs", "popcount"))
        return Call(name, (part(),), dtype)
    if kind == 7:
        other = rng.choice([dtype, *integers])
        test = Comparison(rng.choice(("<", "<=", ">", ">=", "==", "!=")), part(other), part(other))
        return Select(test, part(), part(), dtype)
    alike = [d for d in [*FLOATS, *integers] if d != dtype and d.bits == dtype.bits and d.finite and not dtype.padding]
    if kind == 8 and alike and (dtype.is_float or set(alike) <= set(integers)):
        return Call(f"bits_{dtype}", (part(rng.choice(alike)),), dtype)
    source = rng.choice([*FLOATS, *integers] if dtype.is_float else integers)
    return Cast(part(source), dtype, dtype.is_integer and rng.random() < 0.3)


def inputs(rng: np.random.Generator, *values: Value, count: int = 200) -> dict[Any, Any]:
    """Corners of each leaf's type beside ordinary numbers, in the type's container."""
    env: dict[Any, Any] = {}
    for leaf in leaves(*values):
        dtype = leaf.dtype
        if dtype.is_float:
            special = [0.0, -0.0, np.inf, -np.inf, np.nan]
            corners = [*special, 1.0, -1.0, 1.5, 3.0, 1e-7, -(2.0**-20), 240.0, 448.0, 1e30, -6e4]
            drawn = np.concatenate([rng.choice(corners, count // 2), rng.standard_normal(count // 2)])
            env[leaf] = numerics.round_float(drawn, dtype)
        else:
            low, high = dtype.limits
            kind = np.int64 if low else np.uint64
            corners = np.array([low, high, 0, 1, high - 1, high // 2, max(low, -1)], kind)
            near = rng.integers(low, high, count // 2, kind, endpoint=True)
            env[leaf] = np.concatenate([rng.choice(corners, count // 2), near]).astype(numerics.container(dtype))
    return env
