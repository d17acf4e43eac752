"""Programs whose reductions are cut into blocks while the lanes of their output lie apart, and rows of many forms."""

from __future__ import annotations

import numpy as np
from support.plans import machine, plans_of

from autosched.ir import parse, workload
from autosched.tiling.plans.plan import Plan

NCHW = {"h": 3, "w": 6, "ci": 18, "co": 11, "kh": 3, "kw": 3, "pad": 1, "layout": "nchw"}
ADDED = """
def added(A: f32[m, k], B: const[f32[k, n]], C: f32[n, m], *, m=7, n=11, k=140):
    for j, i in grid(n, m):
        for p in range(k):
            C[j, i] += A[i, p] * B[p, j]
"""
BIASED = """
def biased(A: f32[m, k], B: const[f32[k, n]], bias: f32[n], C: f32[n, m], *, m=7, n=11, k=140):
    for j, i in grid(n, m):
        C[j, i] = bias[j]
        for p in range(k):
            C[j, i] += A[i, p] * B[p, j]
"""
LOWER = """
def lower(A: f32[m, k], B: const[f32[k, n]], C: f32[n, m], *, m=9, n=11, k=140):
    for j, i in grid(n, m):
        C[j, i] = 1
        for p in range(k):
            if i >= j:
                C[j, i] += A[i, p] * B[p, j]
"""
PROGRAMS = {
    "nchw": workload("conv2d", **NCHW),
    "nchw_strided": workload("conv2d", **NCHW, stride=2),
    "nchw_fused": workload("conv2d_bias_relu", **NCHW, residual=1),
    "added": parse(ADDED),
    "biased": parse(BIASED),
    "lower": parse(LOWER),
}
ONLY = ("x86/vfmadd.f32.ymm",)
AVX2 = machine(frozenset(["avx2", "fma"]), 16, 32)


def cut_plan(name: str, threads: int = 1) -> Plan:
    """The plan with the rows' and lanes' axes such that lanes lie apart in the output."""
    plans = plans_of(PROGRAMS[name], AVX2, threads, ONLY)
    return next(p for p in plans if p.tensor_parts and any(f"(i←{lane})" in p.name for lane in "oj"))


def cut_rows(plan: Plan, count: int, seed: int = 0, **wanted: int) -> list[int]:
    """Legal rows with several blocks of the reduction, and these values."""
    cut = plan.tensor_parts[0].nest.blocked_reduction
    assert cut is not None
    ids = plan.space.enumerate().ids
    values = plan.space.values(ids)
    fits = values[f"block_{cut.name}"] > 0
    for name, value in wanted.items():
        fits &= values[name] == value
    return np.random.default_rng(seed).choice(ids[fits], count, replace=False).tolist()
