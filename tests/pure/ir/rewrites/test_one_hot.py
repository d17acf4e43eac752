"""Sums over numbers of which data say one: what results, what is refused, and that it computes the same."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from fuzz.hot import SCALARS, data_of, random_hot

from autosched import ir
from autosched.ir.program import Program
from autosched.ir.rewrites.one_hot import one_hot
from autosched.ir.rewrites.verdict import RewriteVerdict

ROWS = """
def f(I: s32[m], U: u8[m], W: f32[k, n], B: f32[n, n], O: f32[m, n], *, m=4, k=6, n=3):
    for i, j in grid(m, n):
        O[i, j] = 0
        for p in range(k):
            BODY
"""


def text_of(body: str, assumed: str = "") -> str:
    text = ROWS.replace("            BODY", "\n".join(f"            {line}" for line in body.split("\n")))
    return text.replace("    for i, j", f"    {assumed}\n    for i, j", 1) if assumed else text


def verdicts(body: str, assumed: str = "", **sizes: int) -> list[RewriteVerdict]:
    return list(one_hot(ir.parse(text_of(body, assumed), sizes=sizes)))


def after(body: str, assumed: str = "") -> str:
    (found,) = verdicts(body, assumed)
    assert found.reason is None
    return str(found.after).split("\n", 1)[1]


GATHERED = """\
    for i, j in grid(4, 3):
        O[i, j] = (0.0 + W[I[i], j] if I[i] >= 0 and I[i] < 6 else 0.0)
"""


@pytest.mark.parametrize(
    ("body", "numerics"),
    [
        ("O[i, j] += (1.0 if I[i] == s32(p) else 0.0) * W[p, j]", "reassociated"),
        ("O[i, j] += W[p, j] * (1.0 if s32(p) == I[i] else 0.0)", "reassociated"),
        ("O[i, j] += W[p, j] if I[i] == s32(p) else 0.0", "bitwise"),
        ("O[i, j] += 0.0 if I[i] != s32(p) else W[p, j]", "bitwise"),
        ("O[i, j] += W[p, j] if I[i] - s32(p) == 0 else 0.0", "bitwise"),
        ("if I[i] == s32(p):\n    O[i, j] += W[p, j]", "bitwise"),
    ],
)
def test_every_spelling_becomes_one_gather(body: str, numerics: str) -> None:
    (found,) = verdicts(body)
    assert found.reason is None
    assert (found.axis, found.numerics, found.finite) == ("p", numerics, ("W",) if numerics != "bitwise" else ())
    assert all(o.proved and o.by == "z3" for o in found.obligations)
    assert str(found.after).endswith(GATHERED)


def test_what_is_known_is_not_asked() -> None:
    text = after("O[i, j] += W[p, j] if I[i] == s32(p) else 0.0", "assume(0 <= I <= 5)")
    assert text.endswith("        O[i, j] = 0.0 + W[I[i], j]\n")
    half = after("O[i, j] += W[p, j] if U[i] == u8(p) else 0.0")
    assert "if U[i] < 6 else 0.0" in half


def test_a_product_keeps_its_other_sum() -> None:
    body = "for q in range(n):\n    O[i, j] += (1.0 if I[i] == s32(p) else 0.0) * W[p, q] * B[q, j]"
    (found,) = verdicts(body)
    assert found.finite == ("B", "W")
    assert "for q in range(3):" in str(found.after)
    assert "O[i, j] += W[I[i], q] * B[q, j]" in str(found.after)


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("O[i, j] += W[p, j] if I[i] == s32(p) else 1.0", "NOT_NEUTRAL", "where I[i] == s32(p) fails the term is 1.0"),
        ("O[i, j] += (2.0 if I[i] == s32(p) else 1.0) * W[p, j]", "NOT_NEUTRAL", "is not known to add nothing"),
        ("O[i, j] += (1.0 if I[i] == s32(p) else 0.0) * exp(W[p, j])", "NOT_NEUTRAL", "is not known to add nothing"),
        ("O[i, j] = max(O[i, j], W[p, j] if I[i] == s32(p) else 0.0)", "NOT_NEUTRAL", "fails the term is 0.0"),
        ("O[i, j] += (W[p, j] if p < 3 else 0.0) if I[i] == s32(p) else 0.0", "UNSUPPORTED", "a condition on axes"),
    ],
)
def test_what_is_refused(body: str, code: str, said: str) -> None:
    (found,) = verdicts(body)
    assert found.reason is not None
    assert (found.reason.code, found.verdict) == (code, "unknown" if "not known" in said else "no")
    assert said in found.reason.message


def test_a_type_that_wraps_is_told_with_two_numbers() -> None:
    (found,) = verdicts("O[i, j] += W[p, j] if U[i] == u8(p) else 0.0", k=300)
    assert found.reason is not None
    assert found.reason.code == "NOT_SINGLE"
    assert found.reason.message == "u8(p) wraps in the loop over p: for p = 0 and 256 it is one number"
    assert found.reason.counterexample is not None
    first, second = found.reason.counterexample["numbers"]
    program = ir.parse(text_of("O[i, j] += W[p, j] if U[i] == u8(p) else 0.0"), sizes={"k": 300})
    data = {n: np.zeros(program.tensors[n].extents, program.tensors[n].dtype.numpy) for n in program.inputs}
    data["W"][[first, second]] = 1
    assert (ir.run(program, data)["O"] == 2).all()


def test_what_is_written_in_the_same_loops_chooses_nothing() -> None:
    program = ir.parse(
        "def f(W: f32[6], I: s32[4], O: f32[4]):\n"
        "    for i in range(4):\n"
        "        I[i] = I[i] + 1\n"
        "        for p in range(6):\n"
        "            O[i] += W[p] if I[i] == s32(p) else 0.0\n"
    )
    (found,) = [v for v in one_hot(program) if v.stages == ("O",)]
    assert found.reason is not None
    assert found.reason.code == "DEPENDS"


ORDERED = {
    "the sum is read": """
def f(I: s32[6], O: s32[6], *, n=6, k=8):
    for p in range(k):
        for i in range(n - 1):
            if I[i] == s32(p):
                O[i + 1] += O[i]
""",
    "the sum is asked": """
def f(I: s32[6], V: s32[8, 6], O: s32[6]):
    for i in range(6):
        for p in range(8):
            for q in range(6):
                if I[q] == s32(p) and O[i] < 10:
                    O[i] += V[p, q]
""",
}


@pytest.mark.parametrize("why", ORDERED)
def test_loops_inside_run_in_the_order_that_matters(why: str) -> None:
    """Each ran once for each number, in the order of the numbers; wrong numbers, at `bitwise`."""
    (found,) = one_hot(ir.parse(ORDERED[why]))
    assert found.reason is not None
    assert found.reason.code == "DEPENDS"


def test_another_order_of_floats_is_reassociated() -> None:
    text = """
def f(I: s32[6], V: f32[8, 6], O: f32[SHAPE]):
    for p in range(8):
        for i in range(6):
            if I[i] == s32(p):
                O[AT] += V[p, i]
"""
    levels = {at: next(one_hot(ir.parse(text.replace("AT", at).replace("SHAPE", "6")))).numerics for at in ("0", "i")}
    assert levels == {"0": "reassociated", "i": "bitwise"}


@pytest.mark.parametrize(
    ("dtype", "read"), [("s32", "f16(V[p])"), ("bf16", "f16(V[p])"), ("f32", "f16(V[p])"), ("e5m2", "f16(e4m3(V[p]))")]
)
def test_a_conversion_that_overflows_is_not_finite(dtype: str, read: str) -> None:
    text = """
def f(I: s32[6], V: DTYPE[8], O: f16[6]):
    for i in range(6):
        O[i] = 0
        for p in range(8):
            O[i] += (1.0 if I[i] == s32(p) else 0.0) * READ
"""
    (found,) = one_hot(ir.parse(text.replace("DTYPE", dtype).replace("READ", read)))
    assert found.reason is not None
    assert found.reason.code == "NOT_NEUTRAL"


def wrong_of(program: Program, found: RewriteVerdict, seed: int) -> str:
    """How the rewritten program differs on some data; nothing where it does not."""
    assert found.after is not None
    again = ir.parse(str(found.after))
    for k in range(4):
        data = data_of(program, 8 * seed + k)
        scalars = {n: SCALARS[n] + k - 1 for n in program.scalars}
        want, got = (ir.run(p, data, scalars=scalars)["O"] for p in (program, again))
        alike = np.array_equal(want, got, equal_nan=want.dtype.kind == "f")
        same = want.tobytes() == got.tobytes() if found.numerics == "bitwise" else alike
        if not same:
            return f"{want} is {got} on {data}\n{program}\n{again}"
    return ""


def search(first: int, programs: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    for seed in range(first, first + programs):
        program = random_hot(seed)
        found = list(one_hot(program))
        counts["none"] += not found
        for v in found:
            counts[v.reason.code if v.reason else f"proved at {v.numerics}"] += 1
            if v.reason is None:
                assert not (wrong := wrong_of(program, v, seed)), f"program {seed}: {wrong}"
    return counts


def test_random_programs() -> None:
    counts = search(0, 40)
    assert counts["proved at bitwise"] >= 5
    assert counts["proved at reassociated"] >= 3
    assert counts["NOT_NEUTRAL"] >= 2
