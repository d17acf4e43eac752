"""Programs on registers that hold matrices, on a CPU that has such an instruction: for tests of all printers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
from support.plans import AVX512, CHAIN, CONV, machine, plans_of

from autosched.ir import parse, workload
from autosched.ir.program import Program
from autosched.ir.rewrites.rewrite import simplify
from autosched.machine.target import Target
from autosched.tiling.plans.plan import Plan
from autosched.tiling.steps import DIRECT, INTERLEAVED, PADDED

FEATURES = AVX512 | {"amx_tile", "amx_int8", "amx_bf16"}

ACCUMULATED = """
def accumulated(A: u8[m, k], B: const[s8[k, n]], C: s32[m, n], *, m=35, n=33, k=70):
    for i, j in grid(m, n):
        for p in range(k):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
"""

BIAS_START = """
def bias_start(A: u8[m, k], B: const[s8[k, n]], bias: s32[n], C: s32[m, n], *, m=32, n=37, k=70):
    for i, j in grid(m, n):
        C[i, j] = bias[j]
        for p in range(k):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
"""

TRANSPOSED = """
def transposed(A: u8[k, m], B: s8[n, k], C: s32[n, m], *, m=33, n=20, k=68):
    for i, j in grid(m, n):
        C[j, i] = 0
        for p in range(k):
            C[j, i] += s32(A[p, i]) * s32(B[j, p])
"""

STRIDED = """
def strided(A: u8[m, l], B: s8[k, n], C: s32[m, l], *, m=32, n=32, k=128, l=200):
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
"""


def target() -> Target:
    return machine(FEATURES)


def programs() -> dict[str, Program]:
    """Odd and whole sizes, batches, windows, types, initial values, what is fused behind."""
    texts = {"accumulated": ACCUMULATED, "bias_start": BIAS_START, "transposed": TRANSPOSED, "strided": STRIDED}
    found = {name: parse(text, filename=f"{name}.py") for name, text in texts.items()}
    found["chain"] = parse(CHAIN, filename="chain.py", sizes={"m": 33, "n": 40, "k": 130})
    for a, b in ("u8", "s8"), ("s8", "s8"), ("u8", "u8"), ("s8", "u8"):
        found[f"matmul_{a}{b}"] = workload("matmul", m=40, n=50, k=100, a=a, b=b)
    found["matmul_whole"] = workload("matmul", m=64, n=64, k=256, a="u8", b="s8")
    found["matmul_deep"] = workload("matmul", m=32, n=16, k=600, a="s8", b="s8")
    found["matmul_small"] = workload("matmul", m=3, n=5, k=9, a="u8", b="s8")
    found["matmul_bf16"] = workload("matmul", m=33, n=35, k=70, a="bf16", b="bf16")
    found["matmul_bf16_whole"] = workload("matmul", m=32, n=48, k=64, a="bf16", b="bf16")
    found["batch_matmul"] = workload("batch_matmul", batch=3, m=18, n=34, k=70, a="u8", b="s8", acc="s32")
    found["requant"] = workload("matmul_requant", m=33, n=40, k=80)
    types = {"t": "u8", "u": "s8", "acc": "s32"}
    found["conv"] = parse(CONV, filename="conv.py", sizes={"h": 9, "w": 20, "ci": 24, **types})
    found["conv_1x1"] = parse(
        CONV,
        filename="conv.py",
        sizes={"h": 8, "w": 16, "ci": 64, "co": 32, "kh": 1, "kw": 1, "pad": 0, **types},
    )
    return found


@cache
def windows() -> dict[str, Program]:
    """Windows whose registers are filled from the image or a copy of it: borders, strides, dilation, odd channels,
    lines that a register's rows run past, channels first."""
    bytes_ = {"a": "u8", "b": "s8"}
    conv = {"h": 3, "w": 18, "ci": 64, "co": 20, "kh": 3, "kw": 3, "pad": 1}
    odd = {**conv, "ci": 24}
    thin = {"h": 5, "w": 40, "ci": 3, "co": 18, "kh": 7, "kw": 7, "stride": 2, "pad": 3}
    floats = {"a": "bf16", "b": "bf16"}
    shapes = {
        "window": ("conv2d", {**conv, **bytes_}),
        "window_signed": ("conv2d", {**conv, "w": 16, "a": "s8", "b": "s8"}),
        "window_s2": ("conv2d", {**conv, "h": 5, "w": 35, "stride": 2, **bytes_}),
        "window_no_border": ("conv2d", {**conv, "h": 5, "w": 20, "pad": 0, **bytes_}),
        "window_dilated": ("conv2d", {**conv, "h": 5, "pad": 2, "dilation": 2, **bytes_}),
        "window_odd": ("conv2d", {**odd, **bytes_}),
        "window_thin": ("conv2d", {**thin, **bytes_}),
        "window_bf16": ("conv2d", {**conv, "ci": 32, **floats}),
        "window_bf16_odd": ("conv2d", {**odd, **floats}),
        "window_bf16_thin": ("conv2d", {**thin, **floats}),
        "window_first": ("conv2d_nchw", {**conv, **bytes_}),
        "window_first_odd": ("conv2d_nchw", {**odd, **bytes_}),
        "window_first_bf16": ("conv2d_nchw", {**odd, **floats}),
        "point": ("conv2d", {**conv, "h": 2, "w": 20, "ci": 100, "kh": 1, "kw": 1, "pad": 0, **bytes_}),
        "point_bf16": ("conv2d", {**conv, "h": 2, "w": 20, "ci": 70, "kh": 1, "kw": 1, "pad": 0, **floats}),
        "point_first": ("conv2d_nchw", {**odd, "kh": 1, "kw": 1, "pad": 0, **bytes_}),
    }
    found = {name: simplify(workload(function, **sizes))[0] for name, (function, sizes) in shapes.items()}
    given = {n: replace(tensor, const=False) for n, tensor in found["window_thin"].tensors.items()}
    found["window_given"] = replace(found["window_thin"], tensors=given)  # weights with the call
    return found


COPIED = {
    "window": ("i←x, j←o, k←c", "pack_a", PADDED),
    "window_signed": ("i←x, j←o, k←s.c", "pack_a", PADDED),
    "window_s2": ("i←x, j←o, k←c", "pack_a", PADDED),
    "window_no_border": ("i←x, j←o, k←c", "pack_a", DIRECT),
    "window_dilated": ("i←x, j←o, k←c", "pack_a", PADDED),
    "window_odd": ("i←x, j←o, k←s.c", "pack_a", PADDED),
    "window_thin": ("i←x, j←o, k←s.c", "pack_a", PADDED),
    "window_given": ("i←x, j←o, k←s.c", "pack_a", PADDED),
    "window_bf16": ("i←x, j←o, k←s.c", "pack_a", PADDED),
    "window_bf16_odd": ("i←x, j←o, k←c", "pack_a", PADDED),
    "window_first": ("i←o, j←x, k←c", "pack_b", INTERLEAVED),
    "window_first_odd": ("i←o, j←x, k←c", "pack_b", INTERLEAVED),
    "point": ("i←y.x, j←o, k←c", "pack_a", DIRECT),
    "point_bf16": ("i←y.x, j←o, k←c", "pack_a", DIRECT),
    "point_first": ("i←o, j←y.x, k←c", "pack_b", INTERLEAVED),
}
"""Windows with a mapping, and which operand is filled from the image itself or which copy of it."""


@cache
def copied_plan(name: str) -> Plan:
    """A plan of a window for two threads, with the mapping that `COPIED` says."""
    mapping, _, _ = COPIED[name]
    return next(p for p in matrix_plans(windows()[name], threads=2) if f"({mapping})" in p.name)


def copied(name: str, count: int, seed: int = 7) -> tuple[Plan, list[int]]:
    """That plan, and legal rows that read the image as `COPIED` says."""
    _, column, kind = COPIED[name]
    plan = copied_plan(name)
    ids = plan.space.enumerate().ids
    there = ids[plan.space.values(ids)[column] == kind]
    return plan, np.random.default_rng(seed).permutation(there)[:count].tolist()


def matrix_plans(program: Program, threads: int = 1) -> list[Plan]:
    """The plans whose instruction has registers that hold matrices."""
    plans = plans_of(program, target(), threads)
    return [p for p in plans if any(part.nest.intrinsic.matrices is not None for part in p.tensor_parts)]
