"""Programs with products that may run in tiles of rows: one handed on to another, in several forms."""

from __future__ import annotations

from hypothesis import strategies as st

from autosched.ir import parse
from autosched.ir.program import Program

MLP = """
def mlp(X: f32[m, k], W1: const[f32[k, h]], W2: const[f32[h, n]], Y: f32[m, n], *, m=50, k=24, h=40, n=36):
    H: f32[m, h]
    for i, j in grid(m, h):
        H[i, j] = 0.0
        for p in range(k):
            H[i, j] += X[i, p] * W1[p, j]
    R: f32[m, h]
    for i, j in grid(m, h):
        R[i, j] = max(H[i, j], 0.0)
    for i, j in grid(m, n):
        Y[i, j] = 0.0
        for p in range(h):
            Y[i, j] += R[i, p] * W2[p, j]
"""
KEPT = """
def kept(X: f32[m, k], W1: f32[k, h], W2: f32[h, n], H: f32[m, h], Y: f32[m, n], *, m=29, k=17, h=32, n=32):
    for i, j in grid(m, h):
        H[i, j] = 0.0
        for p in range(k):
            H[i, j] += X[i, p] * W1[p, j]
    for i, j in grid(m, n):
        Y[i, j] = 0.0
        for p in range(h):
            Y[i, j] += H[i, p] * W2[p, j]
"""
THREE = """
def three(X: f32[m, k], W: f32[k, k], Y: f32[m, k], *, m=40, k=16):
    A: f32[m, k]
    for i, j in grid(m, k):
        A[i, j] = 0.0
        for p in range(k):
            A[i, j] += X[i, p] * W[p, j]
    B: f32[m, k]
    for i, j in grid(m, k):
        B[i, j] = 0.0
        for p in range(k):
            B[i, j] += A[i, p] * W[p, j]
    for i, j in grid(m, k):
        Y[i, j] = 0.0
        for p in range(k):
            Y[i, j] += B[i, p] * A[i, j]
"""
TURNED = """
def turned(X: f32[m, k], W1: f32[k, h], W2: f32[n, h], Y: f32[n, m], *, m=33, k=20, h=48, n=24):
    H: f32[h, m]
    for i, j in grid(m, h):
        H[j, i] = 0.0
        for p in range(k):
            H[j, i] += X[i, p] * W1[p, j]
    for j in range(n):
        for i in range(m):
            Y[j, i] = 0.0
            for p in range(h):
                Y[j, i] += W2[j, p] * H[p, i]
"""
BATCHES = """
def batches(Q: f32[b, m, d], K: f32[b, d, n], V: f32[b, n, d], O: f32[b, m, d], *, b=3, m=20, n=32, d=16):
    S: f32[b, m, n]
    for h, i, j in grid(b, m, n):
        S[h, i, j] = 0.0
        for p in range(d):
            S[h, i, j] += Q[h, i, p] * K[h, p, j]
    for h, i, j in grid(b, m, d):
        O[h, i, j] = 0.0
        for p in range(n):
            O[h, i, j] += S[h, i, p] * V[h, p, j]
"""
PRODUCTS_IN_TILES: dict[str, Program] = {
    name: parse(text, filename="f.py")
    for name, text in {"mlp": MLP, "kept": KEPT, "three": THREE, "turned": TURNED, "batches": BATCHES}.items()
}


@st.composite
def random_products(draw: st.DrawFn) -> str:
    """Two or three products, each of the one before and a matrix, with layouts, epilogues and batches at random."""
    dtype = draw(st.sampled_from(["f32", "f32", "s32"]))
    m = draw(st.integers(9, 40))
    count = draw(st.integers(2, 3))
    batch = draw(st.sampled_from([None, None, None, 2, 3]))
    depth = draw(st.sampled_from([5, 8, 16, 17]))
    head, lines, taken = [f"X: {dtype}[{m}, {depth}]"], [], ("X", False)
    batched = f"{batch}, " if batch else ""
    if batch:
        head = [f"X: {dtype}[{batched}{m}, {depth}]"]
    for k in range(count):
        n = draw(st.sampled_from([8, 16, 20, 33]))
        turned, weights_turned = draw(st.integers(0, 3)) == 0, draw(st.integers(0, 3)) == 0
        matrix = f"{dtype}[{_at(depth, n, weights_turned)}]"
        head.append(f"W{k}: const[{matrix}]" if draw(st.booleans()) else f"W{k}: {matrix}")
        shape = f"{dtype}[{batched}{_at(m, n, turned)}]"
        kept = k == count - 1 or draw(st.integers(0, 4)) == 0
        (head if kept else lines).append(f"T{k}: {shape}" if kept else f"    T{k}: {shape}")
        source, source_turned = taken
        order = draw(st.booleans())
        axes, sizes = ("b, " if batch else ""), batched
        axes, sizes = (axes + ("i, j" if order else "j, i"), sizes + (f"{m}, {n}" if order else f"{n}, {m}"))
        b = "b, " if batch else ""
        target = f"T{k}[{b}{_at('i', 'j', turned)}]"
        weight = f"W{k}[{_at('p', 'j', weights_turned)}]"
        lines += [
            f"    for {axes} in grid({sizes}):",
            f"        {target} = 0",
            f"        for p in range({depth}):",
            f"            {target} += {source}[{b}{_at('i', 'p', source_turned)}] * {weight}",
        ]
        taken, depth = (f"T{k}", turned), n
        if k < count - 1 and draw(st.booleans()):
            lines += [f"    R{k}: {shape}", f"    for {axes} in grid({sizes}):"]
            lines.append(f"        R{k}[{b}{_at('i', 'j', turned)}] = max({target}, 0)")
            taken = f"R{k}", turned
    return f"def f({', '.join(head)}):\n" + "\n".join(lines) + "\n"


def _at(row: object, column: object, turned: bool) -> str:
    return f"{column}, {row}" if turned else f"{row}, {column}"
