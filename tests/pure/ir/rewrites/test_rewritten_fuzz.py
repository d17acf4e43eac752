"""Random programs of reductions over rows (`tests/fuzz/rewritten.py`), and the small programs that it found wrong."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from fuzz.rewritten import Found, check, search, wrong_in
from fuzz.rows import program
from support.rewritten.agreement import Options, wrong_numbers
from support.rewritten.counterexamples import shows
from support.rewritten.oracle import run
from support.rewritten.rows_of_kinds import inputs

import autosched
from autosched import ir
from autosched.ir.rewrites.verdict import RewriteVerdict

ROWS = """
def f(X: T[3, 5], Y: T[3, 5], V: T[5], G: u8[3, 5], I: s32[5], c: T, A: T[3]):
    assume(0 <= I <= 4)
    M: T[3]
    for i in range(3):
        M[i] = -inf
        for j in range(5):
            M[i] = max(M[i], SCORE)
        A[i] = 0
        for j in range(5):
            A[i] += TERM
"""


def text_of(term: str, score: str = "X[i, j]", dtype: str = "f32") -> str:
    text = ROWS.replace("T[", f"{dtype}[").replace("c: T", f"c: {dtype}")
    return text.replace("TERM", term).replace("SCORE", score)


def one_pass(term: str, score: str = "X[i, j]", dtype: str = "f32", numerics: str = "rescaled") -> RewriteVerdict:
    found = autosched.rewrites(ir.parse(text_of(term, score, dtype)), numerics=numerics, block=2)
    return next(v for v in found if v.name == "online")


@pytest.mark.parametrize(("first", "programs"), [(13, 3), pytest.param(12, 4, marks=pytest.mark.slow)])
def test_few_programs(first: int, programs: int) -> None:
    found = search(first, programs)
    assert not found.wrong
    assert found.counts["programs"] == programs


@pytest.mark.slow
@pytest.mark.parametrize("seed", [77, 88, 91, 92, 221, 288, 299, 326, 367, 894, 1016, 1507, 1568, 2147])
def test_programs_that_were_wrong(seed: int) -> None:
    found = Found()
    check(seed, found)
    assert not found.wrong


def test_programs_are_of_many_kinds() -> None:
    texts = [program(seed) for seed in range(300)]
    for part in ("log(", "bf16", "if G[", "min(M0[", "for h, i in", "for j, k in", "*= ", "rsqrt(", "I[j]", "-1e30",
                 "f16[", "f64[", "/ S", "P1[", "h // 2", "== M0", "jo * 4 + ji", "s32(j) < L[i]"):  # fmt: skip
        assert sum(part in t for t in texts) >= 3, part


@pytest.mark.slow
def test_eighty_programs() -> None:
    """`python -m tests.fuzz.rewritten --programs 5000` looks at more of them."""
    found = search(5000, 80)
    assert not found.wrong
    assert found.counts["accepted: online at rescaled"] >= 8
    assert found.counts["accepted: defer at rescaled"] >= 2
    assert found.counts["counterexamples"] >= 5


def test_a_wrong_factor_is_told() -> None:
    found = one_pass("exp(X[i, j] - M[i])")
    before = ir.parse(text_of("exp(X[i, j] - M[i])"))
    how = Options(2, 1, None)
    assert not wrong_in(before, found, how, 0)
    right, wrong = "exp(M_before[i] - M_so_far[i])", "exp((M_before[i] - M_so_far[i]) * 0.5)"
    assert right in str(found.after)
    assert wrong_in(before, replace(found, after=ir.parse(str(found.after).replace(right, wrong))), how, 0)


def test_a_smaller_bound_is_told() -> None:
    """The check of certificates sees exponents whose parts are far from 0: X c and M c round before they cancel."""
    term = "exp(X[i, j] * c - M[i] * c)"
    found, before = one_pass(term), ir.parse(text_of(term))
    assert found.error is not None
    assert " + 2 x" in found.error
    less = replace(found, error=found.error.replace(" + 2 x", ""))
    data = [inputs(before, "offset", seed) for seed in range(8)]
    assert not any(wrong_numbers(before, found, Options(2, 1, None), d, 0.3) for d in data)
    assert any(wrong_numbers(before, less, Options(2, 1, None), d, 0.3) for d in data)


def test_a_quotient_of_exponentials_may_be_none() -> None:
    """1 / exp(x) overflows where exp(x) is 0: times exp(x) it is no number, and as one exponential it is 1."""
    term = "V[j] / exp(X[i, j] - M[i]) * (exp(X[i, j] - M[i]) * exp(X[i, j] - M[i])) * c"
    assert one_pass(term, numerics="real").numerics == "real"
    assert one_pass("sqrt(exp(X[i, j] - M[i])) * c").numerics == "rescaled"


def test_what_a_mask_leaves_out_is_named() -> None:
    """0 * inf of a masked element is no number; a term taken apart has 0 there."""
    masked = "(X[i, j] if G[i, j] != 0 else -inf)"
    found = one_pass(f"exp({masked} - M[i]) * V[j] * c", masked)
    assert found.numerics == "rescaled"
    assert [b.split()[2] for b in found.because] == ["V"]
    assert not one_pass(f"exp({masked} - M[i]) * V[j]", masked).because


def test_an_infinite_result_in_a_factor_taken_out() -> None:
    """1 / inf is 0 after the maximum, and -inf / inf is no number before it."""
    text = text_of("X[i, j]", "X[i, j] * X[i, j]").replace("A[i] = 0", "A[i] = -inf")
    text = re.sub("def f.*:", "def f(X: f32[3, 5], A: f32[3]):", text).replace("    assume(0 <= I <= 4)\n", "")
    before = ir.parse(text.replace("A[i] += X[i, j]", "A[i] = max(A[i], X[i, j] / (1 + abs(M[i])))"))
    (found,) = (v for v in autosched.rewrites(before, block=2) if v.name == "online")
    assert found.after is not None
    x = np.ones((3, 5), np.float32)
    x[1, 2] = -np.inf
    with np.errstate(all="ignore"):
        expected, got = (run(p, {"X": x}, {})["A"] for p in (before, found.after))
    assert np.isnan(expected[1])
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize(
    ("term", "dtype"),
    [
        ("tanh(X[i, j] * c - M[i])", "f32"),
        ("tanh(X[i, I[j]] - M[i])", "f32"),
        ("tanh(f32(j) - M[i])", "f32"),
        ("tanh(X[i, j] - M[i]) * (1.0 if j > 0 and G[i, j] != 0 else 0.0)", "f32"),
        ("tanh(X[i, j] - M[i]) if j < 3 or G[i, j] != 0 else 0.5", "f32"),
        ("tanh(X[i, j] - M[i])", "f16"),
    ],
)
def test_a_counterexample_can_be_computed_from_what_it_shows(term: str, dtype: str) -> None:
    before = ir.parse(text_of(term, dtype=dtype))
    (found,) = (v for v in autosched.rewrites(before) if v.name == "online")
    assert found.reason is not None
    assert found.reason.counterexample is not None
    assert shows(before, found.reason.stage, found.reason.counterexample) == ""


def test_a_counterexample_names_what_neither_side_decides() -> None:
    found = one_pass("tanh(X[i, j] * c - M[i])")
    assert found.reason is not None
    assert found.reason.counterexample is not None
    assert list(found.reason.counterexample["given"]) == ["c"]


def test_an_axis_as_a_number_is_one_that_it_counts() -> None:
    found = one_pass("tanh(f32(j) - M[i])")
    assert found.reason is not None
    assert found.reason.counterexample is not None
    assert all(data["f32(j_2)"] in range(5) for data in found.reason.counterexample["data"])


OTHER_ROW = """
def f(X: f32[2, 11], A: f32[2], B: f32[2], M: f32[2], S: f32[2]):
    for i in range(2):
        M[i] = -inf
        for j in range(11):
            M[i] = max(M[i], X[i, j])
        S[i] = 0
        for j in range(11):
            S[i] += exp(X[i, j] - M[i])
    for i in range(2):
        A[i] = 0
        for j in range(11):
            A[i] += X[i, j] / (1 + S[i]) * exp(X[i, j] - M[i % 2])
"""


def test_a_result_of_another_row_beside_one_of_the_same_row() -> None:
    """The second is read by another stage than the first: the pass that has both is refused."""
    first, *others = (v for v in autosched.rewrites(ir.parse(OTHER_ROW)) if v.name == "online")
    assert first.reason is not None
    assert (first.reason.code, first.reason.stage) == ("DEPENDS", "A")
    assert "M[i_2 % 2], a result of another row" in first.reason.message
    assert [v.stages for v in others] == [("M", "S")]


@pytest.mark.parametrize("term", ["floor(X[i, j] * 0) + M[i]", "exp(X[i, j] - M[i]) * tanh(X[i, j] * 0 + M[i])"])
def test_a_factor_whose_text_has_data_in_it_stays_in_the_sum(term: str) -> None:
    """X * 0 depends on nothing, and is written with an axis that is known inside the loop only."""
    for found in autosched.rewrites(ir.parse(text_of(term)), numerics="real"):
        assert not any("X" in factor for factor in found.deferred.values())
        assert found.after is None or ir.parse(str(found.after)).outputs == ("A",)


def test_sums_of_parts_that_overflow_are_computed_as_written() -> None:
    text = text_of("exp(X[i, j] - M[i]) / S[i]").replace("    M: f32[3]\n", "    M: f32[3]\n    S: f32[3]\n")
    summed = "        S[i] = 0\n        for j in range(5):\n            S[i] += Y[i, j]\n        A[i] = 0"
    before = ir.parse(text.replace("        A[i] = 0", summed))
    found = next(v for v in autosched.rewrites(before, block=1, parts=2) if v.name == "online")
    assert found.stages == ("M", "S", "A")
    assert found.after is not None
    data = inputs(before, "random", 0)
    data["Y"][:] = np.array([-3e38, 3e38, 3e38, -3e38, 3e38], np.float32)
    expected, got = (run(p, data, {"c": np.float32(1)}) for p in (before, found.after))
    assert np.isfinite(expected["S"]).all()
    np.testing.assert_array_equal(got["S"], expected["S"])
    np.testing.assert_allclose(got["A"], expected["A"], rtol=1e-5)


TWO_ROWS = """
def f(X: f32[1, 2, 5], A: f32[1, 2], B: f32[1, 2], M: f32[1, 2]):
    for h, i in grid(1, 2):
        M[h, i] = -inf
        for j in range(5):
            M[h, i] = max(M[h, i], X[h, i, j])
    for h, i in grid(1, 2):
        A[h, i] = -inf
        for j in range(5):
            A[h, i] = max(A[h, i], X[h, i, j] * rsqrt(M[h, i] + 9))
    for h, i in grid(1, 2):
        B[h, i] = 0
        for j in range(5):
            B[h, i] += X[h, i, j] * (M[h, 1 - i] + M[h, i])
"""


@pytest.mark.parametrize("tile", [None, 1])
def test_stages_that_share_a_reference_but_not_their_rows(tile: int | None) -> None:
    """`B` needs the maxima of two rows, so it goes through rows that `A` does not: each is a cascade of its own."""
    before = ir.parse(TWO_ROWS)
    data = inputs(before, "random", 0)
    for found in autosched.rewrites(before, numerics="real", block=2, tile=tile):
        if found.after is not None:
            got, expected = run(ir.parse(str(found.after)), data, {}), run(before, data, {})
            for name in ("A", "B", "M"):
                np.testing.assert_allclose(got[name], expected[name], rtol=1e-5)


def test_a_term_that_may_be_infinite_is_no_identity() -> None:
    """Whether exp(inf) of a first sum is masked is asked of a value that has no normal form."""
    text = text_of("X[i, j] / M[i]").replace("M[i] = -inf", "M[i] = 0")
    summed = "M[i] += exp((X[i, j] if G[i, j] != 0 else inf))"
    found = autosched.rewrites(ir.parse(text.replace("M[i] = max(M[i], X[i, j])", summed)))
    assert [(v.name, v.stages) for v in found if v.verdict == "proved"] == [("online", ("M", "A"))]


def test_a_factor_with_a_number_that_the_type_does_not_hold() -> None:
    """0.3 of f32 squared has 49 bits: the sum is split into states whose factors cannot be written in f32."""
    found = one_pass("(V[j] - M[i] * 0.3) * (V[j] - M[i] * 0.3)", numerics="real")
    assert found.reason is not None
    assert found.reason.code == "UNSUPPORTED"
    assert "which is no f32" in found.reason.message


@pytest.mark.parametrize("term", ["exp(X[i, j] - M[i] * M[i])", "exp(X[i, j] - M[i] / M[i] / M[i])"])
def test_an_exponent_that_is_not_linear_in_a_result(term: str) -> None:
    found = one_pass(term)
    assert found.reason is not None
    assert (found.reason.code, found.reason.stage) == ("UNSUPPORTED", "A")


CONDITION = """
def f(X: f32[2, 5], W: f32[5, 2], M: f32[2], A: f32[2, 2], S: f32[2], B: f32[2]):
    for i in range(2):
        M[i] = -inf
        for j in range(5):
            M[i] = max(M[i], X[i, j])
        for e in range(2):
            A[i, e] = 0
            for j in range(5):
                A[i, e] += exp(X[i, j] - M[i]) * W[j, e]
        S[i] = 0
        for j in range(5):
            S[i] += exp(X[i, j] - M[i])
        B[i] = -inf
        for j in range(5):
            B[i] = max(B[i], X[i, j] * (S[i] - 2))
"""


def test_a_condition_on_a_result_is_asked_once_it_is_known() -> None:
    """B's factor has to be positive, which S tells; A is finished before S is."""
    before = ir.parse(CONDITION)
    (found,) = (v for v in autosched.rewrites(before, block=2) if v.name == "online")
    assert found.conditions == ("S[i] - 2.0 > 0.0",)
    assert found.stages == ("M", "A", "S", "B")
    assert found.after is not None
    assert found.after.inputs == before.inputs
    for seed in range(4):
        data = inputs(before, "random", seed)
        got, expected = run(found.after, data, {}), run(before, data, {})
        for name in ("A", "S", "B"):
            np.testing.assert_allclose(got[name], expected[name], rtol=1e-5)


@pytest.mark.parametrize("c", [np.inf, -np.inf, np.nan, 0.0, 1e30])
@pytest.mark.parametrize("factor", ["c", "1 / c", "rsqrt(1 + c * c)", "1 / (1 + V[0] * c)"])
def test_a_factor_that_is_infinite(c: float, factor: str) -> None:
    """X / inf is 0, but inf / inf is no number, whichever of the terms that is."""
    text = text_of(f"X[i, j] * ({factor})")
    before = ir.parse(text.replace("M[i] = max(M[i], X[i, j])", "M[i] = max(M[i], Y[i, j])"))
    for kind in ("random", "infinite", "one", "opposite", "zeros"):
        data = inputs(before, kind, 0)
        for found in autosched.rewrites(before, block=2):
            if found.after is not None and found.name == "defer":
                got, expected = (run(p, data, {"c": np.float32(c)})["A"] for p in (found.after, before))
                np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
                np.testing.assert_array_equal(got[np.isinf(expected)], expected[np.isinf(expected)])
