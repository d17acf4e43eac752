"""The readings of a scalar body agree: numpy, bit-vectors, intervals, and the normal form."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st
from support.match.examples import examples
from support.match.expressions import INTEGERS, expression, inputs

from autosched.ir import parse
from autosched.ir.dtypes import DTYPES
from autosched.ir.oracle import numerics
from autosched.ir.value import Arith, Call, Cast, Literal, Read, Unary
from autosched.logic import Var
from autosched.tensorize.body.arrays import evaluate
from autosched.tensorize.body.bits import Bits
from autosched.tensorize.body.counterexample import find_difference, leaves
from autosched.tensorize.body.equal import canonical, exact_product, holds, prove_equal
from autosched.tensorize.body.intervals import exact_range


def leaf(name: str, dtype: str) -> Read:
    return Read(name, (Var("i"),), DTYPES[dtype])


@pytest.mark.slow
@examples(300)
@given(st.integers(0, 1 << 40))
def test_the_range_of_integers(seed: int) -> None:
    rng = Random(seed)
    value = expression(rng, rng.choice(INTEGERS), 3)
    got = evaluate(value, inputs(np.random.default_rng(seed), value))
    bounds = exact_range(value)
    assert bounds.low <= int(np.min(got)), (value, bounds)
    assert int(np.max(got)) <= bounds.high, (value, bounds)


@examples(150)
@given(st.integers(0, 1 << 40))
def test_bit_vectors_agree_with_numpy(seed: int) -> None:
    rng = Random(seed)
    value = expression(rng, rng.choice(INTEGERS), 2)
    env = inputs(np.random.default_rng(seed), value, count=6)
    reading = Bits()
    term = reading.value(value)
    column = np.broadcast_to(evaluate(value, env), (6 if env else 1,))
    for at in range(len(column)):
        fixed = [(v, z3.BitVecVal(int(env[k][at]), k.dtype.bits)) for k, v in reading.leaves.items()]
        number = z3.simplify(z3.substitute(term, *fixed))
        got = number.as_signed_long() if value.dtype.signed else number.as_long()
        assert got == int(column[at]), (value, {k: int(c[at]) for k, c in env.items()})


@pytest.mark.slow
@examples(150)
@given(st.integers(0, 1 << 40), st.sampled_from(["s8", "u8", "s16", "s32"]))
def test_answers_are_right(seed: int, name: str) -> None:
    """Whatever is proved agrees on random inputs; whatever differs has inputs that show it."""
    rng = Random(seed)
    a, b = (expression(rng, DTYPES[name], 2) for _ in range(2))
    proof = prove_equal(a, b, 500)
    if proof.status == "proved":
        env = inputs(np.random.default_rng(seed), a, b)
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


def test_an_address_that_a_condition_reads_is_an_input_too() -> None:
    """`T[I[i]] if I[i] < w else 0` is a function of both elements; of `T[I[i]]` alone the address is none."""
    text = "def f(I: s32[m], T: f32[w], Y: f32[m], *, m=4, w=8):\n    for i in range(m):\n        Y[i] = "
    asked = parse(f"{text}T[I[i]] if I[i] < w else 0.0\n").stages[0].assign.value
    plain = parse(f"{text}T[I[i]]\n").stages[0].assign.value
    assert [leaf.tensor for leaf in leaves(asked)] == ["I", "T"]
    assert [leaf.tensor for leaf in leaves(plain)] == ["T"]
    found = find_difference(asked, plain)
    assert found is not None
