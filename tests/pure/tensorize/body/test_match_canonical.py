"""The normal form of a random expression has the same bits as the expression, on corner values of every kind:
infinities, NaN, zeros of both signs, subnormals; the loose form may differ in the sign of a zero."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.examples import examples

from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.oracle import numerics
from autosched.ir.value import Arith, Call, Cast, Comparison, Literal, Read, Select, Unary, Value
from autosched.tensorize.body.arrays import evaluate
from autosched.tensorize.body.canonical import canonical, tells_zeros_apart
from autosched.tensorize.body.equal import SIGN_OF_ZERO, prove_equal

FLOATS = [DTYPES[n] for n in ("f16", "f32", "bf16", "e4m3", "e5m2", "f64", "tf32")]
INTEGERS = [DTYPES[n] for n in ("u8", "s8", "s16", "s32", "u32", "u4")]
LEAVES = 3


def expression(rng: Random, dtype: DType, depth: int) -> Value:
    if depth == 0 or rng.random() < 0.15:
        if rng.random() < 0.25:
            number = rng.choice((0, 1, 2, 3, -1, -2, 0.5, 0.25, -0.5, 4))
            return Literal(float(number) if dtype.is_float else max(int(number), dtype.limits[0]), dtype)
        return Read(f"{dtype}{rng.randrange(LEAVES)}", (), dtype)
    kind = rng.randrange(10)
    if kind < 4:
        ops = "+-*/" if dtype.is_float else "+-*&|^"
        op = rng.choice((*ops, "*", "+", "min", "max"))
        left = expression(rng, dtype, depth - 1)
        right = left if rng.random() < 0.1 else expression(rng, dtype, depth - 1)
        return Arith(op, left, right, dtype)
    if kind == 4:
        return Unary("-", expression(rng, dtype, depth - 1), dtype)
    if kind == 5 and dtype.is_float:
        return Call("fma", tuple(expression(rng, dtype, depth - 1) for _ in range(3)), dtype)
    if kind == 6:
        name = rng.choice(("abs", "sqrt", "rsqrt", "floor") if dtype.is_float else ("abs", "popcount"))
        return Call(name, (expression(rng, dtype, depth - 1),), dtype)
    if kind == 7:
        other = rng.choice([dtype, *INTEGERS])
        test = Comparison(rng.choice(("<", ">", ">=", "==")), *(expression(rng, other, depth - 1) for _ in range(2)))
        return Select(test, expression(rng, dtype, depth - 1), expression(rng, dtype, depth - 1), dtype)
    source = rng.choice(FLOATS + INTEGERS) if dtype.is_float else rng.choice(INTEGERS)
    return Cast(expression(rng, source, depth - 1), dtype, dtype.is_integer and rng.random() < 0.3)


def inputs(rng: np.random.Generator, count: int = 200) -> dict[Value, object]:
    env: dict[Value, object] = {}
    for dtype in FLOATS + INTEGERS:
        for n in range(LEAVES):
            leaf = Read(f"{dtype}{n}", (), dtype)
            if dtype.is_float:
                special = [0.0, -0.0, np.inf, -np.inf, np.nan]
                corners = [*special, 1.0, -1.0, 1.5, 3.0, 1e-7, -(2.0**-20), 240.0, 1e30, -6e4]
                drawn = np.concatenate([rng.choice(corners, count // 2), rng.standard_normal(count // 2)])
                env[leaf] = numerics.round_float(drawn, dtype)
            else:
                low, high = dtype.limits
                corners = [low, high, 0, 1, high // 2, max(low, -1)]
                near = rng.integers(low, high, count // 2, np.int64, endpoint=True)
                env[leaf] = np.concatenate([rng.choice(corners, count // 2), near]).astype(numerics.container(dtype))
    return env


def differ(a: object, b: object, zeros: bool) -> bool:
    x, y = np.broadcast_arrays(np.asarray(a), np.asarray(b))
    if x.dtype.kind != "f":
        return not np.array_equal(x, y)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    return bool((~same | (zeros & (np.signbit(x) != np.signbit(y)) & ~np.isnan(x))).any())


def check(rng: Random) -> None:
    value = expression(rng, rng.choice(FLOATS + INTEGERS[:3]), rng.randint(1, 4))
    env = inputs(np.random.default_rng(rng.randrange(1 << 30)))
    want = evaluate(value, env)
    assert not differ(want, evaluate(canonical(value), env), True), f"{value}\n{canonical(value)}"
    if not tells_zeros_apart(value):
        assert not differ(want, evaluate(canonical(value, True), env), False), f"{value}\n{canonical(value, True)}"


@pytest.mark.slow
@examples(400)
@given(st.integers(0, 1 << 40))
def test_the_normal_form_is_the_same_function(seed: int) -> None:
    check(Random(seed))


F = DTYPES["f32"]
A, B, C = (Read(n, (), F) for n in "ABC")
S, U = Read("S", (), DTYPES["s8"]), Read("U", (), DTYPES["u8"])
H, G = (Read(n, (), DTYPES["f16"]) for n in "HG")


def lit(number: float) -> Literal:
    return Literal(number, F)


def op(symbol: str, left: Value, right: Value) -> Value:
    return Arith(symbol, left, right, left.dtype)


EQUAL = {
    "a factor of one": (op("*", op("*", A, lit(1.0)), B), op("*", B, A)),
    "twice": (op("+", A, A), op("*", lit(2.0), A)),
    "half": (op("/", A, lit(2.0)), op("*", lit(0.5), A)),
    "minus in a factor": (op("*", Unary("-", A, F), B), Unary("-", op("*", A, B), F)),
    "minus one": (op("*", A, lit(-1.0)), Unary("-", A, F)),
    "minus in a quotient": (op("/", Unary("-", A, F), B), Unary("-", op("/", A, B), F)),
    "two casts": (Cast(Cast(H, F), DTYPES["f64"]), Cast(H, DTYPES["f64"])),
    "an exact product": (
        Cast(op("*", Cast(H, DTYPES["f64"]), Cast(G, DTYPES["f64"])), F), op("*", Cast(G, F), Cast(H, F)),
    ),
    "an exact product, fused": (
        Call("fma", (Cast(H, F), Cast(G, F), C), F), op("+", C, op("*", Cast(G, F), Cast(H, F))),
    ),
    "a magnitude": (Call("abs", (op("*", A, B),), F), op("*", Call("abs", (B,), F), Call("abs", (A,), F))),
    "literals": (op("*", A, op("/", lit(1.0), lit(4.0))), op("/", A, lit(4.0))),
}  # fmt: skip
LOOSE = {
    "a difference turned round": (Unary("-", op("-", A, B), F), op("-", B, A)),
    "plus zero": (op("+", A, lit(0.0)), A),
    "a minimum's sides": (op("min", A, B), op("min", B, A)),
    "whole numbers": (
        Cast(op("*", Cast(S, DTYPES["s32"]), Cast(U, DTYPES["s32"])), F), op("*", Cast(S, F), Cast(U, F)),
    ),
}  # fmt: skip
UNDECIDED = {
    "a distributed factor": (op("*", op("+", A, B), lit(2.0)), op("+", op("*", A, lit(2.0)), op("*", B, lit(2.0)))),
}


@pytest.mark.parametrize("name", EQUAL)
def test_floats_equal_bit_for_bit(name: str) -> None:
    proof = prove_equal(*EQUAL[name], 100)
    assert (proof.status, proof.method, proof.assumption) == ("proved", "structure", None)


@pytest.mark.parametrize("name", LOOSE)
def test_floats_equal_but_for_the_sign_of_a_zero(name: str) -> None:
    proof = prove_equal(*LOOSE[name], 100)
    assert (proof.status, proof.assumption) == ("proved", SIGN_OF_ZERO)


@pytest.mark.parametrize("name", UNDECIDED)
def test_what_no_rule_decides_is_unknown(name: str) -> None:
    assert prove_equal(*UNDECIDED[name], 100).status == "unknown"


def test_a_sign_that_a_quotient_shows_is_not_left_open() -> None:
    left, right = op("/", C, op("-", A, B)), op("/", C, Unary("-", op("-", B, A), F))
    assert prove_equal(left, right, 100).status == "differs"
