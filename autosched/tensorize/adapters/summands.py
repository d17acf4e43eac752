"""A float of many digits as a sum of floats of few: products on an instruction that takes the narrower type.

    O[i, e] += P[i, j] * f32(V[j, e])          P: f32, V: bf16
    P_summands[0, i, j] = the upper 8 of the 24 digits of P[i, j], a bf16; 1 and 2: of what is left
    for s in range(3): O[i, e] += f32(P_summands[s, i, j]) * f32(V[j, e])

The sum of the summands is the number: digits are cut off, never rounded, so what is left is exact, too. Both types have
the same exponents. Of an infinite number the first summand is that, the others are 0. A summand of zero meets the other
factor, which must be finite. Digits below the least normal number may be lost: a summand is subnormal there.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.nodes import Assign, Axis, Tensor
from autosched.ir.value import Arith, Call, Cast, Comparison, Literal, Read, Select, Value, converted, is_value
from autosched.logic import Const, Var
from autosched.tensorize.adapters.proposal import Adapted, NoPlace, adapted, lemma
from autosched.tensorize.adapters.site import Site, nest, written
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.body.arrays import evaluate
from autosched.tensorize.body.counterexample import show_leaf

NAME = "summands of"
MOST = 4
"""Summands of a number: more take more products than they save."""


def count(of: DType, into: DType) -> int:
    """How many numbers of the type `into` any number of the type `of` is the sum of; 0 where their exponents differ or
    it would be many."""
    if not (of.is_float and into.is_float and of.special == into.special == "ieee"):
        return 0
    if (of.exponent, of.bias) != (into.exponent, into.bias) or into.mantissa >= of.mantissa:
        return 0
    needed = -(-(of.mantissa + 1) // (into.mantissa + 1))
    return needed if needed <= MOST and _sums_up(of, into, needed) else 0


def in_summands(facts: StageFacts, side: Value, other: Value, into: DType) -> Adapted:
    """The stage, whose term is `side * other`, with the element `side` as summands of the type `into`. Raises NoPlace
    where there are none, or where it is not known which elements there are."""
    needed = count(side.dtype, into)
    if not needed or not isinstance(side, Read) or any(is_value(i) for i in side.index):
        raise NoPlace("the factor is no element that has such summands")
    writers = [s for s in facts.program.stages if s.assign.tensor == side.tensor]
    bounds = [b for s in writers for a in s.axes for b in (a.lower, a.upper)]
    sizes = facts.program.tensors[side.tensor].shape
    if any(s.guards for s in (*writers, facts.original)) or not all(isinstance(b, Const) for b in (*bounds, *sizes)):
        raise NoPlace("which elements there are depends on more than whole loops")
    site = Site(facts.program, facts.original, facts.update)
    tensor = facts.program.tensors[side.tensor]
    name = site.fresh(f"{side.tensor}_summands")
    site.tensors[name] = Tensor(name, into, (Const(needed), *tensor.shape), intermediate=True)
    axes = [Axis(site.fresh(f"q{d}"), low, high) for d, (low, high) in enumerate(written(facts.program, tensor))]
    at = tuple(Var(a.name) for a in axes)
    element = Read(tensor.name, at, tensor.dtype)
    for k in range(needed):
        site.before.append(nest(axes, (Assign(name, (Const(k), *at), "=", summand(element, into, k)),)))
    axis = Axis(site.fresh("s"), Const(0), Const(needed))
    held = Read(name, (Var(axis.name), *side.index), into)
    old = facts.original.assign
    term = Arith("*", converted(held, old.value.dtype), converted(other, old.value.dtype), old.value.dtype)
    core = Assign(old.tensor, old.index, "+=", term, old.location)
    said = f"{show_leaf(side)} is the sum of {show_leaf(held)} at {axis.name} = 0 … {needed - 1}, for every significand"
    names = (f"{needed} {NAME} {side.tensor} in {into}",)
    made = adapted(facts.program, site.with_loop(axis, core), core, names, [lemma(said, "exhaustion")])
    return Adapted(made.rewrite, made.stage, made.names, made.obligations, reorders=True).zeroing([other])


def is_summands(adapter: str) -> bool:
    """Whether this is the name of such a rewriting."""
    return f" {NAME} " in adapter


def what_is_lost(side: Value, into: DType) -> str:
    """What is assumed of digits that no summand holds."""
    return f"digits of {show_leaf(side)} below 2^{1 - into.bias} may be lost"


def summand(value: Value, into: DType, number: int) -> Value:
    """The digits of a value that summand `number` has."""
    dtype = value.dtype
    for k in range(number):
        rest: Value = Arith("-", value, Cast(_upper(value, into), dtype), dtype)
        if k == 0:
            infinite = Comparison("==", Call("abs", (value,), dtype), Literal(float("inf"), dtype))
            rest = Select(infinite, Literal(0.0, dtype), rest, dtype)
        value = rest
    return _upper(value, into)


def _upper(value: Value, into: DType) -> Value:
    """The upper bits of a float, as one of fewer bits."""
    wide, narrow = DTYPES[f"u{value.dtype.bits}"], DTYPES[f"u{into.bits}"]
    bits = Call(f"bits_{wide}", (value,), wide)
    upper = Arith(">>", bits, Literal(value.dtype.bits - into.bits, wide), wide)
    return Call(f"bits_{into}", (Cast(upper, narrow),), into)


@cache
def _sums_up(of: DType, into: DType, needed: int) -> bool:
    """Whether every significand is the sum of its summands, of some exponent: others scale all of them."""
    bits = np.arange(1 << of.mantissa, dtype=np.uint64) + (of.bias << of.mantissa)
    element = Read("x", (), of)
    numbers = {element: bits.astype(f"u{of.bytes}").view(of.numpy)}
    total = sum(np.asarray(evaluate(Cast(summand(element, into, k), of), numbers), np.float64) for k in range(needed))
    return bool(np.array_equal(total, np.asarray(numbers[element], np.float64)))
