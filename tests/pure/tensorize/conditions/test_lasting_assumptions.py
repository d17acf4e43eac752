"""An assumption about a tensor that the program writes says how the tensor begins, not what is read later."""

from __future__ import annotations

import pytest
from support.match.computes import made_up

from autosched.ir import parse
from autosched.ir.program import Program
from autosched.tensorize import Match, explain, match
from autosched.tensorize.conditions.stated import stated_ranges

PAIRS = """
def pairs(a: u8[4, 2], b: s8[4, 2], c: s32[4]):
    for i in range(4):
        c[i] = c[i] + s32(sat_s16(s32(a[i, 0]) * s32(b[i, 0]) + s32(a[i, 1]) * s32(b[i, 1])))
"""
PRODUCT = """
def product(A: s8[4, 8], V: u8[4, 8], W: u8[4, 8], D: s32[4]):
    assume(W <= 64)
    assume(-100 <= D <= 100)
    {before}
    for i, q in grid(4, 8):
        D[i] += s32(W[i, q]) * s32(A[i, q])
    {after}
"""
FILLED = "for i, q in grid(4, 8):\n        W[i, q] = V[i, q]"
HALF = "for i, q in grid(4, 8):\n        if q < 4:\n            W[i, q] = V[i, q]"


def product(before: str = "", after: str = "") -> Program:
    return parse(PRODUCT.format(before=before, after=after))


def on_pairs(program: Program) -> Match:
    """The sum's match with the instruction that clamps sums of pairs of bytes."""
    return next(m for m in match(program, [made_up(PAIRS)]) if m.stage.startswith("D"))


def test_what_the_program_only_reads_is_as_assumed() -> None:
    assert on_pairs(product()).verdict == "match"


@pytest.mark.parametrize(("before", "after"), [(FILLED, ""), (HALF, ""), ("", FILLED)])
def test_of_what_it_writes_nothing_is_known(before: str, after: str) -> None:
    """Pairs of 255 * 127 clamp."""
    program = product(before, after)
    found = on_pairs(program)
    assert found.reason is not None, explain(found)
    assert found.reason.code == "COMBINE_DIFFERS"
    assert "unless 0 <= W <= 128; the program writes W[" in found.reason.message
    (stage,) = (s for s in program.stages if s.assign.tensor == "D")
    assert not stated_ranges(program, tuple(r for r in stage.reads if r.tensor == "W"))


def test_an_accumulator_begins_as_assumed() -> None:
    """It is read before it is written."""
    program = product()
    (stage,) = program.stages
    (known,) = stated_ranges(program, (stage.target,), at_start=True).values()
    assert (known.low, known.high) == (-100, 100)
    assert not stated_ranges(program, (stage.target,))
