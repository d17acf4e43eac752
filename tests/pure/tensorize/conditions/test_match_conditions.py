"""Conditions on values: the weakest of the lattice, tight, discharged where the program allows, and never too weak."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.match.computes import execute, made_up
from support.match.examples import examples

from autosched.ir import parse
from autosched.ir.oracle.interpreter import run
from autosched.ir.program import Program
from autosched.tensorize import Match, explain, match, to_json
from autosched.tensorize.body.intervals import Range
from autosched.tensorize.conditions.weakest import ClampedSum, violated_by_one, weakest
from autosched.tensorize.reduction.update import update_of

PAIRS = """
def maddubs(a: u8[4, 4], b: s8[4, 4], c: s32[4]):
    for i in range(4):
        c[i] = c[i] + (s32(sat_s16(s32(a[i, 0]) * s32(b[i, 0]) + s32(a[i, 1]) * s32(b[i, 1])))
                       + s32(sat_s16(s32(a[i, 2]) * s32(b[i, 2]) + s32(a[i, 3]) * s32(b[i, 3]))))
"""
GEMM = """
def gemm(A: {a}[3, k], B: {b}[k, 5], C: s32[3, 5], *, k=6):
    {assume}
    for i, j in grid(3, 5):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
"""


def gemm(assume: str = "", a: str = "u8", b: str = "s8", **sizes: int) -> Program:
    lines = "\n    ".join(f"assume({x})" for x in assume.split(" and ")) if assume else ""
    return parse(GEMM.format(a=a, b=b, assume=lines), sizes=dict(sizes))


def matched(program: Program, semantics: str = PAIRS) -> Match:
    (found,) = match(program, [made_up(semantics)])
    return found


def test_the_lattice_of_the_saturating_pairs() -> None:
    found = matched(gemm())
    assert found.verdict == "conditional", explain(found)
    assert found.mapping_count == 3
    for mapping in found.mappings:
        (condition,) = mapping.conditions
        assert condition.text in ("-64 <= B <= 64", "0 <= A <= 128")
        assert condition.tight
        stated = {condition.text, *condition.alternatives}
        assert {"-64 <= B <= 64", "0 <= A <= 128", "0 <= A <= 129 and -127 <= B <= 127"} <= stated
        assert any("every sum of 2 neighbouring" in s for s in stated)
    assert "or if 0 <= A <= 12" in explain(found)
    got = to_json(found)["mappings"][0]["conditions"][0]
    assert (got["kind"], got["tight"], len(got["alternatives"])) == ("range", True, 3)


def test_constant_data_is_asked_of_first() -> None:
    for name, text in (("B", "-64 <= B <= 64"), ("A", "0 <= A <= 128")):
        text_of = GEMM.format(a="u8", b="s8", assume="")
        dtype = {"A": "u8[3, k]", "B": "s8[k, 5]"}[name]
        found = matched(parse(text_of.replace(f"{name}: {dtype}", f"{name}: const[{dtype}]")))
        assert {m.conditions[0].text for m in found.mappings} == {text}


DISCHARGED = [
    ("-64 <= B <= 64", {}), ("0 <= A <= 128", {}), ("A <= 128", {}), ("A <= 129 and B >= -127", {}),
    ("-10 <= B <= 64", {}), ("A <= 1", {}), ("", {"k": 1}), ("-64 <= B <= 63 and A <= 255", {"k": 9}),
]  # fmt: skip
OPEN = ["-65 <= B <= 64", "-64 <= B <= 65", "A <= 129", "A <= 130 and B >= -127", "B >= -127"]


@pytest.mark.parametrize(("assume", "sizes"), DISCHARGED)
def test_discharged(assume: str, sizes: dict[str, int]) -> None:
    """What the program assumes, and a reduction of one term, leave no condition; and the answers are right."""
    program = gemm(assume, **sizes)
    found = matched(program)
    assert found.verdict == "match", explain(found)
    assert not any(m.conditions for m in found.mappings)
    low = {a.subject: a.low for a in program.assumptions}
    high = {a.subject: a.high for a in program.assumptions}
    for extreme in (max, min):
        a = np.full(program.tensors["A"].extents, 255 if high.get("A") is None else int(high["A"]), np.uint8)
        ends = (-128 if low.get("B") is None else int(low["B"]), 127 if high.get("B") is None else int(high["B"]))
        b = np.full(program.tensors["B"].extents, extreme(ends), np.int8)
        want = run(program, {"A": a, "B": b})["C"]
        for mapping in found.mappings:
            np.testing.assert_array_equal(execute(mapping, {"A": a, "B": b, "C": np.zeros_like(want)}), want)


@pytest.mark.parametrize("assume", OPEN)
def test_not_discharged(assume: str) -> None:
    assert matched(gemm(assume)).verdict == "conditional"


def test_violating_by_one_gives_a_wrong_answer() -> None:
    """Each bound of each box, passed by one: the instruction as described really computes something else."""
    program = gemm()
    found = matched(program)
    term = update_of(program.stages[0]).term
    group = ClampedSum(term, 2, (-(2**15), 2**15 - 1), (("A", Range(0, 255)), ("B", Range(-128, 127))))
    boxes = [
        {"A": Range(0, 255), "B": Range(-64, 64)},
        {"A": Range(0, 128), "B": Range(-128, 127)},
        {"A": Range(0, 129), "B": Range(-127, 127)},
    ]
    for box in boxes:
        assert group.safe(box)
        past = violated_by_one(group, box)
        assert past
        for elements in past.values():
            a = np.full((3, 6), elements["A"], np.uint8)
            b = np.full((6, 5), elements["B"], np.int8)
            want = run(program, {"A": a, "B": b})["C"]
            for mapping in found.mappings:
                assert (execute(mapping, {"A": a, "B": b, "C": np.zeros_like(want)}) != want).any()
    assert violated_by_one(group, {"A": Range(0, 255), "B": Range(-63, 64)}) is None


def test_signed_pairs_and_narrow_operands() -> None:
    signed = PAIRS.replace("u8", "s8")
    found = matched(gemm(a="s8"), signed)
    assert found.verdict == "conditional"
    (condition,) = found.mappings[0].conditions
    assert {condition.text, *condition.alternatives} >= {"-127 <= A <= 127", "-127 <= B <= 127"}
    four = PAIRS.replace("s8", "s4").replace("u8", "u4")
    assert matched(gemm(a="u4", b="s4"), four).verdict == "match", "15 * -8 * 2 never leaves 16 bits"


def test_a_program_that_clamps_is_not_a_dot_product() -> None:
    """Clamps of groups of different sizes, and of sums that wrap before, are no dot product with a condition."""
    uneven = """
def m(a: u8[4, 3], b: s8[4, 3], c: s32[4]):
    for i in range(4):
        c[i] = c[i] + (s32(sat_s16(s32(a[i, 0]) * s32(b[i, 0]) + s32(a[i, 1]) * s32(b[i, 1])))
                       + s32(sat_s16(s32(a[i, 2]) * s32(b[i, 2]))))
"""
    wraps = PAIRS.replace("sat_s16(s32(a", "sat_s16(s16(a").replace("s32(a", "s16(a").replace("* s32(b", "* s16(b")
    for semantics in (uneven, wraps):
        assert matched(gemm(), semantics).verdict == "no"


@examples(60)
@given(
    st.integers(-128, 127), st.integers(0, 127), st.integers(0, 255), st.integers(0, 255), st.integers(1, 4),
    st.integers(9, 17),
)  # fmt: skip
def test_conditions_are_safe_and_as_wide_as_can_be(b0: int, bn: int, a0: int, an: int, terms: int, bits: int) -> None:
    """By brute force over the corners of the boxes that are stated."""
    term = update_of(gemm().stages[0]).term
    ranges = {"A": Range(a0, min(255, a0 + an)), "B": Range(b0, min(127, b0 + bn))}
    limits = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    found = weakest(ClampedSum(term, terms, limits, tuple(ranges.items())))

    def extremes(box: dict[str, Range]) -> list[int]:
        corners = [x * y * n for x in (box["A"].low, box["A"].high) for y in (box["B"].low, box["B"].high)
                   for n in range(terms + 1)]  # fmt: skip
        return [min(corners), max(corners)]

    def safe(box: dict[str, Range]) -> bool:
        return all(limits[0] <= e <= limits[1] for e in extremes(box))

    assert (found == ()) == safe(ranges)
    for n, text in enumerate([c.text for c in found or ()][:1] + [a for c in found or () for a in c.alternatives][:-1]):
        box = dict(ranges)
        for part in text.split(" and "):
            low, name, high = part.split(" <= ")
            box[name] = Range(int(low), int(high))
            assert box[name].low < box[name].high
        if n or len(found or ()) == 1:
            assert safe(box), (text, ranges, limits)
        if len(text.split(" and ")) == 1 and len(found or ()) == 1:
            (name,) = [t for t in box if box[t] != ranges[t]]
            for wider in (Range(box[name].low - 1, box[name].high), Range(box[name].low, box[name].high + 1)):
                if wider.within((ranges[name].low, ranges[name].high)):
                    assert not safe({**box, name: wider}), (text, wider)
