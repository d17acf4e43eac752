"""The normal form of a random expression has the same bits as the expression, on corner values of every kind:
infinities, NaN, zeros of both signs, subnormals; the loose form may differ in the sign of a zero."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.examples import examples
from support.match.expressions import FLOATS, INTEGERS, expression, inputs

from autosched.ir.dtypes import DTYPES
from autosched.ir.value import Arith, Call, Cast, Literal, Read, Unary, Value
from autosched.tensorize.body.arrays import evaluate
from autosched.tensorize.body.canonical import canonical, tells_zeros_apart
from autosched.tensorize.body.equal import SIGN_OF_ZERO, prove_equal


def differ(a: object, b: object, zeros: bool) -> bool:
    x, y = np.broadcast_arrays(np.asarray(a), np.asarray(b))
    if x.dtype.kind != "f":
        return not np.array_equal(x, y)
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    return bool((~same | (zeros & (np.signbit(x) != np.signbit(y)) & ~np.isnan(x))).any())


def check(rng: Random) -> None:
    value = expression(rng, rng.choice((*FLOATS, *INTEGERS[2:4])), rng.randint(1, 4))
    env = inputs(np.random.default_rng(rng.randrange(1 << 30)), value)
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
