"""Products with operands that are expressions over several reads, at random and by name."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from hypothesis import strategies as st
from support.plans import machine

from autosched.ir import parse, workload
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.search.tuning.tune import usable
from autosched.tensorize.spec.catalogue import Catalogue
from autosched.tiling.planner.plan_program import plan_program
from autosched.tiling.plans.plan import Plan

COLUMN = """
def column(X: f32[m, k], W: const[s8[k, n]], S: const[f32[n]], Y: f32[m, n], *, m=5, k=24, n=40):
    for i, j in grid(m, n):
        Y[i, j] = 0.0
        for p in range(k):
            Y[i, j] += X[i, p] * (f32(W[p, j]) * S[j])
"""
TURNED = """
def turned(X: f32[m, k], W: const[u4[n, k]], S: const[f32[n, kg]], Z: const[u4[n, kg]], Y: f32[m, n],
           *, m=3, k=24, n=21, g=8):
    kg = k // g
    for i, j in grid(m, n):
        Y[i, j] = 0.0
        for p in range(k):
            Y[i, j] += ((f32(W[j, p]) - f32(Z[j, p // g])) * S[j, p // g]) * X[i, p]
"""
BOTH = """
def both(X: s8[m, k], R: f32[m, kg], W: const[s8[k, n]], S: const[f32[kg, n]], Y: f32[m, n],
         *, m=4, k=36, n=33, g=12):
    kg = k // g
    for i, j in grid(m, n):
        Y[i, j] = 0.0
        for p in range(k):
            Y[i, j] += (f32(X[i, p]) * R[i, p // g]) * (f32(W[p, j]) * S[p // g, j])
"""
ENDS = """
def ends(X: f32[m, k], W: const[s8[k, n]], S: const[f32[kg, n]], Y: f32[m, n], *, m=2, k=22, n=19, kg=3):
    for i, j in grid(m, n):
        Y[i, j] = 0.0
        for p in range(k):
            Y[i, j] += X[i, p] * (f32(W[p, j]) * S[p // 8, j])
"""
STAGED = """
def staged(X: f32[m, k], W: const[s8[k, n]], S: const[f32[n]], Y: f32[m, n], *, m=6, k=20, n=34):
    D: f32[k, n]
    for p, j in grid(k, n):
        D[p, j] = f32(W[p, j]) * S[j]
    for i, j in grid(m, n):
        Y[i, j] = 0.0
        for p in range(k):
            Y[i, j] += X[i, p] * D[p, j]
"""
MX = """
def mx(X: f32[m, k], W: const[u8[kh, n]], S: const[u8[kg, n]], Y: f32[m, n], *, m=2, k=64, n=40, g=32):
    assume(1 <= S <= 140)
    kg = k // g
    kh = k // 2
    for i, j in grid(m, n):
        Y[i, j] = 0.0
        for p in range(k):
            Y[i, j] += X[i, p] * (f32(bits_e2m1(u4(W[p // 2, j] >> u8(p % 2 * 4)))) * bits_f32(u32(S[p // g, j]) << 23))
"""
GATHERED = """
def gathered(X: f32[v, k], I: s32[m], W: const[f32[k, n]], Y: f32[m, n], *, v=30, m=7, k=12, n=530):
    assume(0 <= I < v)
    for i, j in grid(m, n):
        Y[i, j] = 0.0
        for p in range(k):
            Y[i, j] += X[I[i], p] * W[p, j]
"""
ROTATED = """
def rotated(X: f32[m, k], C: const[f32[l, h]], S: const[f32[l, h]], W: const[f32[k, n]], Y: f32[m, n],
            *, m=20, l=20, h=6, k=12, n=530):
    R: f32[m, k]
    for i, p in grid(m, k):
        R[i, p] = X[i, p] * C[i, p % h] + (0.0 - X[i, p + h] if p < h else X[i, p - h]) * S[i, p % h]
    for i, j in grid(m, n):
        Y[i, j] = 0.0
        for p in range(k):
            Y[i, j] += R[i, p] * W[p, j]
"""
MASKED = """
def masked(X: f32[m, k], L: s32[m], W: const[f32[k, n]], Y: f32[m, n], *, m=20, k=12, n=530):
    R: f32[m, k]
    for i, p in grid(m, k):
        R[i, p] = X[i, p] if s32(p) < L[i] else 0.0
    for i, j in grid(m, n):
        Y[i, j] = 0.0
        for p in range(k):
            Y[i, j] += R[i, p] * W[p, j]
"""
TEXTS = {
    "mx": MX,
    "gathered": GATHERED,
    "rotated": ROTATED,
    "masked": MASKED,
    "column": COLUMN,
    "turned": TURNED,
    "both": BOTH,
    "ends": ENDS,
    "staged": STAGED,
}
COMPUTED: dict[str, Program] = {name: parse(text, filename="f.py") for name, text in TEXTS.items()} | {
    "one_row": workload("matmul_int4", m=1, n=40, k=64, g=32),
    "one_tile": workload("rms_norm_product", m=2, n=600, k=20),
    "rows": workload("matmul_int8", m=37, n=40, k=24, g=8),
    "normalised": workload("rms_norm_product", m=19, n=150, k=20),
    "two_groups": parse(BOTH.replace("i, p // g", "i, p // 18").replace("[m, kg]", "[m, 2]"), filename="f.py"),
    "fp8": workload("matmul_fp8", m=3, n=24, k=32, g=16),
    "fp4": workload("matmul_fp4", m=3, n=40, k=64, g=32),
    "fp4_odd": workload("matmul_fp4", m=1, n=37, k=15, g=5, s="bf16"),
    "fp4_packed": workload("matmul_fp4_packed", m=2, n=37, k=24, g=8),
    "fp4_packed_rows": workload("matmul_fp4_packed", m=6, n=16, k=96, g=32, s="bf16"),
    "converted": workload("matmul", m=3, n=40, k=24, a="f32", b="s8"),
}


def small_cache(target: Target) -> Target:
    """The target with a first cache that holds none of these programs' tensors."""
    first, *others = target.memories
    return replace(target, memories=(replace(first, bytes=64), *others))


def computed_plans(program: Program, target: Target | None = None, threads: int = 1) -> list[Plan]:
    """The program's plans with operands computed on the way, on a machine whose first cache holds nothing."""
    return _plans(program, small_cache(target or machine()), threads)


def _plans(program: Program, target: Target, threads: int) -> list[Plan]:
    catalogue = _catalogue()
    found = plan_program(program, target, catalogue, usable(catalogue, target, "cpu", ()), threads=threads)
    return [p for p in found.every if any(t.nest.computed for t in p.tensor_parts)]


@cache
def _catalogue() -> Catalogue:
    return Catalogue.builtin()


@st.composite
def computed_texts(draw: st.DrawFn) -> str:
    """A product whose operands are expressions: narrow weights, scales and zero points by column, row and group, in
    either layout, const or not, written in the product or as a stage in front of it."""
    m, n = draw(st.sampled_from([1, 2, 3, 4, 5, 6, 16, 20, 37])), draw(st.sampled_from([1, 8, 16, 19, 33, 40, 64, 150]))
    g, groups = draw(st.sampled_from([2, 3, 8])), draw(st.integers(1, 4))
    k = g * groups
    head = [f"X: {(x := draw(st.sampled_from(['f32', 'f32', 'bf16', 's8'])))}[{m}, {k}]"]
    left = "X[i, p]" if x == "f32" else "f32(X[i, p])"
    if draw(st.integers(0, 3)) == 0:
        head.append(f"R: f32[{m}]")
        left = f"({left} * R[i])"
    elif draw(st.integers(0, 2)) == 0:
        own = draw(st.sampled_from([n for n in (2, 4, 6, 8, 12) if k % n == 0] or [k]))
        head.append(f"R: f32[{m}, {k // own}]")
        left = f"({left} * R[i, p // {own}])"
    narrow = draw(st.sampled_from(["s8", "s8", "u8", "s4", "u4", "e4m3", "e2m1", "pairs", "bf16", "f16", "s16", "f32"]))
    if narrow == "pairs":  # two weights in a byte
        byte = _read(draw, head, "W", "u8", ("p // 2", -(-k // 2)), ("j", n), const=4)
        kind = draw(st.sampled_from(["bits_e2m1", "bits_s4", "u4"]))
        nibble = f"u4({byte.removeprefix('f32(').removesuffix(')')} >> u8(p % 2 * 4))"
        right = f"f32({kind}({nibble}))"
    else:
        right = _read(draw, head, "W", narrow, ("p", k), ("j", n), const=4)
    zero = draw(st.sampled_from(["", "", "literal", "group", "column"]))
    if zero == "literal":
        right = f"({right} - 3.0)"
    elif zero:
        rows = ("0", 1) if zero == "column" else (f"p // {g}", groups)
        right = f"({right} - {_read(draw, head, 'Z', draw(st.sampled_from(['s8', 'u4', 'f32'])), rows, ('j', n))})"
    scale = draw(st.sampled_from(["", "column", "group", "block", "row"]))
    if scale:
        rows = {"column": ("0", 1), "row": ("p", k)}.get(scale, (f"p // {g}", groups))
        columns = ("j // 4", -(-n // 4)) if scale == "block" else ("0", 1) if scale == "row" else ("j", n)
        right = f"({right} * {_read(draw, head, 'S', 'f32', rows, columns)})"
    lines = []
    if draw(st.integers(0, 3)) == 0:
        lines = [f"    D: f32[{k}, {n}]", f"    for p, j in grid({k}, {n}):", f"        D[p, j] = {right}"]
        right = "D[p, j]"
    product = f"{left} * {right}" if draw(st.booleans()) else f"{right} * {left}"
    lines += [
        f"    for i, j in grid({m}, {n}):",
        "        Y[i, j] = 0.0",
        f"        for p in range({k}):",
        f"            Y[i, j] += {product}",
    ]
    return f"def f({', '.join(head)}, Y: f32[{m}, {n}]):\n" + "\n".join(lines) + "\n"


def _read(
    draw: st.DrawFn,
    head: list[str],
    name: str,
    dtype: str,
    row: tuple[str, int],
    column: tuple[str, int],
    const: int = 2,
) -> str:
    """An element of a new tensor with these subscripts, in either order; const but once in so many cases."""
    order = (row, column) if draw(st.integers(0, 2)) else (column, row)
    shape = f"{dtype}[{order[0][1]}, {order[1][1]}]"
    head.append(f"{name}: {shape}" if draw(st.integers(1, const)) == 1 else f"{name}: const[{shape}]")
    element = f"{name}[{order[0][0]}, {order[1][0]}]"
    return element if dtype == "f32" else f"f32({element})"
