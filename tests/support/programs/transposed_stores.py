"""Programs whose output has its lanes' axis outside, and rows of spaces with register tiles of many shapes."""

from __future__ import annotations

import numpy as np

from autosched.ir import parse, workload
from autosched.tiling.plans.plan import Plan

SWAPPED = """
def swapped(A: t[m, k], B: const[u[k, n]], C: acc[n, m], *, m=15, n=19, k=6, t="f32", u="f32", acc="f32"):
    for j, i in grid(n, m):
        C[j, i] = 0
        for p in range(k):
            C[j, i] += acc(A[i, p]) * acc(B[p, j])
"""
MIXED = """
def mixed(A: f32[m, k], B: const[f32[k, n]], R: bf16[n, m], Q: f32[m, n], G: f32[n], H: f32[m],
          Y: f32[n, m], Z: f32[n, m], *, m=15, n=19, k=6):
    C: f32[n, m]
    for j, i in grid(n, m):
        C[j, i] = 0
        for p in range(k):
            C[j, i] += A[i, p] * B[p, j]
    for j, i in grid(n, m):
        Y[j, i] = max(C[j, i] * G[j] + f32(R[j, i]) * Q[i, j], H[i]) + C[j, i] * Q[i, j]
    for j, i in grid(n, m):
        Z[j, i] = C[j, i] if R[j, i] < 0 else f32(R[j, i]) * C[j, i]
"""
UPDATED = """
def updated(A: f32[m, k], B: const[f32[k, n]], R: f32[n, m], C: f32[n, m], *, m=15, n=19, k=6):
    for j, i in grid(n, m):
        C[j, i] = 0
        for p in range(k):
            C[j, i] += A[i, p] * B[p, j]
    for j, i in grid(n, m):
        C[j, i] = max(C[j, i] + R[j, i], 0)
"""
NCHW = {"h": 2, "w": 7, "ci": 3, "co": 19, "kh": 1, "pad": 1, "layout": "nchw"}
PROGRAMS = {
    "swapped": parse(SWAPPED),
    "swapped_bytes": parse(SWAPPED, sizes={"t": "u8", "u": "s8", "acc": "s32"}),
    "nchw": workload("conv2d", **NCHW),
    "nchw_bytes": workload("conv2d", **NCHW | {"ci": 5, "kh": 3, "co": 32}, a="u8", b="s8", acc="s32"),
    "nchw_fused": workload("conv2d_bias_relu", **NCHW, residual=1),
    "mixed": parse(MIXED),
    "updated": parse(UPDATED),
}
SIZES = (1, 2, 3, 7, 8, 14)
ONLY = ("x86/vfmadd.f32.*", "x86/vpdpbusd.*")


def rows_of_all_sizes(plan: Plan, axis: str) -> list[int]:
    """A legal row for each of some numbers of rows along the axis that a register tile may have."""
    ids = plan.space.enumerate().ids
    sizes = plan.space.values(ids)[f"reg_{axis}"]
    rng = np.random.default_rng(3)
    return [int(rng.choice(ids[sizes == size])) for size in np.unique(sizes) if size in SIZES]
