# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Products with weights of few bits, of which `g` along a column share a scale (and a zero point).

    autosched rewrite examples/fused/quantized.py:matmul_fp8_blocks
    autosched tune examples/fused/quantized.py:matmul_int4 -D m=1 -D n=1024 -D k=1024
"""


def matmul_int4(X: t[m, k], W: const[u4[k, n]], S: const[acc[kg, n]], Z: const[u4[kg, n]], Y: acc[m, n],
                *, m=16, n=64, k=128, g=32, t="f32", acc="f32"):
    """X ((W - Z) S), with weights and zero points of 4 bits."""
    assume(k % g == 0)
    kg = k // g
    for i, j in grid(m, n):
        Y[i, j] = 0
        for p in range(k):
            Y[i, j] += acc(X[i, p]) * ((acc(W[p, j]) - acc(Z[p // g, j])) * S[p // g, j])


def matmul_int8(X: t[m, k], W: const[s8[k, n]], S: const[acc[kg, n]], Z: const[s8[kg, n]], Y: acc[m, n],
                *, m=16, n=64, k=128, g=32, t="f32", acc="f32"):
    """X ((W - Z) S), with weights and zero points of 8 bits."""
    assume(k % g == 0)
    kg = k // g
    for i, j in grid(m, n):
        Y[i, j] = 0
        for p in range(k):
            Y[i, j] += acc(X[i, p]) * ((acc(W[p, j]) - acc(Z[p // g, j])) * S[p // g, j])


def matmul_fp8(X: t[m, k], W: const[e4m3[k, n]], S: const[acc[kg, n]], Y: acc[m, n],
               *, m=16, n=64, k=128, g=32, t="f32", acc="f32"):
    """X (W S), with weights that are floats of 8 bits."""
    assume(k % g == 0)
    kg = k // g
    for i, j in grid(m, n):
        Y[i, j] = 0
        for p in range(k):
            Y[i, j] += acc(X[i, p]) * (acc(W[p, j]) * S[p // g, j])


def matmul_fp4(X: t[m, k], W: const[e2m1[k, n]], S: const[s[kg, n]], Y: acc[m, n],
               *, m=16, n=64, k=128, g=32, t="f32", s="f32", acc="f32"):
    """X (W S), with weights that are floats of 4 bits (OCP MX's e2m1)."""
    assume(k % g == 0)
    kg = k // g
    for i, j in grid(m, n):
        Y[i, j] = 0
        for p in range(k):
            Y[i, j] += acc(X[i, p]) * (acc(W[p, j]) * acc(S[p // g, j]))


def matmul_fp4_packed(X: t[m, k], W: const[u8[kh, n]], S: const[s[kg, n]], Y: acc[m, n],
                      *, m=16, n=64, k=128, g=32, t="f32", s="f32", acc="f32"):
    """The same with two weights in a byte, neighbours along k, of which the first has the lower bits."""
    assume(k % g == 0)
    assume(g % 2 == 0)
    kg = k // g
    kh = k // 2
    for i, j in grid(m, n):
        Y[i, j] = 0
        for p in range(k):
            Y[i, j] += acc(X[i, p]) * (acc(bits_e2m1(u4(W[p // 2, j] >> u8(p % 2 * 4)))) * acc(S[p // g, j]))


def matmul_fp8_blocks(A: t[m, k], B: const[t[k, n]], R: acc[m, kg], S: const[acc[kg, ng]], C: acc[m, n],
                      *, m=16, n=64, k=128, g=32, t="e4m3", acc="f32"):
    """(A R) (B S), with a scale R for `g` elements of a row of A, and a scale S for a block of B of `g` by `g`."""
    assume(k % g == 0)
    assume(n % g == 0)
    kg = k // g
    ng = n // g
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += acc(A[i, p]) * R[i, p // g] * (acc(B[p, j]) * S[p // g, j // g])


def matmul_fp8_blocks_nt(A: t[m, k], B: const[t[n, k]], R: acc[m, kg], S: const[acc[ng, kg]], C: acc[m, n],
                         *, m=16, n=64, k=128, g=32, t="e4m3", acc="f32"):
    """The same with B transposed, as instructions on 8-bit floats read it."""
    assume(k % g == 0)
    assume(n % g == 0)
    kg = k // g
    ng = n // g
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += acc(A[i, p]) * R[i, p // g] * (acc(B[j, p]) * S[j // g, p // g])
