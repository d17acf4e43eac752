"""The one form of integer expressions keeps every value."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.examples import examples
from support.match.expressions import INTEGERS, expression, inputs

from autosched.ir.dtypes import DTYPES
from autosched.ir.value import Arith, Cast, Literal, Read
from autosched.logic import Const
from autosched.tensorize.body.arrays import evaluate
from autosched.tensorize.body.equal import canonical
from autosched.tensorize.body.wide import widened


@pytest.mark.slow
@examples(150)
@given(st.integers(0, 1 << 40))
def test_widened_is_the_same_function(seed: int) -> None:
    rng, integers = Random(seed), [*INTEGERS[2:], DTYPES["u64"]]
    value = expression(rng, rng.choice(integers), 4, integers)
    env = inputs(np.random.default_rng(seed), value)
    form = widened(value)
    assert form.dtype == value.dtype
    assert np.array_equal(*np.broadcast_arrays(evaluate(value, env), evaluate(form, env)))


def test_products_and_clamps_of_two_spellings_have_one_form():
    a, b, c = (Read(n, (Const(0),), DTYPES[t]) for n, t in (("a", "u8"), ("b", "s8"), ("c", "s32")))
    s16, s32, s64 = DTYPES["s16"], DTYPES["s32"], DTYPES["s64"]
    short = Cast(Arith("*", Cast(a, s16, False), Cast(b, s16, False), s16), s64, False)
    long = Arith("*", Cast(a, s64, False), Cast(b, s64, False), s64)
    sums = [Arith("+", Cast(c, s64, False), p, s64) for p in (short, long)]
    clamp = Arith("min", Arith("max", sums[0], Literal(-(2**31), s64), s64), Literal(2**31 - 1, s64), s64)
    assert canonical(widened(Cast(clamp, s32, False))) == canonical(widened(Cast(sums[1], s32, True)))
