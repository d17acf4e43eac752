"""The one form of integer expressions keeps every value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.examples import examples

from autosched.ir.dtypes import DTYPES
from autosched.ir.value import Arith, Cast, Literal, Read, Value
from autosched.logic import Const
from autosched.tensorize.body.arrays import evaluate
from autosched.tensorize.body.counterexample import leaves
from autosched.tensorize.body.equal import canonical
from autosched.tensorize.body.wide import widened

NAMES = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")


def _leaf(name: str) -> st.SearchStrategy[Value]:
    dtype = DTYPES[name]
    low, high = dtype.limits
    read = st.sampled_from([Read(f"{name}{n}", (Const(n),), dtype) for n in range(2)])
    return st.one_of(read, st.integers(max(low, -200), min(high, 200)).map(lambda n: Literal(n, dtype)))


def _values(depth: int) -> st.SearchStrategy[Value]:
    if depth == 0:
        return st.sampled_from(NAMES).flatmap(_leaf)

    def cast(v: Value) -> st.SearchStrategy[Value]:
        return st.builds(
            lambda n, s: Cast(v, DTYPES[n], s and n != v.dtype.name), st.sampled_from(NAMES), st.booleans()
        )

    def arith(v: Value) -> st.SearchStrategy[Value]:
        other = st.one_of(_leaf(v.dtype.name), _values(depth - 1).map(lambda w: Cast(w, v.dtype, False)))
        return st.builds(
            lambda op, w: Arith(op, v, w, v.dtype), st.sampled_from(["+", "-", "*", "min", "max", ">>"]), other
        )

    return _values(depth - 1).flatmap(lambda v: st.one_of(st.just(v), cast(v), arith(v)))


@pytest.mark.slow
@examples(150)
@given(_values(4), st.integers(0, 2**32))
def test_widened_is_the_same_function(value, seed):
    rng = np.random.default_rng(seed)
    env = {}
    for leaf in leaves(value):
        raw = rng.integers(0, 256, 8 * 64, dtype=np.uint8).view(leaf.dtype.numpy)
        low, high = leaf.dtype.limits
        env[leaf] = np.concatenate([raw[:60], np.array([low, high, 0, 1], leaf.dtype.numpy)])
    form = widened(value)
    assert form.dtype == value.dtype
    with np.errstate(all="ignore"):
        assert np.array_equal(*np.broadcast_arrays(evaluate(value, env), evaluate(form, env)))


def test_products_and_clamps_of_two_spellings_have_one_form():
    a, b, c = (Read(n, (Const(0),), DTYPES[t]) for n, t in (("a", "u8"), ("b", "s8"), ("c", "s32")))
    s16, s32, s64 = DTYPES["s16"], DTYPES["s32"], DTYPES["s64"]
    short = Cast(Arith("*", Cast(a, s16, False), Cast(b, s16, False), s16), s64, False)
    long = Arith("*", Cast(a, s64, False), Cast(b, s64, False), s64)
    sums = [Arith("+", Cast(c, s64, False), p, s64) for p in (short, long)]
    clamp = Arith("min", Arith("max", sums[0], Literal(-(2**31), s64), s64), Literal(2**31 - 1, s64), s64)
    assert canonical(widened(Cast(clamp, s32, False))) == canonical(widened(Cast(sums[1], s32, True)))
