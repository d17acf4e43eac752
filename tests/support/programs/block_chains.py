"""Chains written as tile loops, for blocks of a GPU: every kind of part inside, and each thing that blocks hand on."""

from __future__ import annotations

FLASH = """
def flash(Q: t[h, n, d], K: t[h, l, d], V: t[h, l, d], O: t[h, n, d],
          *, h=1, n=64, l=64, d=32, tile=32, block=32, t="f16", acc="f32"):
    S: acc[h, n, block]
    M: acc[h, n]
    N: acc[h, n]
    P: t[h, n, block]
    Z: acc[h, n]
    A: acc[h, n, d]
    for b, i_tile in grid(h, n // tile):
        for i in range(tile):
            M[b, i_tile * tile + i] = -1000.0
            Z[b, i_tile * tile + i] = 0
        for i, e in grid(tile, d):
            A[b, i_tile * tile + i, e] = 0
        for j_block in range(l // block):
            for i, j in grid(tile, block):
                S[b, i_tile * tile + i, j] = 0
                for p in range(d):
                    S[b, i_tile * tile + i, j] += acc(Q[b, i_tile * tile + i, p]) * acc(K[b, j_block * block + j, p])
            for i in range(tile):
                N[b, i_tile * tile + i] = M[b, i_tile * tile + i]
                for j in range(block):
                    N[b, i_tile * tile + i] = max(N[b, i_tile * tile + i], S[b, i_tile * tile + i, j] * 0.25)
            for i, j in grid(tile, block):
                P[b, i_tile * tile + i, j] = t(exp(S[b, i_tile * tile + i, j] * 0.25 - N[b, i_tile * tile + i]))
            for i in range(tile):
                Z[b, i_tile * tile + i] *= exp(M[b, i_tile * tile + i] - N[b, i_tile * tile + i])
                for j in range(block):
                    Z[b, i_tile * tile + i] += acc(P[b, i_tile * tile + i, j])
            for i, e in grid(tile, d):
                A[b, i_tile * tile + i, e] *= exp(M[b, i_tile * tile + i] - N[b, i_tile * tile + i])
            for i, e in grid(tile, d):
                for j in range(block):
                    A[b, i_tile * tile + i, e] += acc(P[b, i_tile * tile + i, j]) * acc(V[b, j_block * block + j, e])
            for i in range(tile):
                M[b, i_tile * tile + i] = N[b, i_tile * tile + i]
        for i, e in grid(tile, d):
            O[b, i_tile * tile + i, e] = t(A[b, i_tile * tile + i, e] / Z[b, i_tile * tile + i])
"""
"""Carried state; rows of probabilities go on to a second product in the operands' own type."""

MASK = "S[b, i_tile * tile + i, j] * 0.25"
CAUSAL = FLASH.replace("def flash", "def causal").replace("range(l // block)", "range((i_tile + 1) * tile // block)")
CAUSAL = CAUSAL.replace(
    MASK, f"({MASK} if j_block * block + j <= i_tile * tile + i else -1000.0)"
)
"""Blocks behind the diagonal are left out: the loop's length depends on the block of the grid."""
WINDOW = FLASH.replace("def flash", "def window").replace(
    MASK,
    f"({MASK} if j_block * block + j <= i_tile * tile + i + 3 and i_tile * tile + i < j_block * block + j + 20"
    " else -1000.0)",
)

MLP = """
def mlp(X: t[m, k], W: const[t[k, f]], B: const[acc[f]], D: const[t[f, n]], Y: acc[m, n],
        *, m=32, k=32, f=64, n=16, tile=16, block=32, t="f16", acc="f32"):
    H: acc[m, block]
    P: t[m, block]
    for i_tile in range(m // tile):
        for i, c in grid(tile, n):
            Y[i_tile * tile + i, c] = 0
        for f_block in range(f // block):
            for i, j in grid(tile, block):
                H[i_tile * tile + i, j] = 0
                for p in range(k):
                    H[i_tile * tile + i, j] += acc(X[i_tile * tile + i, p]) * acc(W[p, f_block * block + j])
            for i, j in grid(tile, block):
                P[i_tile * tile + i, j] = t(max(H[i_tile * tile + i, j] + B[f_block * block + j], 0.0))
            for i, c in grid(tile, n):
                for j in range(block):
                    Y[i_tile * tile + i, c] += acc(P[i_tile * tile + i, j]) * acc(D[f_block * block + j, c])
"""

SWIGLU = """
def swiglu(X: t[m, k], W: t[k, f], U: t[k, f], D: t[f, n], Y: t[m, n],
           *, m=32, k=32, f=32, n=24, tile=16, block=16, t="f16", acc="f32"):
    G: acc[m, block]
    H: acc[m, block]
    P: t[m, block]
    A: acc[m, n]
    for i_tile in range(m // tile):
        for i, c in grid(tile, n):
            A[i_tile * tile + i, c] = 0
        for f_block in range(f // block):
            for i, j in grid(tile, block):
                G[i_tile * tile + i, j] = 0
                for p in range(k):
                    G[i_tile * tile + i, j] += acc(X[i_tile * tile + i, p]) * acc(W[p, f_block * block + j])
            for i, j in grid(tile, block):
                H[i_tile * tile + i, j] = 0
                for p in range(k):
                    H[i_tile * tile + i, j] += acc(X[i_tile * tile + i, p]) * acc(U[p, f_block * block + j])
            for i, j in grid(tile, block):
                x = G[i_tile * tile + i, j]
                P[i_tile * tile + i, j] = t(x * sigmoid(x) * H[i_tile * tile + i, j])
            for i, c in grid(tile, n):
                for j in range(block):
                    A[i_tile * tile + i, c] += acc(P[i_tile * tile + i, j]) * acc(D[f_block * block + j, c])
        for i, c in grid(tile, n):
            Y[i_tile * tile + i, c] = t(A[i_tile * tile + i, c])
"""

LAYERS = """
def layers(X: t[m, k], W: t[l, k, k], Y: t[m, k], *, m=32, k=32, l=3, tile=16, t="f16", acc="f32"):
    A: acc[m, k]
    B: acc[m, k]
    R: acc[m]
    N: t[m, k]
    for i_tile in range(m // tile):
        for i, p in grid(tile, k):
            A[i_tile * tile + i, p] = acc(X[i_tile * tile + i, p])
        for s in range(l):
            for i in range(tile):
                R[i_tile * tile + i] = 0
                for p in range(k):
                    R[i_tile * tile + i] += A[i_tile * tile + i, p] * A[i_tile * tile + i, p]
            for i, p in grid(tile, k):
                N[i_tile * tile + i, p] = t(A[i_tile * tile + i, p] * rsqrt(R[i_tile * tile + i] + 0.01))
            for i, j in grid(tile, k):
                B[i_tile * tile + i, j] = 0
                for p in range(k):
                    B[i_tile * tile + i, j] += acc(N[i_tile * tile + i, p]) * acc(W[s, p, j])
            for i, p in grid(tile, k):
                A[i_tile * tile + i, p] += tanh(B[i_tile * tile + i, p])
        for i, p in grid(tile, k):
            Y[i_tile * tile + i, p] = t(A[i_tile * tile + i, p])
"""
"""Rows that a block keeps through several layers: a norm of them, a product, what is added to them."""

LINEAR = """
def linear(Q: t[h, n, d], K: t[h, n, d], V: t[h, n, e], O: acc[h, n, e],
           *, h=2, n=64, d=32, e=16, block=32, t="f16", acc="f32"):
    C: acc[h, d, e]
    T: t[h, d, e]
    S: acc[h, n, block]
    P: t[h, n, block]
    for b in range(h):
        for p, c in grid(d, e):
            C[b, p, c] = 0
        for r in range(n // block):
            for p, c in grid(d, e):
                T[b, p, c] = t(C[b, p, c])
            for i, j in grid(block, block):
                S[b, r * block + i, j] = 0
                for p in range(d):
                    S[b, r * block + i, j] += acc(Q[b, r * block + i, p]) * acc(K[b, r * block + j, p])
            for i, j in grid(block, block):
                P[b, r * block + i, j] = t(S[b, r * block + i, j] if j <= i else 0.0)
            for i, c in grid(block, e):
                O[b, r * block + i, c] = 0
                for j in range(block):
                    O[b, r * block + i, c] += acc(P[b, r * block + i, j]) * acc(V[b, r * block + j, c])
            for i, c in grid(block, e):
                for p in range(d):
                    O[b, r * block + i, c] += acc(Q[b, r * block + i, p]) * acc(T[b, p, c])
            for p, c in grid(d, e):
                for j in range(block):
                    C[b, p, c] += acc(K[b, r * block + j, p]) * acc(V[b, r * block + j, c])
"""
"""Causal linear attention, a chunk at a time: a product with the state, then the state's own sum over the chunk."""

BYTES = """
def bytes_chain(X: s8[m, k], W: s8[k, f], D: s8[f, n], Y: s32[m, n], *, m=32, k=64, f=128, n=16, tile=16, block=64):
    H: s32[m, block]
    P: s8[m, block]
    for i_tile in range(m // tile):
        for i, c in grid(tile, n):
            Y[i_tile * tile + i, c] = 0
        for f_block in range(f // block):
            for i, j in grid(tile, block):
                H[i_tile * tile + i, j] = 0
                for p in range(k):
                    H[i_tile * tile + i, j] += s32(X[i_tile * tile + i, p]) * s32(W[p, f_block * block + j])
            for i, j in grid(tile, block):
                P[i_tile * tile + i, j] = sat_s8(H[i_tile * tile + i, j] >> 6)
            for i, c in grid(tile, n):
                for j in range(block):
                    Y[i_tile * tile + i, c] += s32(P[i_tile * tile + i, j]) * s32(D[f_block * block + j, c])
"""

MANY = """
def many(X: f16[a, b, c, m, k], W: f16[k, n], Y: f32[a, b, c, m, n], *, a=2, b=3, c=2, m=16, k=16, n=8, tile=8):
    H: f32[a, b, c, m, n]
    for u, v, w, i_tile in grid(a, b, c, m // tile):
        for i, j in grid(tile, n):
            H[u, v, w, i_tile * tile + i, j] = 0
        for s in range(2):
            for i, j in grid(tile, n):
                for p in range(k):
                    x = f32(X[u, v, w, i_tile * tile + i, p]) * f32(W[p, j])
                    H[u, v, w, i_tile * tile + i, j] += x
            for i, j in grid(tile, n):
                H[u, v, w, i_tile * tile + i, j] *= 0.5
        for i, j in grid(tile, n):
            Y[u, v, w, i_tile * tile + i, j] = H[u, v, w, i_tile * tile + i, j]
"""
"""More parallel loops than a grid has dimensions."""

ALONE = """
def alone(X: f16[m, k], W: f16[s, k, k], Y: f32[m, k], *, m=16, k=16, s=3):
    N: f16[m, k]
    B: f32[m, k]
    for r in range(s):
        for i, p in grid(m, k):
            N[i, p] = f16(tanh(Y[i, p])) + X[i, p]
        for i, j in grid(m, k):
            B[i, j] = 0
            for p in range(k):
                B[i, j] += f32(N[i, p]) * f32(W[r, p, j])
        for i, j in grid(m, k):
            Y[i, j] += B[i, j]
"""
"""No parallel loop: one block."""

CHAINS = {
    "flash": FLASH,
    "causal": CAUSAL,
    "window": WINDOW,
    "mlp": MLP,
    "swiglu": SWIGLU,
    "layers": LAYERS,
    "linear": LINEAR,
    "bytes": BYTES,
}
