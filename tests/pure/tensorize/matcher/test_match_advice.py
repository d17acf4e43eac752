"""What a refusal advises is what mends it."""

from __future__ import annotations

import autosched
from autosched.tensorize.match_types import Match
from autosched.tensorize.matcher.match import match
from autosched.tensorize.spec.load import load_text

MMA = """
isa: toy
intrinsics:
  - name: mm
    semantics: |
      def mma(a: s8[16, 16], b: s8[16, 8], c: s32[16, 8]):
          for i, j, k in grid(16, 8, 16):
              c[i, j] += s32(a[i, k]) * s32(b[k, j])
"""
TWO_SIGNS = """
isa: toy
intrinsics:
  - name: re
    semantics: |
      def mma(a: s8[16, 16, 2], b: s8[16, 16, 2], c: s32[16, 16]):
          for i, j, k in grid(16, 16, 16):
              c[i, j] += s32(a[i, k, 0]) * s32(b[k, j, 0]) - s32(a[i, k, 1]) * s32(b[k, j, 1])
"""
PACKED = TWO_SIGNS + "    operands:\n      a: {packed: [i, k, a.2]}\n      b: {packed: [k, j, b.2]}\n"
SPLIT = """
def split(A: s8[32, 32], B: s8[32, 32], D: s8[32, 32], E: s8[32, 32], C: s32[32, 32]):
    for i, j in grid(32, 32):
        C[i, j] = 0
        for k in range(32):
            C[i, j] += s32(A[i, k]) * s32(B[k, j])
            C[i, j] SIGN= s32(D[i, k]) * s32(E[k, j])
"""
ONE = SPLIT.replace("* s32(B[k, j])\n            C[i, j] SIGN=", "* s32(B[k, j]) -")


def answers(program: str, intrinsics: str) -> list[Match]:
    return match(autosched.parse(program, "p.py"), load_text(intrinsics, "toy.yaml"))


def test_two_sums_of_one_element_are_to_be_one_statement() -> None:
    for sign in "+-":
        for found in answers(SPLIT.replace("SIGN", sign), MMA):
            assert found.reason is not None
            assert str(found.reason.fix).startswith("add up both in one statement (`C[i, j] += …`), or write the")
    other = SPLIT.replace("SIGN", "min")
    other = other.replace("min= s32(D[i, k]) * s32(E[k, j])", "= min(C[i, j], s32(D[i, k]) * s32(E[k, j]))")
    for found in answers(other, MMA):
        assert found.reason is not None
        assert "one statement" not in str(found.reason.fix)


def test_terms_of_two_signs_are_matched_without_registers() -> None:
    (found,) = answers(ONE, TWO_SIGNS)
    assert found.verdict == "match"
    (refused,) = answers(ONE, PACKED)
    assert refused.reason is not None
    assert "without these each element named one by one is an operand of its own" in refused.reason.message
