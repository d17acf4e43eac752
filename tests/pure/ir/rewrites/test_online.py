"""Reductions that read each other's results, in one pass: verdicts, and the program itself as the oracle."""

from __future__ import annotations

import re
from random import Random

import numpy as np
import pytest

import autosched
from autosched import ir
from autosched.ir.program import Program
from autosched.ir.rewrites.online.extremes import extremes
from autosched.ir.rewrites.online.search import online
from autosched.logic import Int, Var, evaluate, maximum, minimum, where

ROWS = """
def rows(X: f32[n, l], V: f32[l], A: f32[n], *, n=6, l=24):
    M: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
        A[i] = 0
        for j in range(l):
            A[i] += TERM
"""


def program(term: str) -> Program:
    return ir.parse(ROWS.replace("TERM", term))


def rows() -> dict[str, np.ndarray]:
    """Random rows, one of minus infinities, one with one finite element, one of greatest values, denormals, ties."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, 24)).astype(np.float32) * 5
    x[1] = -np.inf
    x[2], x[2, 7] = -np.inf, 3
    x[3] = np.finfo(np.float32).max
    x[4] = np.arange(24) * 1e-40
    x[5] = 2
    return {"X": x, "V": rng.normal(size=24).astype(np.float32)}


def test_a_mask_bounds_a_pass_whose_terms_are_rounded() -> None:
    """A rounded 0 is 0, so what a causal mask leaves out is not computed."""
    before = ir.workload("attention_rounded", mask="causal", h=1, n=24, l=24, d=4)
    (found, *_) = autosched.rewrites(before, numerics="real", block=8, tile=8)
    assert found.numerics == "real"
    assert found.finite == ("V",)
    assert "for j_block in range(min((i_tile * 8 + 15) // 8, 3)):" in str(found.after)
    rng = np.random.default_rng(0)
    data = {n: rng.normal(size=(1, 24, 4)).astype(np.float16) for n in "QKV"}
    with np.errstate(all="ignore"):
        expected, got = (ir.run(p, data)["O"] for p in (before, found.after))
    np.testing.assert_allclose(got.astype(np.float32), expected.astype(np.float32), rtol=4e-3, atol=1e-3)


def test_a_mask_bounds_the_blocks_of_one_loop() -> None:
    """Blocks that nothing is seen of are left out, and those that the mask cuts keep it in their terms."""
    before = ir.workload("attention_rounded", mask="causal", h=1, n=24, l=40, d=4)
    (found, *_) = online(before, real=True, block=16, tile=8, one_loop=True)
    text = str(found.after)
    assert found.finite == ("V",)
    assert "for j_block in range(min((i_tile * 8 + 39) // 16, 2)):" in text
    assert len(re.findall(r"max\(M\[.* if .* else -inf\)\)", text)) == 2  # whole blocks, and what is left of the axis
    rng = np.random.default_rng(0)
    data = {n: rng.normal(size=(1, 24 if n == "Q" else 40, 4)).astype(np.float16) for n in "QKV"}
    with np.errstate(all="ignore"):
        expected, got = (ir.run(p, data)["O"] for p in (before, found.after))
    np.testing.assert_allclose(got.astype(np.float32), expected.astype(np.float32), rtol=4e-3, atol=1e-3)


def test_sums_of_a_block_that_a_mask_cuts_are_computed_whole() -> None:
    """Without guards on them: what they add is zero there, and other scores are chosen from."""
    before = ir.workload("attention", mask="causal", h=1, n=40, l=40, d=4)
    texts = []
    for skips in (True, False):
        (found, *_) = online(before, block=16, tile=8, branches=True, skips=skips)
        assert found.after is not None
        texts.append(str(found.after))
        rng = np.random.default_rng(0)
        data = {n: rng.normal(size=(1, 40, 4)).astype(np.float32) for n in "QKV"}
        data["K"][0, 39] = np.inf  # the last query alone sees it
        with np.errstate(all="ignore"):
            expected, got = (ir.run(p, data)["O"] for p in (before, found.after))
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    guarded, whole = (len(re.findall(r"if j_block\w* \* .*:\n", text)) for text in texts)
    assert guarded > whole == 0


@pytest.mark.parametrize("one_loop", [False, True])
def test_a_bound_may_be_greatest_inside_a_tile(one_loop: bool) -> None:
    """One mask rises with the row, and one falls: what the first and the last row of a tile need was all that was
    computed."""
    mask = "(X[i, j] if j <= 2 * i + 4 and i + j < 18 else -inf)"
    text = ROWS.replace("max(M[i], X[i, j])", f"max(M[i], {mask})").replace("TERM", f"exp({mask} - M[i]) * V[j]")
    before = ir.parse(text, sizes={"n": 16})
    rng = np.random.default_rng(0)
    data = {n: rng.normal(size=s).astype(np.float32) for n, s in {"X": (16, 24), "V": (24,)}.items()}
    (found, *_) = online(before, block=4, tile=8, one_loop=one_loop)
    assert found.after is not None
    expected, got = (ir.run(p, data)["A"] for p in (before, found.after))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seed", range(40))
def test_extremes_hold_everything(seed: int) -> None:
    """Every value that a bound takes while its row goes through a tile, by trying them all."""
    r = Random(seed)

    def bound(depth: int) -> Int:
        if depth == 0:
            return Var("i") * r.choice([-2, -1, 0, 1, 3]) + Var("t") * r.choice([0, 1]) + r.randint(-9, 9)
        a, b = bound(depth - 1), bound(depth - 1)
        kinds = [minimum(a, b), maximum(a, b), a + b, a - b, a // 3, a * -2, a % 5, where(Var("i") > 2, a, b)]
        return r.choice(kinds)

    node = bound(r.choice([1, 2, 3]))
    found = extremes(node, "i", Var("t") * 4, Var("t") * 4 + 3)
    assert found is not None
    for t in range(-3, 4):
        least, greatest = (int(evaluate(end, {"t": t})) for end in found)
        values = [int(evaluate(node, {"t": t, "i": i})) for i in range(4 * t, 4 * t + 4)]
        assert least <= min(values)
        assert max(values) <= greatest


@pytest.mark.parametrize(
    ("term", "factor"),
    [
        ("exp(X[i, j] - M[i])", "exp(M - M')"),
        ("exp((X[i, j] - M[i]) * 0.125) * V[j]", "exp((M - M') * 0.125)"),
        ("exp((X[i, j] if j <= i else -inf) - M[i])", "exp(M - M')"),
    ],
)
@pytest.mark.parametrize(("block", "parts"), [(1, 1), (5, 1), (8, 1), (100, 1), (5, 2), (1, 7), (8, 40)])
def test_the_one_pass_computes_what_the_program_does(term: str, factor: str, block: int, parts: int) -> None:
    before = program(term)
    found = autosched.rewrites(before, block=block, parts=parts)[0]
    assert (found.verdict, found.numerics, found.rescale) == ("proved", "rescaled", {"A": factor})
    assert found.after is not None
    assert ir.parse(str(found.after)) == found.after
    assert ("A_part" in found.after.tensors) == (parts > 1)
    with np.errstate(all="ignore"):
        expected, got = (ir.run(p, rows())["A"] for p in (before, found.after))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("term", "code"),
    [
        ("tanh(X[i, j] - M[i])", "NOT_SEPARABLE"),
        ("exp(X[i, j] * M[i])", "NOT_SEPARABLE"),
        ("exp(M[i] - X[i, j])", "NOT_DISTRIBUTIVE"),
        ("f32(bf16(exp(X[i, j] - M[i])))", "CAST"),
    ],
)
def test_a_refusal_has_a_code_and_numbers_that_show_it(term: str, code: str) -> None:
    found = autosched.rewrites(program(term))[0]
    assert found.verdict == "no"
    assert found.reason is not None
    assert found.reason.code == code
    shown = found.reason.counterexample
    assert shown is not None
    if code != "NOT_DISTRIBUTIVE":
        (a, b), (c, d) = shown["values"]
        assert a * d != pytest.approx(b * c, rel=1e-5)


ARGMAX = """
def argmax(X: f32[n, l], I: s32[n], C: s32[n], *, n=6, l=24):
    M: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], X[i, j])
        I[i] = 24
        for j in range(l):
            I[i] = min(I[i], s32(j) if X[i, j] == M[i] else 24)
        C[i] = 0
        for j in range(l):
            C[i] += 1 if X[i, j] >= M[i] else 0
"""


@pytest.mark.parametrize("parts", [1, 3])
def test_the_place_of_a_maximum_starts_anew_where_that_moves(parts: int) -> None:
    before = ir.parse(ARGMAX)
    found = autosched.rewrites(before, block=5, parts=parts)[0]
    assert (found.verdict, found.numerics) == ("proved", "bitwise")
    assert found.rescale["I"] == "I if M == M' else s32(24)"
    assert found.after is not None
    x = np.random.default_rng(0).integers(-3, 3, (6, 24)).astype(np.float32)
    x[1], x[2, 3], x[3, -1], x[4, 0] = -np.inf, np.nan, 9, 9
    expected, got = ir.run(before, {"X": x}), ir.run(found.after, {"X": x})
    for name in ("I", "C"):
        np.testing.assert_array_equal(got[name], expected[name])


def test_what_equals_another_tensor_than_the_one_the_maximum_is_of_is_refused() -> None:
    text = ARGMAX.replace("X[i, j] == M[i]", "X[i, 23 - j] == M[i]")
    found = [v for v in autosched.rewrites(ir.parse(text)) if v.name == "online"]
    assert all("I" not in v.stages for v in found if v.verdict == "proved")


def test_a_rounding_between_is_accepted_over_the_reals() -> None:
    found = autosched.rewrites(program("f32(bf16(exp(X[i, j] - M[i])))"), numerics="real")[0]
    assert (found.verdict, found.numerics) == ("proved", "real")


ATTENTION = """
def attention(Q: f32[n, d], K: f32[l, d], V: f32[l, d], O: f32[n, d], *, n=6, l=24, d=4):
    S: f32[n, l]
    M: f32[n]
    Z: f32[n]
    for i, j in grid(n, l):
        S[i, j] = 0
        for p in range(d):
            S[i, j] += Q[i, p] * K[j, p]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], SCORE)
        Z[i] = 0
        for j in range(l):
            Z[i] += exp(SCORE - M[i])
    for i, e in grid(n, d):
        O[i, e] = 0
        for j in range(l):
            O[i, e] += exp(SCORE - M[i]) / Z[i] * V[j, e]
"""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("score", ["S[i, j]", "(S[i, j] if j <= i else -inf)", "(S[i, j] if j > i - 3 else -inf)"])
@pytest.mark.parametrize(("tile", "block"), [(1, 8), (2, 5), (3, 8), (100, 24)])
def test_tiles_of_rows_compute_the_scores_inside(score: str, tile: int, block: int) -> None:
    before = ir.parse(ATTENTION.replace("SCORE", score))
    found = autosched.rewrites(before, block=block, tile=tile)[0]
    assert found.after is not None
    assert "S" not in found.after.tensors
    assert "S_block" in found.after.tensors
    rng = np.random.default_rng(0)
    data = {name: rng.normal(size=before.tensors[name].extents).astype(np.float32) for name in "QKV"}
    data["Q"][1], data["Q"][2], data["K"][3] = np.nan, 1e30, 1e20
    with np.errstate(all="ignore"):
        expected, got = ir.run(before, data)["O"], ir.run(ir.parse(str(found.after)), data)["O"]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("bounds", "at"), [("range(i + 1)", "i - j"), ("range(max(0, i - 2), min(l, i + 3))", "j - i + 2")]
)
@pytest.mark.parametrize(("tile", "block"), [(1, 8), (2, 5), (3, 8)])
def test_tiles_of_rows_keep_the_bounds_of_each_row(bounds: str, at: str, tile: int, block: int) -> None:
    text = ATTENTION.replace("SCORE", "S[i, j]").replace("for j in range(l)", f"for j in {bounds}")
    text = text.replace("for i, j in grid(n, l):", f"for i in range(n):\n      for j in {bounds}:")
    before = ir.parse(text.replace("K[j, p]", f"K[{at}, p]"))  # inside K for these elements alone
    found = autosched.rewrites(before, block=block, tile=tile)[0]
    assert found.after is not None
    assert "S_block" in found.after.tensors
    rng = np.random.default_rng(0)
    data = {name: rng.normal(size=before.tensors[name].extents).astype(np.float32) for name in "QKV"}
    expected, got = ir.run(before, data)["O"], ir.run(ir.parse(str(found.after)), data)["O"]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


NESTS = """
def nests(S: f32[n, l], V: f32[l], O: f32[n], *, n=9, l=20):
    M: f32[n]
    Z: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(l):
            M[i] = max(M[i], S[i, j] if MASK else -inf)
    for i in range(n):
        Z[i] = 0
        for j in range(l):
            Z[i] += exp((S[i, j] if MASK else -inf) - M[i])
    for i in range(n):
        O[i] = 0
        for j in range(l):
            O[i] += exp((S[i, j] if MASK else -inf) - M[i]) / Z[i] * V[j]
"""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("mask", ["j >= i - 2", "i + 2 < j <= i + 6", "i <= j < i + 1", "j <= i + 3"])
@pytest.mark.parametrize(("tile", "block"), [(1, 4), (2, 5), (4, 8), (9, 8)])
def test_an_axis_may_get_the_name_of_one_that_is_gone(mask: str, tile: int, block: int) -> None:
    before = ir.parse(NESTS.replace("MASK", mask))
    found = autosched.rewrites(before, block=block, tile=tile)[0]
    assert found.stages == ("M", "Z", "O")
    assert found.after is not None
    data = ir.random_inputs(before, np.random.default_rng(0))
    expected, got = ir.run(before, data)["O"], ir.run(ir.parse(str(found.after)), data)["O"]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_scores_that_a_stage_behind_the_pass_reads_are_computed_as_a_whole() -> None:
    text = ATTENTION.replace("    S: f32[n, l]\n", "    S: f32[n, l]\n    P: f32[n, l]\n    E: f32[n, l]\n", 1)
    text = text.replace(
        "    for i, e in grid(n, d):\n",
        "    for i, j in grid(n, l):\n        P[i, j] = exp(SCORE - M[i]) / Z[i]\n"
        "    for i, j in grid(n, l):\n        E[i, j] = P[i, j] * tanh(P[i, j])\n    for i, e in grid(n, d):\n",
    )
    text = text.replace("exp(SCORE - M[i]) / Z[i] * V", "E[i, j] * V").replace("SCORE", "S[i, j]")
    before = ir.parse(text)
    found = next(f for f in autosched.rewrites(before, block=8, tile=2) if f.after is not None)
    assert found.stages == ("M", "Z")
    assert found.after is not None
    assert "S" in found.after.tensors
    data = ir.random_inputs(before, np.random.default_rng(0))
    expected, got = ir.run(before, data)["O"], ir.run(ir.parse(str(found.after)), data)["O"]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


def test_scores_that_are_an_output_are_computed_as_a_whole() -> None:
    text = ATTENTION.replace("O: f32[n, d], *", "O: f32[n, d], S: f32[n, l], *").replace("    S: f32[n, l]\n", "")
    found = autosched.rewrites(ir.parse(text.replace("SCORE", "S[i, j]")), tile=2)[0]
    assert found.after is not None
    assert "S" in found.after.outputs


@pytest.mark.parametrize("term", ["exp(S - M[i]) * S", "V[j] * S * exp(S - M[i])", "fma(S, exp(S - M[i]), V[j])"])
def test_zero_times_a_written_infinity_is_no_zero(term: str) -> None:
    found = autosched.rewrites(program(term.replace("S", "(X[i, j] if j <= i else -inf)")))
    assert [(v.verdict, v.stages) for v in found if "A" in v.stages] == [("no", ("M", "A"))]
    assert found[0].reason is not None
    assert "zero times an infinity" in found[0].reason.message


@pytest.mark.parametrize(
    "term", ["exp(V[j] - M[i])", "exp(X[i, j] * 2 - M[i])", "exp(X[i, j] - M[i])", "exp(X[i, j] - M[i] + V[j])"]
)
@pytest.mark.parametrize("of", ["X[i, j]", "(X[i, j] if j > 7 else -inf)", "X[i, j] + V[j]"])
def test_no_term_is_lost_while_the_maximum_is_infinite(term: str, of: str) -> None:
    before = ir.parse(ROWS.replace("TERM", term).replace("max(M[i], X[i, j])", f"max(M[i], {of})"))
    found = autosched.rewrites(before, block=4)[0]
    if found.after is None:
        assert found.reason is not None
        assert found.reason.code == "UNSUPPORTED"
        return
    data = rows()
    data["X"][:, :9] = -np.inf
    with np.errstate(all="ignore"):
        expected, got = (ir.run(p, data)["A"] for p in (before, found.after))
    np.testing.assert_allclose(got, expected, rtol=1e-4)


def test_a_tile_of_all_rows_has_no_loop_that_never_runs() -> None:
    """The first row sees one key, so no block is whole for all rows; with a second tile there may be one."""
    text = """
def causal(S: f32[n, n], V: f32[n], A: f32[n], *, n=16):
    M: f32[n]
    for i in range(n):
        M[i] = -inf
        for j in range(n):
            M[i] = max(M[i], S[i, j] if j <= i else -inf)
    for i in range(n):
        A[i] = 0
        for j in range(n):
            A[i] += exp((S[i, j] if j <= i else -inf) - M[i]) * V[j]
"""
    for n, loops in ((16, 1), (32, 2)):
        before = ir.parse(text, sizes={"n": n})
        found = next(f for f in autosched.rewrites(before, block=16, tile=16) if f.after is not None)
        assert str(found.after).count("for j_block") == loops


@pytest.mark.parametrize("parts", [1, 3])
def test_a_stage_behind_the_pass_may_write_at_a_fixed_index(parts: int) -> None:
    """A batch of one: the stage is computed with its tile of rows."""
    text = ATTENTION.replace("SCORE", "S[i, j]").replace("O[i, e]", "A[i, e]").replace(" / Z[i]", "")
    text = text.replace("    Z: ", "    A: f32[n, d]\n    Z: ").replace("O: f32[n, d]", "O: f32[1, n, d]")
    before = ir.parse(f"{text}    for i, e in grid(n, d):\n        O[0, i, e] = A[i, e] / Z[i]\n")
    found = autosched.rewrites(before, block=8, parts=parts, tile=3)[0]
    assert found.after is not None
    (last,) = [s for s in found.after.stages if s.assign.tensor == "O"]
    assert any("tile" in a.name for a in last.axes)
    rng = np.random.default_rng(0)
    data = {name: rng.normal(size=before.tensors[name].extents).astype(np.float32) for name in "QKV"}
    np.testing.assert_allclose(ir.run(found.after, data)["O"], ir.run(before, data)["O"], rtol=1e-5)
