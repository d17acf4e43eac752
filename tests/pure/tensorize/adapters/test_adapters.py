"""Adapters: every rewritten program computes what the original does, and a wrong identity is not proved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.examples import examples
from support.plans import machine

from autosched.ir import parse, random_inputs
from autosched.ir.dtypes import DTYPES
from autosched.ir.oracle.inputs import split_inputs
from autosched.ir.oracle.interpreter import run
from autosched.ir.program import Program
from autosched.ir.value import Arith, Cast, Literal, Read, Value
from autosched.logic import Var
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of
from autosched.tensorize import Catalogue, Intrinsic, explain, match, to_json
from autosched.tensorize.adapters import Adapted, Adapters, adapt
from autosched.tensorize.adapters.integers.polynomial import polynomial
from autosched.tensorize.adapters.integers.restate import proof_of, restate
from autosched.tensorize.adapters.integers.ring import ring
from autosched.tensorize.adapters.proof import prove
from autosched.tensorize.adapters.proposal import NotProved, Proposal
from autosched.tensorize.addresses.stage_facts import StageFacts
from autosched.tensorize.explanation.certificate import certificate_json, certificate_lines

CATALOGUE = Catalogue.builtin()
VNNI = CATALOGUE["x86/vpdpbusd.zmm"]
HEAD = "def f(A: {a}[m, k], B: const[{b}[k, n]], z: s32[n], C: {c}[m, n], x: s32, *, m=3, n=5, k=4):\n"


def gemm(term: str, a: str = "u8", b: str = "s8", c: str = "s32", op: str = "+=", init: str | None = "0") -> Program:
    text = HEAD.format(a=a, b=b, c=c) + "    for i, j in grid(m, n):\n"
    text += f"        C[i, j] = {init}\n" if init is not None else ""
    return parse(f"{text}        for p in range(k):\n            C[i, j] {op} {term}\n")


def agree(program: Program, other: Program, seed: int) -> None:
    arrays, scalars = split_inputs(program, random_inputs(program, np.random.default_rng(seed)))
    want, got = run(program, arrays, scalars), run(other, arrays, scalars)
    for name, array in want.items():
        np.testing.assert_array_equal(got[name], array, err_msg=f"{program}\n{other}")


def facts_of(program: Program) -> StageFacts:
    return StageFacts(program, next(s for s in program.stages if s.reduction))


@st.composite
def sums(draw: st.DrawFn) -> Program:
    """A sum of one product of 8-bit elements: shifted, scaled, subtracted, started and guarded in some way."""
    a, b = (draw(st.sampled_from(["u8", "s8"])) for _ in range(2))
    c = draw(st.sampled_from(["s32", "u32", "s16"]))
    shifts = [f"{c}({draw(st.integers(-300, 300))})", f"{c}(x)", f"{c}(z[j])", None]

    def factor(element: str) -> str:
        shift = draw(st.sampled_from(shifts))
        return f"{c}({element})" if shift is None else f"({c}({element}) {draw(st.sampled_from('+-'))} {shift})"

    term = f"{factor('A[i, p]')} * {factor('B[p, j]')}"
    term = draw(st.sampled_from([term, f"({term}) << 2", f"{c}(x) * ({term})", f"-({term}) + {c}(A[i, p])"]))
    low, rows = draw(st.integers(0, 2)), draw(st.integers(1, 4))
    init = draw(st.sampled_from(["    C[i, j] = 0\n", f"    C[i, j] = {c}(x) + 3\n", ""]))
    text = HEAD.format(a=a, b=b, c=c) + "    for i, j in grid(m, n):\n" + (f"    {init}" if init else "")
    guard = draw(st.sampled_from(["", f"i + p >= {low}", f"i * 2 + p < {rows + 3}", "i <= p"]))
    text += "        for p in range(k):\n"
    text += f"            if {guard}:\n    " if guard else ""
    op = draw(st.sampled_from(["+=", "-="]))
    return parse(f"{text}            C[i, j] {op} {term}\n")


def adapted_by(facts: StageFacts) -> list[Adapted]:
    return [adapted for made in Adapters(facts).fitting(VNNI) for _, adapted in made]


@pytest.mark.slow
@examples(80)
@given(sums(), st.integers(0, 2**32 - 1))
def test_every_rewrite_keeps_the_meaning(program: Program, seed: int) -> None:
    (found,) = match(program, [VNNI], stages=["C"])
    assert found.verdict == "match", explain(found)
    for adapted in adapted_by(facts_of(program)):
        agree(program, adapted.rewrite.after, seed)
        assert parse(str(adapted.rewrite.after)).parameters == program.parameters
        assert adapted.rewrite.after.inputs == program.inputs
    assert all(m.stage in m.program.stages for m in found.mappings)


@pytest.mark.parametrize(
    ("term", "a", "b", "names"),
    [
        ("s32(A[i, p]) * s32(B[p, j])", "s8", "s8", [("offset-binary A",), ("offset-binary B",)]),
        ("s32(A[i, p]) * s32(B[p, j])", "u8", "u8", [("offset-binary B",), ("offset-binary A",)]),
        ("(s32(A[i, p]) - x) * (s32(B[p, j]) - z[j])", "u8", "s8", [("zero points",)]),
        ("s32(s16(A[i, p]) - 7) * s32(B[p, j])", "u8", "s8", [("zero points",)]),
        ("-(s32(A[i, p]) * s32(B[p, j]))", "u8", "s8", [("negate",)]),
        ("x * ((s32(A[i, p]) + 256) * (s32(B[p, j]) - 512))", "u8", "s8", [("zero points", "scale")]),
        ("s32(s64(A[i, p]) * s64(B[p, j])) * 8", "u8", "s8", [("scale",)]),
        ("(s32(A[i, p]) * s32(B[p, j])) << z[j]", "u8", "s8", [("scale",)]),
        ("s32(A[i, p]) * s32(B[p, j]) - s32(A[i, 3 - p]) * s32(B[3 - p, j])", "u8", "s8", [("split",)]),
        (
            "s32(A[i, p]) * (s32(B[p, j]) - 8)",
            "u8",
            "u4",
            [("widen B to s8",), ("stage B in s8",), ("widen B to s8", "zero points")],
        ),
    ],
)
def test_which_adapters(term: str, a: str, b: str, names: list[tuple[str, ...]]) -> None:
    assert [x.names for x in adapted_by(facts_of(gemm(term, a, b)))] == names


@pytest.mark.parametrize(
    "term",
    [
        "s32(A[i, p] - 3) * s32(B[p, j])",  # wraps in u8
        "s32(s16(A[i, p]) * s16(A[i, p]) * s16(B[p, j]))",  # three factors
        "(s32(A[i, p]) * s32(B[p, j])) >> 1",
        "abs(s32(A[i, p]) * s32(B[p, j]))",
        "s32(A[i, p]) * s32(B[p, j]) + s32(A[i, p]) * s32(A[i, p]) * s32(B[p, j])",  # a product of three
        "s32(A[i, p]) * s32(B[p, j]) + min(s32(A[i, p]) * s32(B[p, j]), 9)",  # more than products
        "s32(A[i, p]) * (s32(B[p, j]) << s32(A[i, p]))",  # the places move with the sum
    ],
)
def test_what_is_not_adapted(term: str) -> None:
    program = gemm(term)
    assert adapted_by(facts_of(program)) == []
    assert match(program, [VNNI])[0].verdict == "no"


def test_floats_have_no_ring_laws() -> None:
    facts = facts_of(gemm("(f32(A[i, p]) - 1.0) * f32(B[p, j])", c="f32", init="0.0"))
    assert all(not ring(facts, i) for i in CATALOGUE.values())


def test_what_is_already_so_needs_no_adapter() -> None:
    (found,) = match(gemm("s32(A[i, p]) * s32(B[p, j])"), [VNNI])
    assert {m.adapters for m in found.mappings} == {()}


def test_partial_sums_that_others_read_stay_as_they_are() -> None:
    program = parse(
        "def f(A: s8[3, 4], B: s8[4, 5], C: s32[3, 5], D: s32[3, 4, 5]):\n    for i, j in grid(3, 5):\n"
        "        C[i, j] = 0\n        for p in range(4):\n            C[i, j] += s32(A[i, p]) * s32(B[p, j])\n"
        "            D[i, p, j] = C[i, j]\n"
    )
    assert adapted_by(facts_of(program)) == []


def test_planted_wrong_identities_are_refused() -> None:
    program = gemm("(s32(A[i, p]) - x) * s32(B[p, j])", "s8", "s8")
    facts = facts_of(program)
    u8, s8, s32 = (DTYPES[d] for d in ("u8", "s8", "s32"))
    restated = restate(facts.update.term, frozenset("p"), s32, (u8, s8))
    assert restated is not None
    assert proof_of(restated, 2000)
    element = Cast(Read("B", (Var("p"), Var("j")), s8), s32)
    wrong = [
        replace(restated, coefficient=-1),
        replace(restated, rest={m: -c for m, c in restated.rest.items()}),
        replace(restated, rest={**restated.rest, (element,): 127}),
        replace(restated, rest={}),
        replace(restated, left=replace(restated.left, offset=127)),
        replace(restated, left=replace(restated.left, read=replace(restated.left.read, dtype=u8))),
    ]
    for planted in wrong:
        with pytest.raises(NotProved):
            proof_of(planted, 2000)


def test_a_product_that_overflows_its_type_is_not_restated() -> None:
    s8, s32 = DTYPES["s8"], DTYPES["s32"]
    a, b = Read("a", (), s8), Read("b", (), s8)
    narrow: Value = Cast(Arith("*", a, b, s8), s32)
    wide: Value = Arith("*", Cast(a, s32), Cast(b, s32), s32)
    with pytest.raises(NotProved):
        prove(narrow, wide, 2000)
    assert polynomial(narrow) != polynomial(wide)
    assert polynomial(Arith("-", wide, Literal(2**31 - 1, s32), s32)) == polynomial(
        Arith("+", wide, Literal(-(2**31) + 1, s32), s32)
    )


def test_the_answer_names_its_adapters_and_their_proof() -> None:
    (found,) = match(gemm("s32(A[i, p]) * s32(B[p, j])", "s8", "s8"), [VNNI])
    first = to_json(found)["mappings"][0]
    assert first["adapters"] == ["offset-binary A"]
    assert first["operands"]["a"] == "A_u8[i, p]"
    assert first["numerics"] == "bitwise"
    methods = {p["method"] for p in first["rewrite"]["proofs"]}
    assert methods == {"exhaustion", "z3, ring normal form", "structure"}
    assert parse(first["rewrite"]["program"]).parameters == found.program.parameters
    words = explain(found)
    assert "A_u8[q0, q1] = u8(A[q0, q1]) ^ 128" in words
    assert "u8(A[i, p]) ^ 0x80 is A[i, p] +128 for every s8 (exhaustion" in words
    assert "modulo 2^32 on all inputs (z3" in words


def test_conversions_of_constants_are_prepared() -> None:
    program = gemm("(s32(A[i, p]) - x) * (s32(B[p, j]) - z[j])", "s8", "s8")
    prepared = {a.names[0]: a.rewrite.after.prepared for a in adapted_by(facts_of(program))}
    assert prepared == {"offset-binary A": ("B_sum",), "offset-binary B": ("B_u8", "B_sum")}


def test_only_conversions_and_sums_are_prepared() -> None:
    text = (
        "def f(A: s32[4], B: const[s32[4]], D: const[s32[4]], C: s32[4], x: s32):\n"
        "    P: s32[4]\n    Q: s32[4]\n    R: s32[4]\n    S: s32[4]\n    T: s32[4]\n"
        "    for i in range(4):\n        P[i] = B[i] + 1\n"
        "    for j in range(4):\n        Q[j] = B[j] * D[j]\n"  # computing with two
        "    for q in range(4):\n        R[q] = P[q] * x\n"  # a run-time scalar
        "    for r in range(4):\n        S[r] = P[3 - r]\n"
        "    for t in range(4):\n        T[t] = A[t]\n"
        "    for u in range(4):\n        C[u] = P[u] + Q[u] + R[u] + S[u] + T[u]\n"
    )
    assert parse(text).prepared == ("P", "S")


def test_a_new_adapter_is_a_name_in_the_registry() -> None:
    asked: list[str] = []

    def idle(facts: StageFacts, intrinsic: Intrinsic) -> Sequence[Proposal]:
        asked.append(intrinsic.name)
        return []

    program = gemm("s32(A[i, p]) * s32(B[p, j])", "s8", "s8")
    facts = StageFacts(program, program.stages[0], 1000)
    assert not list(adapt.Adapters(facts, (idle,)).fitting(VNNI))
    assert asked == [VNNI.name]


def test_plans_carry_the_proof_of_their_adapters() -> None:
    program = gemm("(s32(A[i, p]) - x) * s32(B[p, j])", "s8", "s8")
    request = TuneRequest(program, machine(), device="cpu", threads=1)
    _, plans = plans_of(request)
    adapted = [p for p in plans if p.program is not program and p.name.endswith("]")]
    assert adapted
    for plan in adapted:
        (mapping,) = [m for m in plan.mappings if m.adapters]
        assert plan.name.endswith(f"[{', '.join(mapping.adapters)}]")
        (certificate,) = [c for c in map(certificate_json, plan.mappings) if c["adapters"]]
        assert any(o["part"] == "adapter" and "2^32" in o["statement"] for o in certificate["obligations"])
        assert f"after {', '.join(mapping.adapters)}" in certificate_lines(certificate)[0]
