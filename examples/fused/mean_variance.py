# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Mean and variance of rows, by their definitions: the variance needs the mean (Welford's method reads the rows once).

    autosched rewrite examples/fused/mean_variance.py --numerics real --explain
    autosched tune examples/fused/mean_variance.py -D m=256
"""


def mean_variance(X: t[m, n], M: acc[m], V: acc[m], *, m=64, n=256, t="f32", acc="f32"):
    """M = mean X, V = mean (X - M)², by rows."""
    S: acc[m]
    Q: acc[m]
    for i in range(m):
        S[i] = 0
        for j in range(n):
            S[i] += acc(X[i, j])
    for i in range(m):
        M[i] = S[i] / acc(n)
    for i in range(m):
        Q[i] = 0
        for j in range(n):
            x = acc(X[i, j]) - M[i]
            Q[i] += x * x
    for i in range(m):
        V[i] = Q[i] / acc(n)
