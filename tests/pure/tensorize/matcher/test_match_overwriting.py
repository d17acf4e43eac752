"""Instructions that overwrite their target: which stages they are asked about, what is proved, what refuses them."""

from __future__ import annotations

from random import Random

import pytest
from fuzz.matches import Findings, check_pair
from fuzz.pairs import overwriting
from fuzz.stepwise import stepwise
from support.match.computes import CATALOGUE, check
from support.plans import machine, plans_of

from autosched.ir import parse
from autosched.search.tuning.tune import usable
from autosched.tensorize import match
from autosched.tensorize.explanation.near import near
from autosched.tiling.planner.plan_program import plan_program

AVERAGE = CATALOGUE["x86/vpavgb.ymm"]
PRODUCT = CATALOGUE["x86/vpdpbusd.ymm"]
LAYER = """
def f(A: u8[5, 8], B: s8[8, 64], D: u8[5, 64], E: u8[5, 64]):
    C: s32[5, 64]
    for i, j in grid(5, 64):
        C[i, j] = 0
        for k in range(8):
            C[i, j] += s32(A[i, k]) * s32(B[k, j])
    for i, j in grid(5, 64):
        E[i, j] = u8((u16(D[i, j]) + u16(sat_u8(C[i, j])) + 1) >> 1)
"""


def fuzz(seeds: range, kind: str = "overwriting") -> Findings:
    found, make = Findings(), {"overwriting": overwriting, "steps": stepwise}[kind]
    for seed in seeds:
        rng = Random(f"{kind} {seed}")
        check_pair(make(rng), rng, seed, found)
    return found


def test_random_pairs() -> None:
    found = fuzz(range(60))
    assert not found.wrong
    assert found.counts["mappings"] >= 50


@pytest.mark.slow
def test_many_random_pairs() -> None:
    found = fuzz(range(60, 800))
    assert not found.wrong
    assert found.counts["mappings"] >= 600
    assert found.counts["counterexamples"] >= 100


def test_each_is_asked_about_its_own_kind_of_stages() -> None:
    """Sums for those that add to their target, the others for those that overwrite it."""
    program = parse(LAYER)
    found = {(m.stage, m.intrinsic.name) for m in match(program, [AVERAGE, PRODUCT])}
    assert found == {("C", PRODUCT.name), ("E", AVERAGE.name)}
    assert [m.stage for m in match(program, [PRODUCT, AVERAGE], stages=["C", "E"])] == ["C", "C", "E", "E"]
    (only,) = match(parse("def f(A: u8[9], C: u8[9]):\n for i in range(9):\n  C[i] += A[i]\n"), [AVERAGE])
    assert only.verdict == "no"


def test_a_stage_whose_operand_is_computed_matches_by_its_own_elements() -> None:
    (answer,) = match(parse(LAYER), [AVERAGE])
    assert (answer.stage, answer.verdict, answer.reason and answer.reason.code) == ("E", "no", "DTYPE")


def test_the_counterexample_of_a_near_miss() -> None:
    text = "def f(A: u8[40], B: u8[40], C: u8[40]):\n for i in range(40):\n  C[i] = u8((u16(A[i]) + u16(B[i])) >> 1)\n"
    found = check(parse(text), AVERAGE, 1)
    assert found.reason is not None
    assert found.reason.message.startswith("the program writes u8(")
    example = found.reason.counterexample
    assert example is not None
    assert sum(example["inputs"].values()) % 2 == 1
    assert example["intrinsic"] == example["program"] + 1


def test_none_is_near_a_sum() -> None:
    program = parse("def f(A: f32[9, 9], C: f32[9]):\n for i, k in grid(9, 9):\n  C[i] += A[i, k]\n")
    asked, other = match(program, [PRODUCT, AVERAGE])
    assert near(asked, [other]) == []
    assert near(other, [asked]) == []


def test_a_turn_that_runs_once_under_a_guard_is_refused() -> None:
    """No store could ask a guard on an axis that is none of the target's."""
    text = "def f(A: s8[40], C: s8[40]):\n for i in range(40):\n  for k in range(1):\n   {}C[i] = abs(A[i])\n"
    intrinsic = CATALOGUE["x86/vpabsb.ymm"]
    assert check(parse(text.format("")), intrinsic, 2).verdict == "match"
    refused = check(parse(text.format("if k <= i:\n    ")), intrinsic, 2)
    assert (refused.verdict, refused.reason and refused.reason.code) in (("match", None), ("no", "COMBINE_DIFFERS"))


def test_scalar_code_competes() -> None:
    """Plans on instructions first, and one in which vector code computes the stage."""
    program = parse("def f(A: s8[400], B: s8[400], C: s8[400]):\n for i in range(400):\n  C[i] = max(A[i], B[i])\n")
    plans = plans_of(program)
    assert plans[0].tensor_parts
    assert any(not p.tensor_parts for p in plans)


def test_a_copy_needs_no_instruction() -> None:
    """The greater of an element and itself is that element, but loads and stores copy it alone."""
    program = parse("def f(A: s8[400], C: s8[400]):\n for i in range(400):\n  C[i] = A[i]\n")
    assert match(program, [CATALOGUE["x86/vpmaxsb.ymm"]])[0].verdict == "match"
    assert not any(p.tensor_parts for p in plans_of(program))


def test_a_stage_in_place_is_an_assignment_of_what_it_held() -> None:
    """`+=` and `max=` without a reduction, too; an element of its own, and of no other place."""
    text = "def f(X: s16[40], C: s16[41]):\n for i in range(40):\n  {}\n"
    mix, greatest = CATALOGUE["x86/vpaddsw.ymm"], CATALOGUE["x86/vpmaxsw.ymm"]
    assert check(parse(text.format("C[i] = sat_s16(s32(C[i]) + s32(X[i]))")), mix, 4).verdict == "match"
    assert check(parse(text.format("C[i] = max(X[i], C[i])")), greatest, 5).verdict == "match"
    wraps = check(parse(text.format("C[i] += X[i]")), mix, 6)
    assert (wraps.verdict, wraps.reason and wraps.reason.code) == ("no", "BODY_DIFFERS")
    shifted = check(parse(text.format("C[i] = max(X[i], C[i + 1])")), greatest, 7)
    assert (shifted.verdict, shifted.reason and shifted.reason.code) == ("no", "ALIAS")
    program = parse(text.format("C[i] = max(X[i], C[i])"))
    assert any(not t.nest.intrinsic.accumulates for p in plans_of(program) for t in p.tensor_parts)


@pytest.mark.parametrize(
    ("name", "term", "adapter"),
    [
        ("x86/vpmaxsb.ymm", "max(A[i], 0)", "supply s8(0)"),
        ("x86/vpmaxsb.ymm", "A[i] if A[i] > g else g", "supply g"),
        ("x86/vpaddsb.ymm", "s8(min(max(s16(A[i]) + 40, -128), 127))", "supply s16(40)"),
        ("x86/vpsubsb.ymm", "sat_s8(5 - s16(A[i]))", "supply s16(5)"),
    ],
)
def test_a_constant_is_supplied(name: str, term: str, adapter: str) -> None:
    """A number, or a run-time scalar, as an element of its own that an operand holds in every lane."""
    scalar = "g: s8, " if "g" in term else ""
    program = parse(f"def f(A: s8[70], {scalar}C: s8[70]):\n for i in range(70):\n  C[i] = {term}\n")
    found = check(program, CATALOGUE[name], 8)
    assert found.verdict == "match"
    assert {m.adapters for m in found.mappings} == {(adapter,)}


def test_a_constant_that_no_operand_holds_is_not_supplied() -> None:
    text = "def f(A: u8[70], C: u8[70]):\n for i in range(70):\n  C[i] = u8(min(u16(A[i]) + {}, 255))\n"
    assert check(parse(text.format(254)), CATALOGUE["x86/vpaddusb.ymm"], 9).verdict == "match"
    assert check(parse(text.format(256)), CATALOGUE["x86/vpaddusb.ymm"], 9).verdict == "no"
    half = "def f(A: u8[70], C: u8[70]):\n for i in range(70):\n  C[i] = u8((u16(A[i]) + 7) >> 1)\n"
    assert check(parse(half), AVERAGE, 9).verdict == "no"  # 6 and the 1 of the average: no number of the text


@pytest.mark.parametrize("behind", ["max(C[i, j], 0)", "max(C[i, j], D[i, j])"])
def test_what_follows_on_each_sum_is_no_pass_of_its_own(behind: str) -> None:
    """A product and a maximum behind it: no plan stores the sums for an instruction to load them again."""
    program = parse(f"""
def f(A: u8[64, 64], B: s8[64, 64], D: s32[64, 64], E: s32[64, 64]):
    C: s32[64, 64]
    for i, j in grid(64, 64):
        C[i, j] = 0
        for k in range(64):
            C[i, j] += s32(A[i, k]) * s32(B[k, j])
    for i, j in grid(64, 64):
        E[i, j] = {behind}
""")
    target = machine()
    found = plan_program(program, target, CATALOGUE, usable(CATALOGUE, target, "cpu"))
    assert any(t.epilogue for p in found.plans for t in p.tensor_parts)
    assert all(t.nest.intrinsic.accumulates for p in found.plans for t in p.tensor_parts)


def test_vector_code_competes_however_many_stages_there_are() -> None:
    """Combinations of nests grow with every stage; the one without any is among those looked at."""
    lines = ["def f(A: u8[640], B: u8[640], C13: u8[640]):", *(f"    C{k}: u8[640]" for k in range(13))]
    for k in range(14):
        before, place = f"C{k - 1}[i]" if k else "A[i]", "639 - i" if k % 2 else "i"
        lines += ["    for i in range(640):", f"        C{k}[i] = u8((u16({before}) + u16(B[{place}]) + 1) >> 1)"]
    target = machine()
    found = plan_program(parse("\n".join(lines) + "\n"), target, CATALOGUE, [AVERAGE])
    assert any("scalar" in p.name for p in found.plans)
    assert any(len(p.tensor_parts) >= 7 for p in found.plans)  # every other stage turns an operand around
