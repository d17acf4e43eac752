# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Programs that the chips of this folder run whole: a layer, softmax, a perceptron, attention, a norm (vector.yaml).

    autosched tune examples/chips/programs.py:layer -t examples/chips/systolic.yaml \\
        --intrinsics examples/chips/systolic_isa.yaml -d simulator -n 16
"""


def layer(A: s8[m, k], B: const[s8[k, n]], bias: const[s32[n]], scale: const[f32[n]], D: s8[m, n],
          *, m=64, n=64, k=64):
    """relu(A B + bias), scaled for each column, rounded and clamped to a byte."""
    C: s32[m, n]
    for i, j in grid(m, n):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
    for i, j in grid(m, n):
        D[i, j] = sat_s8(round(f32(max(C[i, j] + bias[j], 0)) * scale[j]))


def softmax(X: f32[m, n], Y: f32[m, n], *, m=64, n=64):
    """exp(X - max X) over its sum, for each row."""
    M: f32[m]
    E: f32[m, n]
    S: f32[m]
    for i in range(m):
        M[i] = -inf
        for j in range(n):
            M[i] = max(M[i], X[i, j])
    for i, j in grid(m, n):
        E[i, j] = exp(X[i, j] - M[i])
    for i in range(m):
        S[i] = 0
        for j in range(n):
            S[i] += E[i, j]
    for i, j in grid(m, n):
        Y[i, j] = E[i, j] / S[i]


def mlp(X: s8[m, k], W: const[s8[k, h]], V: const[s8[h, n]], bw: const[s32[h]], bv: const[s32[n]],
        sw: const[f32[h]], sv: const[f32[n]], Y: s8[m, n], *, m=64, n=32, k=64, h=128):
    """Two layers, the first with relu."""
    C: s32[m, h]
    H: s8[m, h]
    D: s32[m, n]
    for i, j in grid(m, h):
        C[i, j] = 0
        for p in range(k):
            C[i, j] += s32(X[i, p]) * s32(W[p, j])
    for i, j in grid(m, h):
        H[i, j] = sat_s8(round(f32(max(C[i, j] + bw[j], 0)) * sw[j]))
    for i, j in grid(m, n):
        D[i, j] = 0
        for p in range(h):
            D[i, j] += s32(H[i, p]) * s32(V[p, j])
    for i, j in grid(m, n):
        Y[i, j] = sat_s8(round(f32(D[i, j] + bv[j]) * sv[j]))


def attention(Q: s8[m, d], K: s8[l, d], V: s8[l, d], O: s8[m, d], a: f32[1], b: f32[1],
              *, m=32, l=32, d=16):
    """softmax(a Q Kᵀ) V in bytes; weights in units of 1 / 127, b is the scale of the result."""
    S: s32[m, l]
    M: s32[m]
    E: f32[m, l]
    Z: f32[m]
    P: s8[m, l]
    T: s32[m, d]
    for i, j in grid(m, l):
        S[i, j] = 0
        for p in range(d):
            S[i, j] += s32(Q[i, p]) * s32(K[j, p])
    for i in range(m):
        M[i] = -2147483648
        for j in range(l):
            M[i] = max(M[i], S[i, j])
    for i, j in grid(m, l):
        E[i, j] = exp(f32(S[i, j] - M[i]) * a[0])
    for i in range(m):
        Z[i] = 0
        for j in range(l):
            Z[i] += E[i, j]
    for i, j in grid(m, l):
        P[i, j] = sat_s8(round(E[i, j] / Z[i] * 127.0))
    for i, e in grid(m, d):
        T[i, e] = 0
        for j in range(l):
            T[i, e] += s32(P[i, j]) * s32(V[j, e])
    for i, e in grid(m, d):
        O[i, e] = sat_s8(round(f32(T[i, e]) * b[0]))


def layer_norm(X: f32[m, n], G: const[f32[n]], B: const[f32[n]], Y: f32[m, n], *, m=64, n=64):
    """Rows less their mean, over the root of their variance, scaled and moved for each column."""
    S: f32[m]
    M: f32[m]
    V: f32[m]
    R: f32[m]
    for i in range(m):
        S[i] = 0
        for j in range(n):
            S[i] += X[i, j]
    for i in range(m):
        M[i] = S[i] / n
    for i in range(m):
        V[i] = 0
        for j in range(n):
            V[i] += (X[i, j] - M[i]) ** 2
    for i in range(m):
        R[i] = rsqrt(V[i] / n + 1e-5)
    for i, j in grid(m, n):
        Y[i, j] = (X[i, j] - M[i]) * R[i] * G[j] + B[j]
