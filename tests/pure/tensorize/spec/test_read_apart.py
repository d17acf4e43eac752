"""Descriptions that read what they overwrite: an operand of its own holds that, or the description is refused."""

from __future__ import annotations

import pytest

from autosched.errors import SpecError
from autosched.ir import parse
from autosched.tensorize import match
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.load import load_text

HORNER = """
isa: x86
requires: [avx2]
intrinsics:
  - name: horner
    semantics: |
      def horner(a: f32[8], b: f32[8], c: f32[8]):
          for i in range(8):
              c[i] = fma(a[i], c[i], b[i])
    operands:
      a: {register: {llvm: <8 x float>, c: __m256}}
      b: {register: {llvm: <8 x float>, c: __m256}}
      c: {register: {llvm: <8 x float>, c: __m256}}
    emit:
      llvm: "call <8 x float> @llvm.fma.v8f32(<8 x float> {a}, <8 x float> {c}, <8 x float> {b})"
      c: "_mm256_fmadd_ps({a}, {c}, {b})"
    timing: {latency: 4, interval: 0.5}
"""


def loaded(text: str) -> Intrinsic:
    (found,) = load_text(text, "horner.yaml")
    return found


def test_what_the_target_held_is_an_operand() -> None:
    made = loaded(HORNER)
    assert not made.accumulates
    assert made.program.parameters == ("a", "b", "c_before", "c")
    assert "c[i] = fma(a[i], c_before[i], b[i])" in str(made.program)
    assert made.operands["c_before"].registers == made.operands["c"].registers
    assert not made.operands["c_before"].written
    assert made.emit["c"] == "_mm256_fmadd_ps({a}, {c_before}, {b})"
    assert "{c}" not in made.emit["llvm"]


@pytest.mark.parametrize(
    ("statement", "verdict"),
    [
        ("V[i] = fma(A[i], V[i], B[i])", "match"),
        ("W[i] = fma(A[i], V[i], B[i])", "match"),
        ("V[i] = fma(A[i], B[i], V[i])", "match"),  # the same with other factors
        ("V[i] = A[i] * V[i] + B[i]", "no"),
    ],
)
def test_it_fits_in_place_and_elsewhere(statement: str, verdict: str) -> None:
    text = f"def f(A: f32[40], B: f32[40], V: f32[40], W: f32[40]):\n    for i in range(40):\n        {statement}\n"
    (found,) = match(parse(text), [loaded(HORNER)], "bitwise")
    assert found.verdict == verdict


def test_sums_stay_sums() -> None:
    made = loaded(HORNER.replace("fma(a[i], c[i], b[i])", "fma(a[i], b[i], c[i])"))
    assert made.accumulates
    assert set(made.operands) == {"a", "b", "c"}


@pytest.mark.parametrize(
    "change",
    [
        ("    emit:\n", "    pseudocode: |\n      def p(a: f32[8], b: f32[8], c: f32[8]):\n"
         "          for i in range(8):\n"
         "              c[i] = fma(a[i], c[i], b[i])\n    emit:\n"),
        ("    operands:", "    scope: core\n    operands:"),
    ],
)  # fmt: skip
def test_where_registers_may_not_differ_it_stays(change: tuple[str, str]) -> None:
    made = loaded(HORNER.replace(*change))
    assert set(made.operands) == {"a", "b", "c"}
    text = "def f(A: f32[8], B: f32[8], V: f32[8]):\n    for i in range(8):\n        V[i] = fma(A[i], V[i], B[i])\n"
    (found,) = match(parse(text), [made])
    assert found.reason is not None
    assert found.reason.fix == "let what it reads of c be an operand of its own, `c_before: f32[8]`"


def test_what_no_program_matches_is_refused_with_the_mend() -> None:
    bare = HORNER[: HORNER.index("    emit:")] + "    timing: {latency: 4, interval: 0.5}\n"
    with pytest.raises(SpecError, match="no program can match it: c is read in a way that is no accumulation") as told:
        loaded(bare)
    assert told.value.hint == "let what it reads of c be an operand of its own, `c_before: f32[8]`"
    own = bare.replace("c: f32[8]):", "c_before: f32[8], c: f32[8]):").replace("c[i], b[i]", "c_before[i], b[i]")
    assert not loaded(own).accumulates
