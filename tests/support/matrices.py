"""Programs on registers that hold matrices, on a CPU that has such an instruction: for tests of all printers."""

from __future__ import annotations

from support.plans import AVX512, CHAIN, CONV, machine, plans_of

from autosched.ir import parse, workload
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.tiling.plan import Plan

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


def matrix_plans(program: Program, threads: int = 1) -> list[Plan]:
    """The plans whose instruction has registers that hold matrices."""
    plans = plans_of(program, target(), threads)
    return [p for p in plans if any(part.nest.intrinsic.matrices is not None for part in p.tensor_parts)]
