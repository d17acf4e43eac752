"""Programs that no instruction of the machine fits as they are, and the plans that adapters make for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from autosched.ir import parse, random_inputs
from autosched.ir.oracle.inputs import split_inputs
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of as tuning_plans
from autosched.tiling.plans.plan import Plan

GEMM = """
def {name}(A: {a}[m, k], B: const[{b}[k, n]], z: s32[n], C: {c}[m, n], x: s32, *, m=5, n=37, k=10):
    for i, j in grid(m, n):
        {init}
        for p in range(k):
            C[i, j] {op} {term}
"""
CONV = """
def conv(X: s8[h, w, ci], W: const[s8[3, 3, ci, co]], Y: s32[h, w, co], *, h=4, w=5, ci=3, co=18):
    for y, x, o in grid(h, w, co):
        Y[y, x, o] = 0
        for r, s, c in grid(3, 3, ci):
            if 0 <= y + r - 1 < h and 0 <= x + s - 1 < w:
                Y[y, x, o] += s32(X[y + r - 1, x + s - 1, c]) * s32(W[r, s, c, o])
"""
TWO = """
def two(A: s8[m, k], B: const[s8[k, n]], E: const[s8[n, l]], D: s32[m, l], *, m=2, n=9, k=3, l=17):
    C: s32[m, n]
    S: s8[m, n]
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
    for i, j in grid(m, n):
        S[i, j] = sat_s8(C[i, j] >> 5)
    for i, q in grid(m, l):
        D[i, q] = 1
        for j in range(n):
            D[i, q] += s32(S[i, j]) * s32(E[j, q])
"""
FACTORED = """
def factored(A: f32[m, k], x: f32[m], B: const[s8[k, n]], E: const[s8[n, l]], D: s32[m, l], *, m=2, n=9, k=4, l=17):
    C: s32[m, n]
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += s32(sat_u8(round(A[i, p] * x[i]))) * s32(B[p, j])
    for i, q in grid(m, l):
        D[i, q] = 1
        for j in range(n):
            D[i, q] += s32(sat_u8(max(C[i, j] >> 2, 0))) * s32(E[j, q])
"""
PRODUCT = "s32(A[i, p]) * s32(B[p, j])"
FLOATS = "f32(A[i, p]) * f32(B[p, j])"


def gemm(
    name: str, term: str, a: str = "s8", b: str = "s8", c: str = "s32", op: str = "+=", init: str = "0", **sizes: int
) -> Program:
    start = f"C[i, j] = {init}" if init else "# live"
    text = GEMM.format(name=name, a=a, b=b, c=c, op=op, term=term, init=start)
    return parse(text, sizes=sizes)


def programs() -> dict[str, Program]:
    found = [
        gemm("signed_by_signed", PRODUCT),
        gemm("unsigned_live", PRODUCT, "u8", "u8", init=""),
        gemm("literal_zero_points", "s32(s16(A[i, p]) - 7) * s32(s16(B[p, j]) + 100)", "u8"),
        gemm("zero_points", "(s32(A[i, p]) - x) * (s32(B[p, j]) - z[j])"),
        gemm("subtracted", PRODUCT, "u8", op="-=", init=""),
        gemm("truncated", "s16(A[i, p]) * s16(B[p, j])", "u8", c="s16", init="9"),
        gemm("squares", "(s32(A[i, p]) - s32(B[p, j])) * (s32(A[i, p]) - s32(B[p, j]))", "u8", "u8"),
        gemm("bytes_as_words", f"{PRODUCT} + s32(A[i, p])", "u8", "u8"),
        gemm("two_products", f"({PRODUCT} << x) - 3 * s32(A[i, 2 - p]) * s32(B[2 - p, j])", "u8", m=1, n=5, k=3),
        gemm("nibbles", PRODUCT, "u4", "s4"),
        gemm("nibbles_centred", "s32(A[i, p]) * (s32(B[p, j]) - 8)", "u8", "u4"),
        gemm("halves", FLOATS, "f16", "f16", "f32", init="0.5"),
        gemm("eight_bits", FLOATS, "e4m3", "e5m2", "f32"),
        gemm("bytes_by_floats", "(f32(A[i, p]) - 3.0) * B[p, j]", "u8", "f32", "f32"),
        gemm("floats_subtracted", "A[i, p] * B[p, j]", "f32", "f32", "f32", "-=", ""),
        parse(CONV),
        parse(TWO),
        parse(FACTORED),
    ]
    return {p.name: p for p in found}


def inputs(program: Program, seed: int) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Random arrays and scalars; floats are small whole numbers, of which sums in any order are exact."""
    arrays, scalars = split_inputs(program, random_inputs(program, np.random.default_rng(seed)))
    rng = np.random.default_rng(seed)
    for name, array in arrays.items():
        if program.tensors[name].dtype.is_float:
            arrays[name] = rng.integers(-4, 5, array.shape).astype(array.dtype)
    return arrays, scalars


def adapted_plans(program: Program, target: Target) -> list[Plan]:
    """The plans of tuning that need an adapter, each intrinsic and set of adapters once."""
    threads = 2 if len(program.stages) == 1 else 1  # spaces of several parts multiply
    _, plans = tuning_plans(TuneRequest(program, target, device="cpu", threads=threads))
    found: dict[object, Plan] = {}
    for plan in plans:
        if plan.program is not program and plan.name.endswith("]"):
            found.setdefault((plan.intrinsics, plan.name.rpartition("[")[2]), plan)
    return list(found.values())
