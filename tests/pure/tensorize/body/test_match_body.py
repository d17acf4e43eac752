"""The readings of a scalar body agree: numpy, bit-vectors, intervals, and the normal form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st
from support.match.examples import examples

from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.oracle import numerics
from autosched.ir.value import Arith, Call, Cast, Comparison, Literal, Read, Select, Unary, Value
from autosched.logic import Var
from autosched.tensorize.body.arrays import evaluate
from autosched.tensorize.body.bits import Bits
from autosched.tensorize.body.counterexample import leaves
from autosched.tensorize.body.equal import canonical, exact_product, holds, prove_equal
from autosched.tensorize.body.intervals import exact_range

INTEGERS = ["u4", "s4", "u8", "s8", "u16", "s16", "u32", "s32", "s64"]
FLOATS = ["e4m3", "f16", "bf16", "f32"]


def leaf(name: str, dtype: str) -> Read:
    return Read(name, (Var("i"),), DTYPES[dtype])


@st.composite
def integers(draw: st.DrawFn, dtype: DType | None = None, depth: int = 3) -> Value:
    """A random integer value of a dtype (any, where it is None)."""
    dtype = dtype or DTYPES[draw(st.sampled_from(INTEGERS))]
    kind = draw(st.integers(0, 9)) if depth else 0
    if kind <= 1:
        return Read(draw(st.sampled_from(["A", "B"])) + dtype.name, (Var("i"),), dtype)
    if kind == 2:
        low, high = dtype.limits
        return Literal(draw(st.integers(max(low, -300), min(high, 300))), dtype)
    if kind == 3:
        return Unary(draw(st.sampled_from("-~")), draw(integers(dtype, depth - 1)), dtype)
    if kind <= 5:
        return Cast(draw(integers(None, depth - 1)), dtype, draw(st.booleans()))
    if kind == 6:
        return Call(draw(st.sampled_from(["abs", "popcount"])), (draw(integers(dtype, depth - 1)),), dtype)
    if kind == 7:
        other = DTYPES[draw(st.sampled_from(INTEGERS))]
        a, b = draw(integers(other, depth - 1)), draw(integers(other, depth - 1))
        test = Comparison(draw(st.sampled_from(["<", "<=", "==", "!=", ">", ">="])), a, b)
        return Select(test, draw(integers(dtype, depth - 1)), draw(integers(dtype, depth - 1)), dtype)
    op = draw(st.sampled_from(["+", "-", "*", "*", "//", "%", "<<", ">>", "&", "|", "^", "min", "max"]))
    return Arith(op, draw(integers(dtype, depth - 1)), draw(integers(dtype, depth - 1)), dtype)


@st.composite
def floats(draw: st.DrawFn, dtype: DType | None = None, depth: int = 3) -> Value:
    dtype = dtype or DTYPES[draw(st.sampled_from(FLOATS))]
    kind = draw(st.integers(0, 7)) if depth else 0
    if kind <= 1:
        return Read(draw(st.sampled_from(["A", "B"])) + dtype.name, (Var("i"),), dtype)
    if kind == 2:
        return Unary("-", draw(floats(dtype, depth - 1)), dtype)
    if kind <= 4:
        return Cast(draw(floats(None, depth - 1)), dtype)
    if kind == 5:
        return Call("abs", (draw(floats(dtype, depth - 1)),), dtype)
    op = draw(st.sampled_from(["+", "-", "*", "/", "min", "max"]))
    return Arith(op, draw(floats(dtype, depth - 1)), draw(floats(dtype, depth - 1)), dtype)


def inputs(seed: int, *values: Value) -> dict[Any, Any]:
    rng = np.random.default_rng(seed)
    env = {}
    for key in leaves(*values):
        if key.dtype.is_integer:
            low, high = key.dtype.limits
            numbers = [low, high, 0, 1, high - 1, *(int(rng.integers(low, high, endpoint=True)) for _ in range(27))]
            rng.shuffle(numbers)
            env[key] = np.array([numerics.wrap_int(n, key.dtype) for n in numbers], numerics.container(key.dtype))
        else:
            corners = [0.0, -0.0, 1.0, np.inf, 448.0, 2.0**-24]
            numbers = np.concatenate([corners, rng.standard_normal(26) * 10.0 ** rng.integers(-4, 5, 26)])
            rng.shuffle(numbers)
            env[key] = numerics.round_float(numbers, key.dtype)
    return env


SETTINGS = examples(300)


@pytest.mark.slow
@SETTINGS
@given(integers(), st.integers(0, 99))
def test_normal_form_and_range_of_integers(value: Value, seed: int) -> None:
    env = inputs(seed, value)
    got = evaluate(value, env)
    np.testing.assert_array_equal(got, evaluate(canonical(value), env), err_msg=f"{value}\n{canonical(value)}")
    bounds = exact_range(value)
    assert bounds.low <= int(np.min(got)), (value, bounds)
    assert int(np.max(got)) <= bounds.high, (value, bounds)


@pytest.mark.slow
@SETTINGS
@given(floats(), st.integers(0, 99))
def test_normal_form_of_floats(value: Value, seed: int) -> None:
    env = inputs(seed, value)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(evaluate(value, env), evaluate(canonical(value), env), err_msg=str(value))


@examples(150)
@given(integers(depth=2), st.integers(0, 99))
def test_bit_vectors_agree_with_numpy(value: Value, seed: int) -> None:
    env = inputs(seed, value)
    reading = Bits()
    term = reading.value(value)
    column = np.broadcast_to(evaluate(value, env), (32,)) if env else np.broadcast_to(evaluate(value, env), (1,))
    for at in range(min(6, len(column))):
        fixed = [(v, z3.BitVecVal(int(env[k][at]), k.dtype.bits)) for k, v in reading.leaves.items()]
        number = z3.simplify(z3.substitute(term, *fixed))
        got = number.as_signed_long() if value.dtype.signed else number.as_long()
        assert got == int(column[at]), (value, {k: int(c[at]) for k, c in env.items()})


@pytest.mark.slow
@examples(150)
@given(st.data(), st.sampled_from(["s8", "u8", "s16", "s32"]), st.integers(0, 99))
def test_answers_are_right(data: st.DataObject, name: str, seed: int) -> None:
    """Whatever is proved agrees on random inputs; whatever differs has inputs that show it."""
    a, b = (data.draw(integers(DTYPES[name], 2)) for _ in range(2))
    proof = prove_equal(a, b, 500)
    if proof.status == "proved":
        env = inputs(seed, a, b)
        assert np.all(evaluate(a, env) == evaluate(b, env)), (a, b, proof)
    elif proof.status == "differs":
        assert proof.counterexample is not None
        assert proof.counterexample["program"] != proof.counterexample["intrinsic"]


def test_methods() -> None:
    a, b = leaf("A", "u8"), leaf("B", "s8")
    wide = Arith("*", Cast(a, DTYPES["s32"]), Cast(b, DTYPES["s32"]), DTYPES["s32"])
    swapped = Arith("*", wide.right, wide.left, wide.dtype)
    narrow = Cast(Arith("*", Cast(b, DTYPES["s16"]), Cast(a, DTYPES["s16"]), DTYPES["s16"]), DTYPES["s32"])
    assert prove_equal(wide, swapped, 100).method == "structure"
    assert prove_equal(wide, narrow, 100).method == "exhaustion"
    x, y = leaf("X", "s16"), leaf("Y", "s16")
    four = Literal(4, DTYPES["s16"])
    times = Arith("*", Arith("+", x, y, x.dtype), four, x.dtype)
    shifted = Arith("<<", Arith("+", y, x, x.dtype), Literal(2, x.dtype), x.dtype)
    assert (prove_equal(times, shifted, 2000).status, prove_equal(times, shifted, 2000).method) == ("proved", "z3")
    floats_differ = prove_equal(Arith("+", leaf("F", "f32"), leaf("F", "f32"), DTYPES["f32"]), leaf("F", "f32"), 100)
    assert floats_differ.status == "differs"
    f = leaf("F", "f32")
    doubled = Arith("+", f, f, f.dtype)
    assert prove_equal(doubled, Arith("*", f, Literal(2.0, f.dtype), f.dtype), 100).method == "structure"


def test_rules_that_once_went_too_far() -> None:
    """Found by the random tests: |-x| is not |x| of unsigned numbers; the least of two zeros may have either's sign."""
    u = leaf("U", "u8")
    assert (
        prove_equal(Call("abs", (u,), u.dtype), Call("abs", (Unary("-", u, u.dtype),), u.dtype), 100).status
        == "differs"
    )
    x, y = leaf("X", "f32"), leaf("Y", "f32")
    assert canonical(Arith("min", x, y, x.dtype)) != canonical(Arith("min", y, x, x.dtype))


EXACT = [
    ("f16", "f16", "f32", True),
    ("bf16", "bf16", "f32", False),  # the product of two small ones underflows
    ("e4m3", "e5m2", "f32", True),
    ("f32", "f32", "f64", True),
    ("e4m3", "e4m3", "f16", False),  # 448 times 448 overflows
]


@pytest.mark.parametrize(("a", "b", "c", "exact"), EXACT)
def test_exact_products(a: str, b: str, c: str, exact: bool) -> None:
    term = Arith("*", Cast(leaf("A", a), DTYPES[c]), Cast(leaf("B", b), DTYPES[c]), DTYPES[c])
    assert exact_product(term) is exact


def test_holds_is_exact_for_all_eight_bit_values() -> None:
    for small in (d for d in DTYPES.values() if d.bits <= 8):
        raw = np.arange(256, dtype=np.uint8)
        if small.is_float:
            values = numerics.load(raw.view(small.numpy), small)
            values = values[np.isfinite(values)]
        else:
            low, high = small.limits
            values = np.arange(low, high + 1).astype(numerics.container(small))
        for wide in DTYPES.values():
            if not holds(small, wide):
                continue
            back = numerics.cast(numerics.cast(values, small, wide), wide, small)
            np.testing.assert_array_equal(back, values, err_msg=f"{small} in {wide}")
            assert not (small.is_float and wide.is_integer)
