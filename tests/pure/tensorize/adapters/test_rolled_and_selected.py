"""The adapters `roll` and `choose`: what they take, and what they leave."""

from __future__ import annotations

import pytest

from autosched.ir import parse
from autosched.ir.rewrites.selected import with_choices
from autosched.ir.value import Read, Select, walk
from autosched.tensorize import Match, match
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.variants.conditional import usable_as

CATALOGUE = Catalogue.builtin()


def answer(statement: str, intrinsic: str, level: str = "reassociated", assume: str = "", types: str = "bf16") -> Match:
    program = parse(f"""
def f(A: {types}[8, 32, 2], B: {types}[32, 16, 2], D: {types}[8, 32], E: u8[8, 32], F: f16[128, 16], C: f32[8, 16]):
{assume}    for i, j, p in grid(8, 16, 32):
        C[i, j] += {statement}
""".replace(", E: u8[8, 32], F: f16[128, 16]", "" if "E[" not in statement else ", E: u8[8, 32], F: f16[128, 16]"))
    (found,) = match(program, [CATALOGUE[intrinsic]], level)
    return found


PRODUCT = "f32(A[i, p, 0]) * f32(B[p, j, 0]) - f32(A[i, p, 1]) * f32(B[p, j, 1])"


def test_a_complex_product_is_a_longer_sum() -> None:
    found = answer(PRODUCT, "x86/vdpbf16ps.zmm")
    assert found.verdict == "match"
    mapping = found.mappings[0]
    assert mapping.adapters == ("roll 2 terms (B_terms)",)
    assert mapping.certificate.bound is not None
    assert mapping.certificate.bound.terms == 64


@pytest.mark.parametrize(
    ("statement", "level"),
    [
        (PRODUCT, "bitwise"),  # another order
        ("f32(A[i, p, 0]) * f32(B[p, j, 0]) - abs(f32(A[i, p, 1])) * f32(B[p, j, 1])", "reassociated"),
        ("f32(A[i, p, 0]) * f32(B[p, j, 0]) - f32(D[i, p])", "reassociated"),
    ],
)
def test_what_is_not_rolled(statement: str, level: str) -> None:
    assert answer(statement, "x86/vdpbf16ps.zmm", level).verdict == "no"


SPARSE = "f32(D[i, p]) * f32(F[s32(4 * (p // 2)) + s32(E[i, p]), j])"
SPARSE_INSTRUCTION = "cuda/mma.sp.m16n8k32.f16.f16.f32"


DISTINCT = "    assume(distinct(E, 2))\n"


def test_a_selection_of_a_known_range() -> None:
    found = answer(SPARSE, SPARSE_INSTRUCTION, assume="    assume(E <= 3)\n" + DISTINCT, types="f16")
    assert found.verdict == "match"
    assert found.mappings[0].adapters == ("choose",)
    known = [o.statement for o in found.mappings[0].certificate.obligations]
    assert "each 2 neighbours of E differ, as assumed" in known


def test_two_that_are_kept_must_not_be_one() -> None:
    """What PTX leaves undefined is asked of the program, and no plan takes it for granted."""
    masked = SPARSE.replace("E[i, p])", "E[i, p] & 3)")
    for statement, assume, left in (
        (SPARSE, "    assume(E <= 3)\n", ["distinct(E, 2)"]),
        (masked, DISTINCT, ["0 <= E <= 3"]),
        (masked, "", ["0 <= E <= 3", "distinct(E, 2)"]),
    ):
        found = answer(statement, SPARSE_INSTRUCTION, assume=assume, types="f16")
        assert found.verdict == "conditional"
        assert [c.text for c in found.mappings[0].conditions] == left
        modes = ("refuse",) if left == ["0 <= E <= 3"] else ("refuse", "guard", "assume")
        assert all(usable_as(found.mappings[0], mode) is None for mode in modes)


@pytest.mark.parametrize("assume", ["    assume(E <= 1)\n", "    assume(E <= 7)\n"])
def test_a_selection_among_others(assume: str) -> None:
    statement = SPARSE.replace("4 * (p // 2)", "4 * (p // 4)") if "7" in assume else SPARSE
    found = answer(statement, SPARSE_INSTRUCTION, assume=assume, types="f16")
    assert found.verdict == "no"


def test_an_element_of_another_group_is_not_selected() -> None:
    found = answer(SPARSE.replace("p // 2", "p"), SPARSE_INSTRUCTION, assume="    assume(E <= 3)\n", types="f16")
    assert found.verdict == "no"


def test_choices_stand_for_what_data_address() -> None:
    program = parse("""
def f(E: u8[8], B: s32[8, 4], C: s32[8]):
    for i in range(8):
        C[i] = B[i, s32(E[i] & 3)]
""")
    value = with_choices(program.stages[0].assign.value, lambda _: None, {"i": (0, 7)})
    assert sum(isinstance(v, Select) for v in walk(value)) == 3
    assert {str(r.index[1]) for r in walk(value) if isinstance(r, Read) and r.tensor == "B"} == {"0", "1", "2", "3"}


@pytest.mark.parametrize(
    "subscript", ["s32((E[i] & 3) * 100)", "s32(u8(s32(E[i] & 3) * 100))", "s64(u32(E[i] & 3) - 1)"]
)
def test_a_subscript_that_wraps_is_no_formula_of_the_loops(subscript: str) -> None:
    """3 * 100 is 44 in eight bits."""
    text = f"def f(E: u8[9], B: f32[400], C: f32[9]):\n for i in range(9):\n  C[i] += B[{subscript}]\n"
    value = parse(text).stages[0].assign.value
    assert with_choices(value, lambda _: None, {"i": (0, 8)}) == value
