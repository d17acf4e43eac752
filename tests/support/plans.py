"""Plans of small programs and rows that cover their spaces: shared by the tests of lowering and of the printers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from autosched.ir import parse, workload
from autosched.ir.program import Program
from autosched.machine.host import host_features
from autosched.machine.target import Memory, Target
from autosched.search.tuning.tune import usable
from autosched.tensorize.match_types import Match
from autosched.tensorize.matcher.match import match
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.make_plans import make_plans
from autosched.tiling.plans.plan import Plan
from autosched.tiling.variants.conditional import candidates_of

AVX512 = frozenset(["avx2", "fma", "avx512f", "avx512vl", "avx512_vnni", "avx512_bf16", "avx_vnni"])


def machine(features: frozenset[str] = AVX512, registers: int = 32, vector_bytes: int = 64) -> Target:
    """A CPU with these features, the same on every machine that runs the tests."""
    memories = (
        Memory("L1", 48 << 10, 2e11),
        Memory("L2", 1 << 20, 1e11),
        Memory("L3", 32 << 20, 5e10, shared_by="device"),
        Memory("dram", 16 << 30, 2e10, shared_by="device"),
    )
    limits = {"vector_registers": registers, "vector_bytes": vector_bytes}
    return Target("test", "x86", features, 2, 4e9, memories, limits=limits)


def this_machine() -> Target:
    """A CPU with this machine's features, and the registers that they stand for."""
    wide = "avx512f" in host_features()
    return machine(host_features(), registers=32 if wide else 16, vector_bytes=64 if wide else 32)


def plans_of(
    program: Program, target: Target | None = None, threads: int = 1, only: tuple[str, ...] = ()
) -> list[Plan]:
    """The plans that tuning would lay out."""
    target = target or machine()
    return make_plans(program, target, candidates_of(_matches(program, target, only)), threads)


_KEPT = 64
_matched: dict[tuple[str, str, tuple[str, ...]], tuple[Program, list[Match]]] = {}


def _matches(program: Program, target: Target, only: tuple[str, ...]) -> list[Match]:
    """Whole catalogues are matched with a program once: the tests ask for its plans time and again."""
    key = str(program), repr(target), only
    known = _matched.get(key)
    if known is not None and known[0] == program:
        return known[1]
    found = match(program, usable(Catalogue.builtin(), target, "cpu", only))
    if len(_matched) >= _KEPT:
        del _matched[next(iter(_matched))]
    _matched[key] = program, found
    return found


def leading(plans: Sequence[Plan], count: int) -> list[Plan]:
    """The first `count` plans, and the first `count` on instructions: scalar code may stand before those."""
    on_instructions = [n for n, plan in enumerate(plans) if plan.tensor_parts][:count]
    return [plans[n] for n in sorted({*range(min(count, len(plans))), *on_instructions})]


def covering_rows(plan: Plan, seed: int = 0, extra: int = 2) -> Iterator[int]:
    """Legal rows in which every value that any legal row has of any decision occurs, and a few random ones."""
    rng = np.random.default_rng(seed)
    ids = plan.space.enumerate().ids
    values = plan.space.values(ids)
    wanted = {(d.name, v) for d in plan.space.decisions for v in np.unique(values[d.name]).tolist()}
    chosen: list[int] = rng.choice(ids, size=min(extra, len(ids)), replace=False).tolist()
    for row in chosen:
        wanted -= set(plan.space.schedule(int(row)).values.items())
    while wanted:
        name, value = min(wanted)
        row = int(rng.choice(ids[values[name] == value]))
        wanted -= set(plan.space.schedule(row).values.items())
        chosen.append(row)
    yield from (int(r) for r in chosen)


CONV = """
def conv(X: t[h, w, ci], W: const[u[kh, kw, ci, co]], Y: acc[ho, wo, co],
         *, h=6, w=7, ci=5, co=19, kh=3, kw=3, stride=1, pad=1, t="f32", u="f32", acc="f32"):
    ho = (h + 2 * pad - kh) // stride + 1
    wo = (w + 2 * pad - kw) // stride + 1
    for y, x, o in grid(ho, wo, co):
        Y[y, x, o] = 0
        for r, s, c in grid(kh, kw, ci):
            if 0 <= y * stride + r - pad < h and 0 <= x * stride + s - pad < w:
                Y[y, x, o] += acc(X[y * stride + r - pad, x * stride + s - pad, c]) * acc(W[r, s, c, o])
"""

TRIANGLE = """
def triangle(A: f32[n, n], B: f32[n, m], C: f32[n, m], *, n=9, m=21):
    for i, j in grid(n, m):
        C[i, j] = 0
        for k in range(i + 1):
            C[i, j] += A[i, k] * B[k, j]
"""

BIAS_START = """
def bias_start(A: f32[m, k], B: const[f32[k, n]], bias: f32[n], C: f32[m, n], *, m=7, n=21, k=9):
    for i, j in grid(m, n):
        C[i, j] = bias[j]
        for p in range(k):
            C[i, j] += A[i, p] * B[p, j]
"""

CHAIN = """
def chain(A: u8[m, k], B: const[s8[k, n]], scale: f32[n], D: s8[m, n], E: f32[m, n], *, m=9, n=21, k=10):
    C: s32[m, n]
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
    for i, j in grid(m, n):
        D[i, j] = sat_s8(round(f32(C[i, j]) * scale[j]))
    for x, y in grid(m, n):
        E[x, y] = f32(C[x, y]) + 1.0
"""

IN_PLACE = """
def stencil(A: f32[n], *, n=33, steps=3):
    for t in range(steps):
        for i in range(1, n - 1):
            A[i] = 0.25 * A[i - 1] + 0.5 * A[i] + 0.25 * A[i + 1]
"""

PREFIX = """
def prefix(A: s32[n], S: s32[n], *, n=40):
    S[0] = A[0]
    for i in range(1, n):
        S[i] = S[i - 1] + A[i]
"""

COLUMNS = """
def columns(A: s32[m, n], S: s32[m, n], *, m=6, n=21):
    for j in range(n):
        S[0, j] = A[0, j]
    for i in range(1, m):
        for j in range(n):
            S[i, j] = S[i - 1, j] + A[i, j]
"""

TOGETHER = """
def together(A: s32[n], B: s32[n], *, n=30):
    for i in range(1, n):
        A[i] = B[i - 1] + 1
        B[i] = A[i] * 2
"""

MASKED = """
def masked(A: s32[m, n], M: s32[m, n], C: s32[m], *, m=7, n=20):
    for i in range(m):
        C[i] = 0
        for j in range(n):
            if M[i, j] > 0:
                C[i] += A[i, j]
"""

OUTER = """
def outer(a: u8[m], b: s8[n], C: s32[m, n], *, m=5, n=21):
    for i, j in grid(m, n):
        C[i, j] = 0
    for i, j in grid(m, n):
        C[i, j] += s32(a[i]) * s32(b[j])
"""

TEXTS = {
    "outer": OUTER,
    "triangle": TRIANGLE,
    "bias_start": BIAS_START,
    "chain": CHAIN,
    "in_place": IN_PLACE,
    "prefix": PREFIX,
    "columns": COLUMNS,
    "together": TOGETHER,
    "masked": MASKED,
}


def small_programs() -> dict[str, Program]:
    """Programs with odd sizes, of every kind that the CPU lowers."""
    found = {name: parse(text, filename=f"{name}.py") for name, text in TEXTS.items()}
    for name, sizes in {
        "conv_f32": {},
        "conv_s32": {"t": "u8", "u": "s8", "acc": "s32"},
        "conv_strided": {"stride": 2, "pad": 2},
        "conv_bf16": {"t": "bf16", "u": "bf16", "h": 3, "w": 4, "ci": 3, "kh": 2},
    }.items():
        found[name] = parse(CONV, filename="conv.py", sizes=sizes)
    found["matmul_u8s8"] = workload("matmul", m=7, n=37, k=18, a="u8", b="s8")
    found["matmul_f32"] = workload("matmul", m=13, n=35, k=9, a="f32", b="f32")
    found["matmul_f64"] = workload("matmul", m=5, n=17, k=6, a="f64", b="f64")
    found["matmul_bf16"] = workload("matmul", m=5, n=17, k=7, a="bf16", b="bf16")
    found["matmul_s8s8"] = workload("matmul", m=5, n=17, k=7, a="s8", b="s8")
    found["matmul_one"] = workload("matmul", m=1, n=1, k=1, a="u8", b="s8")
    found["matmul_k1"] = workload("matmul", m=3, n=5, k=1, a="u8", b="s8")
    found["matmul_row"] = workload("matmul", m=1, n=37, k=18, a="f32", b="f32")
    found["batch_matmul"] = workload("batch_matmul", batch=3, m=5, n=18, k=6)
    found["gemv"] = workload("gemv", m=19, k=11)
    found["softmax"] = workload("softmax", m=4, n=19)
    found["matmul_bias_relu"] = workload("matmul_bias_relu", m=7, n=21, k=9)
    found["matmul_requant"] = workload("matmul_requant", m=7, n=21, k=9)
    found["depthwise"] = workload("depthwise_conv2d", h=6, w=7, c=18)
    found["einsum"] = __import__("autosched.ir", fromlist=["einsum"]).einsum("bij,bkj->bik", b=2, i=5, j=6, k=17)
    return found
