"""How many mappings there are: the mask-equality column of the reference's table, and the superset over roles.

The table counts one assignment of operand roles. On a square matrix multiply that is all there is, the exchanged roles
being the same tile transposed; on other instructions the count here is the union over roles.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.computes import CATALOGUE, made_up
from support.match.examples import examples

from autosched.errors import UsageError
from autosched.ir import parse
from autosched.ir.program import Program
from autosched.tensorize import match

# Spatial axes, reduction axes, and the addresses of out, A and B, as in AMOS's benchmark definitions.
OPERATORS = {
    "GMV": ("i j", "k", "i, j", "i, k", "k, j"),
    "GMM": ("i j", "k", "i, j", "i, k", "k, j"),
    "C1D": ("n k l", "c r", "n, k, l", "n, c, l + r", "k, c, r"),
    "C2D": ("n k p q", "c r s", "n, k, p, q", "n, c, p + r, q + s", "k, c, r, s"),
    "T2D": ("n k p q", "c r s", "n, k, p, q", "n, c, p + r, q + s", "c, k, 3 - r, 3 - s"),
    "GRP": ("n g k p q", "c r s", "n, g, k, p, q", "n, g, c, p + r, q + s", "g, k, c, r, s"),
    "DIL": ("n k p q", "c r s", "n, k, p, q", "n, c, p + r * 2, q + s * 2", "k, c, r, s"),
    "DEP": ("n g k p q", "r s", "n, g, k, p, q", "n, g, p + r, q + s", "g, k, r, s"),
    "BCV": ("n k p q", "c r s", "n, k, p, q", "n, c, p + r, q + s", "n, k, c, r, s"),
    "GFC": ("n g k", "c", "n, g, k", "n, g, c", "g, k, c"),
    "MEN": ("i j", "k", "i, j", "i, k", "k, j"),
    "VAR": ("i j", "k", "i, j", "i, k", "k, j"),
    "SCN": ("i j", "k", "i, j", "i, k", "k, j"),
}
MMA = """
def m(a: f16[4, 4], b: f16[4, 4], c: f32[4, 4]):
    for i, j, k in grid(4, 4, 4):
        c[i, j] += f32(a[i, k]) * f32(b[k, j])
"""
WIDE = MMA.replace("a: f16[4", "a: f16[8").replace("c: f32[4", "c: f32[8").replace("grid(4", "grid(8")
VNNI = "def m(d: f16[4], w: f16[8, 4], c: f32[8]):\n for i, k in grid(8, 4):\n  c[i] += f32(d[k]) * f32(w[i, k])"
DOT = "def m(a: f16[4], b: f16[4], c: f32[1]):\n for i, k in grid(1, 4):\n  c[i] += f32(a[k]) * f32(b[k])"
MASK_EQUALITY = {
    # MMA, VNNI form as written, VNNI form with the operands exchanged, dot product (reference, section 1.3)
    "GMV": (1, 1, 1, 1), "GMM": (1, 1, 1, 1), "C1D": (9, 3, 9, 3), "C2D": (49, 7, 49, 7), "T2D": (49, 7, 49, 7),
    "GRP": (49, 7, 49, 7), "DIL": (49, 7, 49, 7), "DEP": (21, 3, 21, 3), "BCV": (21, 7, 21, 7), "GFC": (1, 1, 1, 1),
    "MEN": (1, 1, 1, 1), "VAR": (1, 1, 1, 1), "SCN": (1, 1, 1, 1),
}  # fmt: skip


def operator(name: str, extent: int = 4, swap: bool = False) -> Program:
    spatial, reduction, out, a, b = OPERATORS[name]
    a, b = (b, a) if swap else (a, b)
    axes = [*spatial.split(), *reduction.split()]
    size = 8 * extent
    shapes = [", ".join([str(size)] * len(x.split(","))) for x in (a, b, out)]
    return parse(
        f"def f(A: f16[{shapes[0]}], B: f16[{shapes[1]}], C: f32[{shapes[2]}]):\n"
        f"    for {', '.join(axes)} in grid({', '.join([str(extent)] * len(axes))}):\n"
        f"        C[{out}] += f32(A[{a}]) * f32(B[{b}])\n"
    )


AMOS_RULE = {
    # The same columns by the published rule, one assignment of roles (reference, sections 1.2 and 1.3).
    "GMV": (1, 1, 1, 1), "GMM": (1, 1, 1, 1), "C1D": (6, 3, 6, 3), "C2D": (35, 7, 35, 7), "T2D": (7, 1, 7, 1),
    "GRP": (35, 7, 35, 7), "DIL": (35, 7, 35, 7), "DEP": (11, 3, 11, 3), "BCV": (11, 7, 11, 7), "GFC": (1, 1, 1, 1),
    "MEN": (1, 1, 1, 1), "VAR": (1, 1, 1, 1), "SCN": (1, 1, 1, 1),
}  # fmt: skip


def count(program: Program, semantics: str, rule: str = "superset") -> int:
    (found,) = match(program, [made_up(semantics, "{accumulate: unordered}")], rule=rule)
    keys = {
        (frozenset((x, frozenset(on)) for x, on in m.axes.items()), frozenset(m.operands.items()))
        for m in found.mappings
    }
    assert len(keys) == len(found.mappings), "no mapping twice"
    return found.mapping_count


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", OPERATORS)
def test_counts_of_the_reference(name: str) -> None:
    mma, written, exchanged, dot = MASK_EQUALITY[name]
    program = operator(name)
    assert count(program, MMA) == mma
    assert count(program, WIDE) == 2 * mma, "sides of unequal length: exchanged roles are mappings of their own"
    assert count(program, VNNI) == written + exchanged
    assert count(program, DOT) == dot


@pytest.mark.parametrize("name", OPERATORS)
def test_counts_of_the_published_rule(name: str) -> None:
    mma, written, exchanged, dot = AMOS_RULE[name]
    program = operator(name)
    assert count(program, MMA, "amos") == mma
    assert count(program, VNNI, "amos") == written
    assert count(operator(name, swap=True), VNNI, "amos") == exchanged
    assert count(program, DOT, "amos") == dot


@pytest.mark.parametrize("name", ["C1D", "C2D", "T2D", "DEP", "BCV"])
def test_what_the_published_rule_rejects_is_said(name: str) -> None:
    (found,) = match(operator(name), [made_up(MMA, "{accumulate: unordered}")])
    kept, whole = AMOS_RULE[name][0], MASK_EQUALITY[name][0]
    assert found.notes[0] == f"the AMOS rule keeps {kept} of the {whole} mappings"
    said = " ".join(found.notes[1:])
    assert "a function of its own coordinates" in said
    (published,) = match(operator(name), [made_up(MMA, "{accumulate: unordered}")], rule="amos")
    every = {frozenset((x, frozenset(on)) for x, on in m.axes.items()) for m in found.mappings}
    assert {frozenset((x, frozenset(on)) for x, on in m.axes.items()) for m in published.mappings} <= every


def test_a_kernel_flipped_beforehand_counts_as_a_convolution() -> None:
    assert AMOS_RULE["T2D"][0] == 7
    assert count(operator("C2D"), MMA, "amos") == 35


def test_broadcast_operands_are_described_without_the_axis() -> None:
    text = (
        "def f(X: u8[2, 4, 9, 9], W: s8[8, 4, 3, 3], Y: s32[2, 8, 7, 7]):\n"
        "    for n, k, p, q, c, r, s in grid(2, 8, 7, 7, 4, 3, 3):\n"
        "        Y[n, k, p, q] += s32(X[n, c, p + r, q + s]) * s32(W[k, c, r, s])\n"
    )
    (found,) = match(parse(text), [CATALOGUE["x86/vpdpbusd.zmm"]], rule="amos")
    assert found.mapping_count == 7
    assert all(m.axes["i"] == ("k",) for m in found.mappings)


def test_a_rule_that_keeps_nothing_says_so() -> None:
    head = "def f(A: f16[8, 8], x: f16[8], y: f32[8]):\n"
    program = parse(head + "    for i, k in grid(8, 8):\n        y[i] += f32(A[i, k]) * f32(x[k])\n")
    mma = made_up(MMA, "{accumulate: unordered}")
    assert match(program, [mma])[0].verdict == "match"
    (found,) = match(program, [mma], rule="amos")
    assert found.verdict == "no"
    assert found.reason is not None
    assert "--rule superset" in (found.reason.fix or "")
    with pytest.raises(UsageError, match="unknown rule 'tvm'"):
        match(program, [mma], rule="tvm")


def subsets(n: int) -> int:
    return 2**n - 1


@pytest.mark.slow
@examples(40)
@given(st.tuples(*(st.integers(1, 3) for _ in range(4))))
def test_count_is_the_product_over_axes(numbers: tuple[int, int, int, int]) -> None:
    """The reference's formula: for each tile axis, the non-empty sets of axes with its pattern."""
    left, right, reduced, shared = numbers
    i, j, k, g = ([f"{x}{n}" for n in range(m)] for x, m in zip("ijkg", (left, right, reduced, shared), strict=True))
    axes = [*g, *i, *j, *k]
    dims = {x: ", ".join(["2"] * x) for x in range(1, 13)}
    program = parse(
        f"def f(A: f16[{dims[len(g + i + k)]}], B: f16[{dims[len(g + k + j)]}], C: f32[{dims[len(g + i + j)]}]):\n"
        f"    for {', '.join(axes)} in grid({', '.join(['2'] * len(axes))}):\n"
        f"        C[{', '.join(g + i + j)}] += f32(A[{', '.join(g + i + k)}]) * f32(B[{', '.join(g + k + j)}])\n"
    )
    assert count(program, MMA) == subsets(left) * subsets(right) * subsets(reduced)
