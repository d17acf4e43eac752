"""Where an instruction takes a stage once a part of its term is computed beforehand, that program is shown."""

from __future__ import annotations

import numpy as np
import pytest
from support.match.computes import CATALOGUE

from autosched.ir import parse
from autosched.ir.oracle.interpreter import run
from autosched.tensorize import match
from autosched.tensorize.explanation.forms import Form, better_forms, form_json, form_lines

FMA = CATALOGUE["x86/vfmadd.f32.ymm"]
NORM = """
def norm(X: f32[m, k], G: f32[k], W: f32[k, n], C: f32[m, n], *, m=6, n=16, k=12):
    S: f32[m]
    for i in range(m):
        S[i] = 0
        for q in range(k):
            S[i] += X[i, q] * X[i, q]
        for j in range(n):
            C[i, j] = 0
            for p in range(k):
                C[i, j] += {term}
"""
WEIGHTS = """
def weights(A: f32[m, k], Q: const[u4[k, n]], S: const[f32[k // 4, n]], C: f32[m, n], *, m=6, n=16, k=12):
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += A[i, p] * ((f32(Q[p, j]) - 8.0) * S[p // 4, j])
"""
CHOSEN = """
def chosen(L: f32[m, k], M: f32[m], V: f32[k, n], C: f32[m, n], *, m=6, n=16, k=12):
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += exp(L[i, p] - M[i]) * V[p, j]
"""
TOKENS = """
def tokens(T: f32[v, k], I: s32[m], W: f32[k, n], C: f32[m, n], *, m=6, n=16, k=12, v=9):
    assume(0 <= I <= 8)
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            if i + p > 0:
                C[i, j] += T[I[i], p] * W[p, j]
"""
MASKED = """
def masked(X: f32[m, k], S: f32[m], M: s32[m, k], W: f32[k, n], C: f32[m, n], *, m=6, n=16, k=12):
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += X[i, p] * rsqrt(S[i]) * W[p, j] if M[i, p] > 3 else 0
"""
FORMS = {
    "inside a choice": (MASKED, {"X_factor": (6, 12)}, True),
    "rows gathered under a guard": (TOKENS, {"T_rows": (6, 12)}, True),
    "as it stands": (NORM.format(term="X[i, p] * rsqrt(S[i]) * G[p] * W[p, j]"), {"X_factor": (6, 12)}, True),
    "grouped": (NORM.format(term="W[p, j] * X[i, p] * rsqrt(S[i]) * G[p]"), {"X_factor": (6, 12)}, False),
    "scales of groups": (WEIGHTS, {"Q_factor": (12, 16)}, True),
    "a function of differences": (CHOSEN, {"L_factor": (6, 12)}, True),
}


def forms(text: str) -> list[Form]:
    program = parse(text)
    return better_forms(program, match(program, [FMA]), [FMA])


@pytest.mark.parametrize("name", FORMS)
def test_a_form_that_fits_computes_the_same(name: str) -> None:
    text, made, exact = FORMS[name]
    (form,) = forms(text)
    assert (form.stage, form.intrinsic, form.exact, form.ran) == ("C", FMA.name, exact, True)
    assert {n: tuple(form.program.tensors[n].extents) for n in form.parts} == made
    shown = "\n".join(form_lines(form))
    assert f"stage C fits {FMA.name} with {' and '.join(made)} computed beforehand" in shown
    again = parse(form_json(form)["program"])
    assert [m.verdict for m in match(again, [FMA], stages=["C"])] == ["match"]
    program, rng = parse(text), np.random.default_rng(1)
    arrays = {}
    for n in program.inputs:
        tensor = program.tensors[n]
        numbers = rng.standard_normal(tensor.extents) if tensor.dtype.is_float else rng.integers(0, 9, tensor.extents)
        arrays[n] = numbers.astype(tensor.dtype.numpy)
    want, got = run(program, arrays)["C"], run(again, arrays)["C"]
    if exact:
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


PLAIN = "def f(A: f32[6, 12], B: f32[12, 16], C: f32[6, 16]):\n    for i, j, p in grid(6, 16, 12):\n        C[i, j] += "
NONE = {
    "it fits": PLAIN + "A[i, p] * B[p, j]\n",
    "nothing depends on fewer axes": "def f(A: f32[6, 16], C: f32[6]):\n    for i, j in grid(6, 16):\n"
    "        C[i] += exp(A[i, j]) * A[i, j] * A[i, j]\n",
    "the part is made of what the loops write": "def f(A: f32[6, 12], B: f32[12, 16], C: f32[6, 16]):\n"
    "    for i, j, p in grid(6, 16, 12):\n        C[i, j] += C[i, 0] * A[i, p] * B[p, j]\n",
    "a guard keeps the address inside": "def f(A: f32[6, 9], G: f32[6], B: f32[12, 16], C: f32[6, 16]):\n"
    "    for i, j, p in grid(6, 16, 12):\n        if p < 9:\n            C[i, j] += A[i, p] * G[i] * B[p, j]\n",
    "loops that are no box": "def f(A: f32[12, 12], G: f32[12], B: f32[12, 16], C: f32[12, 16]):\n"
    "    for i, j in grid(12, 16):\n        for p in range(i + 1):\n            C[i, j] += A[i, p] * G[i] * B[p, j]\n",
    "a guard may keep an address from data inside": TOKENS.replace("    assume(0 <= I <= 8)\n", ""),
    "a choice may keep an address from data inside": TOKENS.replace("    assume(0 <= I <= 8)\n", "")
    .replace("            if i + p > 0:\n    ", "")
    .replace("T[I[i], p] * W[p, j]", "T[I[i], p] * W[p, j] if i + p > 0 else W[p, j]"),
    "a choice may keep an address inside": "def f(A: f32[6, 9], G: f32[6], B: f32[12, 16], C: f32[6, 16]):\n"
    "    for i, j, p in grid(6, 16, 12):\n        C[i, j] += A[i, p] * G[i] * B[p, j] if p < 9 else B[p, j]\n",
    "rows are copied in order by themselves": TOKENS.replace("            if i + p > 0:\n    ", ""),
    "it chooses by its axes": "def f(A: f32[6, 12], B: f32[12, 16], C: f32[6, 16]):\n"
    "    for i, j, p in grid(6, 16, 12):\n"
    "        C[i, j] += (A[i, p] * A[i, p] if p < i else A[i, p]) * B[p, j]\n",
}


@pytest.mark.parametrize("name", NONE)
def test_no_form_where_there_is_none(name: str) -> None:
    assert forms(NONE[name]) == []


def test_a_large_program_is_run_at_small_sizes() -> None:
    (form,) = forms(WEIGHTS.replace("m=6, n=16, k=12", "m=512, n=4096, k=4096"))
    assert form.ran
    assert tuple(form.program.tensors["Q_factor"].extents) == (4096, 4096)


def test_a_stage_that_an_instruction_computes_in_place_needs_no_form() -> None:
    text = "def f(A: u8[n], C: u8[n], *, n=64):\n    for i in range(n):\n        C[i] = sat_u8(s16(C[i]) - s16(A[i]))\n"
    program, unit = parse(text), CATALOGUE["x86/vpsubusb.ymm"]
    found = match(program, [unit])
    assert [m.verdict for m in found] == ["match"]
    assert better_forms(program, found, [unit]) == []
