"""Instructions with several results, and with terms that name elements of their operands one by one."""

from __future__ import annotations

from random import Random

import pytest
from fuzz.elements import parts_differ

from autosched.errors import SpecError
from autosched.ir import parse
from autosched.tensorize import match
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.spec.load import load_text

MINMAX = """
def minmax(a: s16[16], b: s16[16], lo: s16[16], hi: s16[16]):
    for i in range(16):
        lo[i] = min(a[i], b[i])
        hi[i] = max(a[i], b[i])
"""
COMPLEX = """
def product(a: s16[8, 2], b: s16[8, 2], c: s32[8, 2]):
    for i in range(8):
        c[i, 0] += s32(a[i, 0]) * s32(b[i, 0]) - s32(a[i, 1]) * s32(b[i, 1])
        c[i, 1] += s32(a[i, 0]) * s32(b[i, 1]) + s32(a[i, 1]) * s32(b[i, 0])
"""


def loaded(semantics: str, keys: str = "") -> Intrinsic:
    body = "".join(f"      {line}\n" for line in semantics.strip().splitlines())
    return load_text(f"isa: npu\nintrinsics:\n  - name: up\n    semantics: |\n{body}{keys}", "npu.yaml")[0]


def refused(semantics: str, keys: str = "") -> SpecError:
    with pytest.raises(SpecError) as caught:
        loaded(semantics, keys)
    return caught.value


def test_each_result_is_an_instruction_of_its_own() -> None:
    program = parse("""
def f(A: s16[40], B: s16[40], L: s16[40], H: s16[40]):
    for i in range(40):
        L[i] = A[i] if A[i] < B[i] else B[i]
        H[i] = max(B[i], A[i])
""")
    for result, fits in (("lo", "L"), ("hi", "H")):
        made = loaded(MINMAX, f"    result: {result}\n")
        assert made.accumulator.name == result
        assert list(made.operands) == ["a", "b", result]
        assert [m.stage for m in match(program, [made]) if m.verdict == "match"] == [fits]


def test_several_results_need_to_be_told_apart() -> None:
    error = refused(MINMAX)
    assert "it has 2 results, lo and hi" in error.message
    assert error.location is not None
    assert error.location.line == 8
    assert "[lo, hi]" in (error.hint or "")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("hi[i] = max(a[i], b[i])", "lo[i] = max(a[i], b[i])", "results overlap: 2 statements write lo"),
        ("max(a[i], b[i])", "max(a[i], lo[i])", "hi reads the result lo"),
    ],
)
def test_what_are_no_two_results(old: str, new: str, message: str) -> None:
    assert message in refused(MINMAX.replace(old, new), "    result: lo\n").message


def test_a_result_that_nothing_writes() -> None:
    assert "it writes lo and hi, not 'high'" in refused(MINMAX, "    result: high\n").message


def test_elements_of_one_operand_are_results() -> None:
    for n in range(2):
        made = loaded(COMPLEX, f"    result: c_{n}\n")
        assert list(made.operands) == ["a_0", "a_1", "b_0", "b_1", f"c_{n}"]
        assert parts_differ(parse(COMPLEX), made.program, -1, Random(n)) is None


def test_a_wrong_sign_is_refused_with_numbers_that_differ() -> None:
    program = parse("""
def f(R: s16[20], I: s16[20], U: s16[20], V: s16[20], C: s32[20]):
    for i in range(20):
        C[i] += s32(R[i]) * s32(U[i]) + s32(I[i]) * s32(V[i])
""")
    (found,) = match(program, [loaded(COMPLEX, "    result: c_0\n")], adapt=False)
    assert found.verdict == "no"
    assert found.reason is not None
    assert found.reason.code == "BODY_DIFFERS"
    assert found.reason.counterexample is not None
    assert found.reason.counterexample["program"] != found.reason.counterexample["intrinsic"]
    (found,) = match(program, [loaded(COMPLEX, "    result: c_1\n")])
    assert found.verdict == "match"  # its factors in other places


def test_an_operand_with_a_register_stays_whole() -> None:
    one = COMPLEX.replace("        c[i, 1] += s32(a[i, 0]) * s32(b[i, 1]) + s32(a[i, 1]) * s32(b[i, 0])\n", "")
    made = loaded(one.replace("c: s32[8, 2]", "c: s32[8, 1]"), "    operands: {a: {packed: [i, 1]}}\n")
    assert list(made.operands) == ["a", "b", "c"]


def test_the_terms_of_a_sum_may_stand_in_any_order_where_sums_may() -> None:
    made = loaded("""
def up(a: f32[8, 3], b: f32[8, 3], c: f32[8]):
    for i in range(8):
        c[i] += a[i, 0] * b[i, 0] + a[i, 1] * b[i, 1] - a[i, 2] * b[i, 2]
""", "    numerics: {accumulate: unordered}\n")
    program = parse("""
def f(A: f32[24, 3], B: f32[24, 3], C: f32[24]):
    for i in range(24):
        C[i] += A[i, 1] * B[i, 1] - A[i, 0] * B[i, 0] + A[i, 2] * B[i, 2]
""")
    (found,) = match(program, [made])
    assert (found.verdict, found.mappings[0].numerics) == ("match", "reassociated")
    assert str(found.mappings[0].certificate.error_bound).count("·B[i, ") == 3
    (found,) = match(program, [made], "bitwise")
    assert found.verdict == "no"
