"""Fixes are derived and matched again; near misses are nearer; many refusals take few lines."""

from __future__ import annotations

import pytest
from support.match.computes import CATALOGUE, made_up

from autosched.ir import parse
from autosched.tensorize import explain, match, to_json
from autosched.tensorize.explanation.fix import with_fix
from autosched.tensorize.explanation.near import far, near, near_json, near_lines, refusals

HEAD = "def f(A: {a}[16, 64], B: {b}[64, 16], C: {c}[16, 16]):\n    for i, j, k in grid(16, 16, 64):\n        {body}\n"
PRODUCT = "C[i, j] += {c}(A[i, k]) * {c}(B[k, j])"


def asked(name: str, a: str, b: str, c: str, body: str = PRODUCT, numerics: str = "reassociated"):  # type: ignore[no-untyped-def]
    program = parse(HEAD.format(a=a, b=b, c=c, body=body.format(c=c)))
    (found,) = match(program, [CATALOGUE[name]], numerics)
    return found


WMMA, PLAIN = "cuda/wmma.m16n16k16.f16.f32", "C[i, j] += A[i, k] * B[k, j]"
NARROW, ONCE = "C[i, j] += s32(A[i, k] * B[k, j])", "C[i, j] = s32(A[i, 0]) * s32(B[0, j])"
FIXED = {
    "casts": ("cuda/dp4a.s8.s8", "s8", "s8", "s32", NARROW, "add s32(A[i, k]) * s32(B[k, j])"),
    "operands": (WMMA, "f32", "f32", "f32", PLAIN, "declare A as f16"),
    "accumulator": (WMMA, "f16", "f16", "f16", PLAIN, "convert C to f16 afterwards"),
    "accumulation": ("x86/vpdpbusd.zmm", "u8", "s8", "s32", ONCE, "accumulate with +="),
}


@pytest.mark.parametrize("name", FIXED)
def test_a_fix_is_matched_again(name: str) -> None:
    *question, fix = FIXED[name]
    found = asked(*question)
    assert found.verdict == "no", explain(found)
    after = with_fix(found)
    assert after.reason is not None
    assert after.reason.verified
    assert fix in (after.reason.fix or ""), after.reason.fix
    assert "verified" in explain(after)
    told = to_json(after)["explanation"]
    assert told["fix_verified"] is True
    assert told["proved"], "what holds of the mapping that got furthest"


def test_an_assumption_makes_a_conditional_match_unconditional() -> None:
    found = asked("x86/vpmaddubsw.vpmaddwd.ymm", "u8", "s8", "s32")
    assert found.verdict == "conditional"
    assert "assume(0 <= A <= 128) (verified" in explain(with_fix(found))


@pytest.mark.parametrize(
    ("known", "fix"),
    [
        ("", "add assume(0 <= E <= 3) and assume(distinct(E, 2)) "),
        ("    assume(distinct(E, 2))\n", "add assume(0 <= E <= 3) "),
        ("    assume(E <= 3)\n", "add assume(distinct(E, 2)) "),
    ],
)
def test_a_selection_is_told_all_that_it_needs(known: str, fix: str) -> None:
    """It was told to declare B as u8: an index that may be 255 is no selection, and gave no way to a match."""
    program = parse(f"""
def f(A: s8[16, 32], E: u8[16, 32], B: s8[16, 4, 8], C: s32[16, 8]):
{known}    for i, j, q in grid(16, 8, 32):
        C[i, j] += s32(A[i, q]) * s32(B[q // 2, s32(E[i, q]), j])
""")
    (found,) = match(program, [CATALOGUE["cuda/mma.sp.m16n8k64.s8.s8.s32"]])
    assert f"fix: {fix}" in explain(with_fix(found))


def test_a_longer_reduction_is_a_fix_where_nothing_pads() -> None:
    odd = made_up("def m(a: u8[4], c: s32[1]):\n for i, k in grid(1, 4):\n  c[i] += s32(a[k]) * 2 + 1")
    program = parse(
        "def f(A: u8[3, 7], C: s32[3]):\n    for i, k in grid(3, 7):\n        C[i] += s32(A[i, k]) * 2 + 1\n"
    )
    after = with_fix(match(program, [odd])[0])
    assert after.reason is not None
    assert after.reason.fix == "run k over 8 in place of 7 (14.3 % more work)"
    assert after.reason.verified


def test_a_stage_that_becomes_a_sum_is_found_under_its_new_name() -> None:
    program = parse(
        "def f(A: u8[8, 64], B: s8[64, 16], C: s32[8, 16]):\n for i, j in grid(8, 16):\n  C[i, j] = 0\n"
        "  for k in range(64):\n   C[i, j] = s32(A[i, k]) * s32(B[k, j])\n"
    )
    found = next(m for m in match(program, [CATALOGUE["x86/vpdpbusd.zmm"]]) if m.stage == "C.2")
    after = with_fix(found)
    assert after.reason is not None
    assert after.reason.verified


@pytest.mark.parametrize("term", ["exp(f32(A[i, k]))", "f32(A[i, k]) * f32(B[k, j]) + 1.0"])
def test_what_computes_something_else_is_no_fix(term: str) -> None:
    after = with_fix(asked(WMMA, "f16", "f16", "f32", f"C[i, j] += {term}"))
    assert after.reason is not None
    assert after.reason.fix is None


def test_a_change_that_is_not_enough_says_what_comes_next() -> None:
    found = asked("x86/vpdpbusd.zmm", "s8", "s8", "s32", "C[i, j] += s32(A[i, k]) * s32(B[k, j]) >> 4")
    after = with_fix(found)
    assert after.reason is not None
    assert not after.reason.verified
    assert "declare A as u8" in (after.reason.fix or "")
    assert "not enough by itself: then BODY_DIFFERS" in (after.reason.fix or "")


def test_no_fix_is_claimed_where_none_was_found() -> None:
    found = asked("x86/vpdpbusd.zmm", "u8", "s8", "s32", "C[i, j] += s32(A[i, k]) // s32(B[k, j])")
    after = with_fix(found)
    assert after.reason is not None
    assert after.reason.fix is None or after.reason.verified or after.reason.fix == (found.reason and found.reason.fix)


def test_near_misses_are_nearer_and_of_one_kind_each() -> None:
    found = asked("x86/vpdpwssd.zmm", "u8", "s8", "s32", numerics="bitwise")
    others = match(found.program, [CATALOGUE[n] for n in CATALOGUE if n.startswith("x86/")], adapt=False)
    nearest = near(match(found.program, [CATALOGUE["x86/vpdpwssd.zmm"]], adapt=False)[0], others)
    assert nearest
    assert all(far(m) < (3, -5, 2) for m in nearest)
    assert nearest[0].verdict == "match"
    kinds = {(*(o.dtype.name for o in m.intrinsic.operands.values()), m.verdict) for m in nearest}
    assert len(kinds) == len(nearest)
    assert near_lines(nearest)[0].startswith(f"  near: {nearest[0].intrinsic.name} matches with ")
    assert near_json(nearest)[0]["verdict"] == "match"


def test_many_refusals_in_few_lines() -> None:
    program = parse("def f(X: f32[9, 9], C: f32[9]):\n    for i, k in grid(9, 9):\n        C[i] = max(C[i], X[i, k])\n")
    found = match(program, [CATALOGUE[n] for n in CATALOGUE if n.startswith("cuda/wmma")])
    assert len(found) > 20
    lines = refusals(found)
    assert len(lines) <= 4
    assert sum("DTYPE" in line for line in lines) <= 1


SMALL = "def f(A: s8[8, 8], B: s8[8, 8], C: s32[8, 8]):\n for i, j, p in grid(8, 8, 8):\n  C[i, j] += "
UNIT = "def m(a: {t}[4, 4], b: s8[4, 4], c: s32[4, 4]):\n for i, j, k in grid(4, 4, 4):\n  c[i, j] += "


def test_a_cast_that_the_description_misplaces_is_no_mistake_of_the_program() -> None:
    """Following "add s32(A[i, p] * B[p, j])" would have broken a right program."""
    program = parse(SMALL + "s32(A[i, p]) * s32(B[p, j])\n")
    unit = made_up(UNIT.format(t="s8") + "s32(a[i, k] * b[k, j])\n")
    (found,) = match(program, [unit], adapt=False)
    assert found.reason is not None
    assert found.reason.fix is None
    reason = with_fix(found).reason
    assert reason is not None
    assert reason.verified
    assert reason.fix is not None
    assert reason.fix.startswith("describe test/made.up with s32(a[i, k]) * s32(b[k, j]), if that is what it computes")


def test_a_cast_that_the_program_misplaces_is_mended_there() -> None:
    program = parse(SMALL + "s32(A[i, p] * B[p, j])\n")
    (found,) = match(program, [made_up(UNIT.format(t="s8") + "s32(a[i, k]) * s32(b[k, j])\n")], adapt=False)
    reason = with_fix(found).reason
    assert reason is not None
    assert reason.fix == "add s32(A[i, p]) * s32(B[p, j]) to C[i, j] instead, which wraps or rounds later"


def test_a_counterexample_of_types_shows_what_is_computed() -> None:
    program = parse(SMALL + "3 * s32(A[i, p]) * s32(B[p, j])\n")
    unit = made_up(UNIT.format(t="u8") + "3 * s32(a[i, k]) * s32(b[k, j])\n")
    (found,) = match(program, [unit], adapt=False)
    assert found.reason is not None
    assert found.reason.code == "DTYPE"
    assert found.reason.counterexample == {"inputs": {"A[i, p]": -1, "B[p, j]": 1}, "program": -3, "intrinsic": 765}


def test_what_was_there_before_is_not_lost_for_a_fix() -> None:
    """The instruction overwrites its target: its term alone is no form of a stage that adds to it."""
    text = "def f(A: u8[64], B: u8[64], C: u8[64]):\n    for i in range(64):\n        C[i] += max(A[i], B[i])\n"
    program = parse(text)
    (found,) = match(program, [CATALOGUE["x86/vpmaxub.zmm"]], "reassociated")
    assert found.verdict == "no"
    after = with_fix(found)
    assert after.reason is not None
    assert not (after.reason.fix or "").startswith("use max")
