"""Instructions with masks and lengths as operands: which programs they compute, and what is supplied to them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from fuzz.matches import Findings, check_pair
from fuzz.pairs import governed
from fuzz.withheld import elsewhere, withheld
from support.match.agreement import disagreement, expect
from support.match.computes import CATALOGUE, check, made_up

from autosched.errors import SpecError
from autosched.ir import parse
from autosched.ir.program import Program
from autosched.machine.catalogue import load_target
from autosched.tensorize import match
from autosched.tensorize.lengths import at_full_length
from autosched.tensorize.spec.load import load_text
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


PAIRS = {"governed": governed, "withheld": withheld, "elsewhere": elsewhere}


def fuzz(seeds: range, kind: str) -> Findings:
    found = Findings()
    for seed in seeds:
        rng = Random(f"{kind} {seed}")
        check_pair(PAIRS[kind](rng), rng, seed, found)
    return found


@pytest.mark.parametrize(("kind", "least"), [("governed", 20), ("withheld", 5), ("elsewhere", 3)])
def test_random_pairs(kind: str, least: int) -> None:
    found = fuzz(range(25), kind)
    assert not found.wrong
    assert found.counts["mappings"] >= least


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "seeds", "least"), [("governed", 300, 250), ("withheld", 125, 30), ("elsewhere", 100, 3)]
)
def test_many_random_pairs(kind: str, seeds: int, least: int) -> None:
    found = fuzz(range(25, seeds), kind)
    assert not found.wrong
    assert found.counts["mappings"] >= least


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("arm/mla.s32.sve256", "hold p = 1"),
        ("riscv/vmacc.e32.zvl256b", "hold v0 = 1"),
        ("riscv/vmacc.e32.zvl512b", "hold v0 = 1"),
    ],
)
def test_without_a_mask_all_take_part(name: str, holds: str) -> None:
    found = check(product(), CATALOGUE[name], 0)
    assert found.verdict == "match"
    assert {m.adapters for m in found.mappings} == {(holds,)}
    assert all("vl" not in m.operands for m in found.mappings)


def test_each_member_of_a_family_has_its_own_length() -> None:
    """What one holds is not carried over to another of more lanes."""
    names = [f"riscv/vmacc.e32.zvl{bits}b" for bits in (128, 256, 512)]
    answers = match(product(), [CATALOGUE[n] for n in names])
    proofs = [a.mappings[0].certificate.obligations for a in answers]
    for lanes, obligations in zip((4, 8, 16), proofs, strict=True):
        said = f"with vl = {lanes} its conditions hold in all lanes, with a shorter length in those below it"
        assert said in [o.statement for o in obligations]


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
    assert found.mappings[0].adapters == ("mask C_mask",)


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


KEEPS = """
def m(p: b1[8], vl: u32[1], a: s32[8], b: s32[8], c: s32[8]):
    for i in range(8):
        {}
"""
SUMS = "def f(A: s32[3, 21], B: s32[21], M: b1[21], N: s32[21], C: s32[3, 21]):\n for i, j in grid(3, 21):\n  {}\n"


@pytest.mark.parametrize(
    "written",
    [
        "if p[i] != 0 and u32(i) < vl[0]: c[i] = a[i] + b[i]",
        "c[i] = a[i] + b[i] if vl[0] > u32(i) and p[i] != 0 else c[i]",
    ],
)
@pytest.mark.parametrize(
    ("statement", "adapters"),
    [
        ("C[i, j] = A[i, j] + B[j]", ("hold p = 1",)),
        ("C[i, j] += A[i, j]", ("hold p = 1",)),
        ("if M[j] != 0: C[i, j] = A[i, j] + B[j]", ("keep C",)),
        ("C[i, j] = A[i, j] + B[j] if M[j] != 0 else C[i, j]", ()),
        ("if M[j] == 0: C[i, j] = A[i, j] + B[j]", ("mask C_mask", "keep C")),
        ("if N[j] > 3: C[i, j] = A[i, j] + B[j]", ("mask C_mask", "keep C")),
        ("if M[j] != 0 and j < 9: C[i, j] = A[i, j] + B[j]", ("keep C",)),
        ("if j >= i and M[j] != 0: C[i, j] = A[i, j] + B[j]", ("keep C",)),
    ],
)
def test_what_is_overwritten_under_a_mask_and_a_length(written: str, statement: str, adapters: tuple[str, ...]) -> None:
    found = check(parse(SUMS.format(statement)), made_up(KEEPS.format(written)), 0)
    assert found.verdict == "match"
    assert {m.adapters for m in found.mappings} == {adapters}
    for m in found.mappings:
        kept = m.operands.get("c_kept")
        assert (kept is not None and kept.tensor == "C") == ("hold p = 1" not in adapters)


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("C[i, j] = A[i, j] - B[j]", "BODY_DIFFERS"),
        ("C[i, j] = A[i, j] + B[j] if M[j] != 0 else 0", "BODY_DIFFERS"),
        ("C[i, j] = A[i, j] + B[j] if M[j] == 0 else C[i, j]", "BODY_DIFFERS"),
    ],
)
def test_what_is_not_overwritten_so(statement: str, code: str) -> None:
    intrinsic = made_up(KEEPS.format("if p[i] != 0 and u32(i) < vl[0]: c[i] = a[i] + b[i]"))
    found = check(parse(SUMS.format(statement)), intrinsic, 0)
    assert found.verdict == "no"
    assert found.reason is not None
    assert found.reason.code == code
    assert found.reason.counterexample


def test_a_counterexample_names_the_programs_own_elements() -> None:
    """It named a mask that an adapter had made, with bits that the program's condition does not have."""
    found = Findings()
    for seed in (2001, 2021):
        rng = Random(f"withheld {seed}")
        check_pair(withheld(rng), rng, seed, found)
    assert not found.wrong


def test_what_is_computed_with_is_no_mask() -> None:
    """It was: a one was supplied for `a`, and taken for all of its elements."""
    program = parse("def f(A: s32[8], C: s32[8]):\n for i in range(8):\n  C[i] += A[i]\n")
    for value in ("c[i] + a[i] if a[i] > 0 else c[i]", "a[i] if a[i] > 0 else c[i]"):
        intrinsic = made_up(f"def m(a: s32[4], c: s32[4]):\n for i in range(4):\n  c[i] = {value}")
        (found,) = match(program, [intrinsic])
        assert found.verdict == "no"


def test_a_length_that_lanes_past_it_take_part_in() -> None:
    """It is no length: the last lanes would be left out, or those below it."""
    for condition in ("u32(i) > vl[0]", "u32(i) == vl[0]", "u32(i) + 1 < vl[0]", "u32(i) <= vl[0]"):
        intrinsic = made_up(KEEPS.format(f"if p[i] != 0 and {condition}: c[i] = a[i] + b[i]"))
        whole = at_full_length(intrinsic)
        assert whole is None or condition in ("u32(i) + 1 < vl[0]", "u32(i) <= vl[0]")
        assert whole is None or whole[0].length is None


def test_a_choice_of_what_is_kept_under_a_length_is_refused() -> None:
    """It ended the command: with its length settled the instruction is no update."""
    with pytest.raises(SpecError, match="c is read in a way that is no accumulation"):
        made_up(KEEPS.format("if u32(i) < vl[0]: c[i] = c[i] if p[i] != 0 else a[i] + b[i]"))


def test_alike_instructions_under_a_mask_answer_for_themselves() -> None:
    """The second took the first one's answer, which was of its form with what it keeps as an operand."""
    text = """
def m(p: s32[{n}], a: s32[{n}], b: s32[{n}], c: s32[{n}]):
    for i in range({n}):
        if p[i] != 0: c[i] = a[i] + b[i]
"""
    two = [replace(made_up(text.format(n=n)), name=f"test/add.{n}") for n in (4, 8)]
    for statement in ("if N[j] != 0: C[i, j] = A[i, j] + B[j]", "C[i, j] = A[i, j] + B[j]"):
        program = parse(SUMS.format(statement))
        together, alone = match(program, two), [match(program, [i])[0] for i in two]
        assert [m.verdict for m in together] == [m.verdict for m in alone]
        assert [m.intrinsic for m in together] == [m.intrinsic for m in alone]
        held = [[[*n.operands] for m in found for n in m.mappings] for found in (together, alone)]
        assert held[0] == held[1]


def test_a_text_does_not_keep_what_its_target_holds() -> None:
    text = """
isa: test
intrinsics:
  - name: v
    semantics: |
      def v(p: s32[8], a: s32[8], c: s32[8]):
          for i in range(8):
              if p[i] != 0:
                  c[i] = a[i]
    operands: {p: {register: {c: __m256i}}, a: {register: {c: __m256i}}, c: {register: {c: __m256i}}}
    emit: {c: "f({a}, {p})"}
"""
    with pytest.raises(SpecError, match="keep the old one"):
        load_text(text)
