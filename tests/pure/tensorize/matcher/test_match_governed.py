"""Instructions with masks and lengths as operands: which programs they compute, and what is supplied to them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from fuzz.matches import Findings, check_pair
from fuzz.pairs import governed
from support.match.agreement import disagreement, expect
from support.match.computes import CATALOGUE, check, made_up

from autosched.errors import SpecError
from autosched.ir import parse
from autosched.ir.program import Program
from autosched.machine.catalogue import load_target
from autosched.tensorize import match
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.variants.adapted import adapted_programs

NEON = load_target("arm-neoverse-v1")
SVE = replace(NEON, features=NEON.features | {"sve", "sve_256"})
PRODUCT = """
def f(A: {x}[5, 7], B: {x}[7, 21], M: b1[21], L: u32[1], C: {x}[5, 21]):
    for i, j in grid(5, 21):
        C[i, j] = 0
        for p in range(7):
            {guard}C[i, j] += A[i, p] * B[p, j]
"""


def product(guard: str = "", x: str = "s32") -> Program:
    return parse(PRODUCT.format(x=x, guard=f"if {guard}:\n                " if guard else ""))


def fuzz(seeds: range) -> Findings:
    found = Findings()
    for seed in seeds:
        rng = Random(f"governed {seed}")
        check_pair(governed(rng), rng, seed, found)
    return found


def test_random_pairs() -> None:
    found = fuzz(range(25))
    assert not found.wrong
    assert found.counts["mappings"] >= 20


@pytest.mark.slow
def test_many_random_pairs() -> None:
    found = fuzz(range(25, 300))
    assert not found.wrong
    assert found.counts["mappings"] >= 250


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("arm/mla.s32.sve256", "hold p = 1"),
        ("riscv/vmacc.e32.zvl256b", "hold v0 = 1 and vl = 8"),
        ("riscv/vmacc.e32.zvl512b", "hold v0 = 1 and vl = 16"),
    ],
)
def test_without_a_mask_all_take_part(name: str, holds: str) -> None:
    found = check(product(), CATALOGUE[name], 0)
    assert found.verdict == "match"
    assert {m.adapters for m in found.mappings} == {(holds,)}
    for m in found.mappings:
        (number,) = {s.assign.value.value for s in m.program.stages if s.assign.tensor.endswith("vl")} or {None}
        assert number in (None, m.intrinsic.accumulator.elements)


def test_each_member_of_a_family_has_its_own_length() -> None:
    """What one holds is not carried over to another of more lanes."""
    names = [f"riscv/vmacc.e32.zvl{bits}b" for bits in (128, 256, 512)]
    answers = match(product(), [CATALOGUE[n] for n in names])
    assert [a.mappings[0].adapters[0] for a in answers] == [f"hold v0 = 1 and vl = {n}" for n in (4, 8, 16)]


@pytest.mark.parametrize("name", ["arm/mla.s32.sve256", "riscv/vmacc.e32.zvl256b", "x86/masked.vfmadd.f32.zmm"])
def test_a_mask_of_the_program(name: str) -> None:
    x = "f32" if "f32" in name else "s32"
    found = check(product("M[j] != 0", x), CATALOGUE[name], 0)
    assert found.verdict == "match"
    masks = {o: m.operands[o] for m in found.mappings for o in ("p", "v0") if o in m.operands}
    assert {"M"} <= {m.operands[o].tensor for m in found.mappings for o in masks if o in m.operands}


@pytest.mark.parametrize("guard", ["M[j] == 0", "M[j] != 0 and L[0] > 3", "M[j] != 0 or i > p"])
def test_another_mask_is_not_taken_for_it(guard: str) -> None:
    """Where the program asks something else, the mask is all true, and the guard is the program's own."""
    found = check(product(guard), CATALOGUE["arm/mla.s32.sve256"], 1)
    for m in found.mappings:
        assert m.operands["p"].tensor != "M"
        assert m.program.stage("C").guards


def test_a_zero_that_is_added_is_not_nothing() -> None:
    """Of floats: -0.0 and 0.0 is 0.0, and an element that takes no part stays -0.0."""
    text = PRODUCT.format(x="f32", guard="").replace("A[i, p] * B[p, j]", "A[i, p] * B[p, j] if M[j] != 0 else 0.0")
    intrinsic = CATALOGUE["x86/masked.vfmadd.f32.zmm"]
    (loose,) = match(parse(text), [intrinsic], "reassociated")
    assert loose.verdict == "match"
    assert all("the sign of a zero may differ" in m.certificate.assumptions for m in loose.mappings)
    assert match(parse(text), [intrinsic], "bitwise")[0].verdict == "no"


@pytest.mark.parametrize("guard", ["", "M[j] != 0"])
@pytest.mark.parametrize(("x", "name"), [("s32", "arm/mla.s32.sve256"), ("f32", "arm/fmla.f32.sve256")])
def test_plans_and_the_interpreter(x: str, name: str, guard: str) -> None:
    program = product(guard, x)
    plans = [p for p in plan_program(program, SVE, CATALOGUE, [CATALOGUE[name]]).every if p.tensor_parts]
    assert plans
    for plan in plans:
        rows = plan.space.sample(2, np.random.default_rng(0))
        assert disagreement(plan, map(int, rows), expect(program, 0)) is None


MASKED = "def m(p: b1[4], vl: u32[1], a: s32[4], c: s32[4]):\n for i in range(4):\n  if {}:\n   {}"


@pytest.mark.parametrize(
    ("condition", "statement", "said"),
    [
        ("p[i] != 0", "c[i] = a[i]", "c is overwritten under a condition"),
        ("i < 3", "c[i] += a[i]", "asks no operand"),
        ("p[i] != 0 and u32(i) < 3", "c[i] += a[i]", "asks no operand"),
        ("c[i] > 0 and p[i] != 0", "c[i] += a[i]", "asks c, which is written"),
        ("a[i] > 0", "c[i] += a[i]", "asks a, which is computed with"),
    ],
)
def test_what_no_mask_is(condition: str, statement: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        made_up(MASKED.format(condition, statement))


def test_a_mask_of_floats_is_the_programs_own() -> None:
    """None is supplied: what is held is an integer."""
    intrinsic = made_up("def m(w: f32[4], a: s32[4], c: s32[4]):\n for i in range(4):\n  if w[i] != 0: c[i] += a[i]")
    text = "def f(W: f32[8], A: s32[8], C: s32[8]):\n for i in range(8):\n  {}C[i] += A[i]\n"
    assert check(parse(text.format("")), intrinsic, 0).verdict != "match"
    assert check(parse(text.format("if W[i] != 0: ")), intrinsic, 0).verdict == "match"


def test_a_length_that_is_compared_the_other_way() -> None:
    """The largest length does not make `vl < i` true: there is nothing to hold."""
    text = "def m(vl: u32[1], a: s32[4], b: s32[4], c: s32[4]):\n for i in range(4):\n"
    text += "  if vl[0] < u32(i):\n   c[i] += a[i] * b[i]"
    (found,) = match(product(), [made_up(text)])
    assert found.verdict == "no"


@pytest.mark.parametrize("guard", ["M[j] == 0", "A[0, 0] > 3 and M[j] != 0", "B[0, j] > 3"])
def test_a_condition_that_is_no_mask_becomes_one(guard: str) -> None:
    program = product(guard)
    found = check(program, CATALOGUE["riscv/vmacc.e32.zvl256b"], 0)
    assert found.verdict == "match"
    assert found.mappings[0].adapters == ("mask C_mask", "hold vl = 8")


def test_no_mask_of_what_the_loops_write() -> None:
    program = parse("""
def f(A: s32[8], B: s32[8], C: s32[8], D: s32[8]):
    for i in range(8):
        D[i] = A[i] + 1
        if D[i] > 3:
            C[i] += A[i] * B[i]
""")
    answers = match(program, [CATALOGUE["riscv/vmacc.e32.zvl256b"]], stages=["C"])
    assert not any("mask C_mask" in m.adapters for a in answers for m in a.mappings)


def test_plans_have_the_condition_in_a_mask() -> None:
    program = product("M[j] == 0", "f32")
    used = [CATALOGUE["x86/vfmadd.f32.zmm"], CATALOGUE["x86/masked.vfmadd.f32.zmm"]]
    found = list(adapted_programs(program, match(program, used), used, "reassociated"))
    assert [v.adapters for v in found] == [(), ("mask C_mask",)]
    plans = plan_program(program, load_target("x86-avx512"), CATALOGUE, used).every
    assert any("masked.vfmadd" in p.name and "mask C_mask" in p.name for p in plans)
