# The loop-nest language, not Python: this file is parsed, never imported.
# ruff: noqa
# mypy: ignore-errors
"""Several stages that depend on one another: scores of one attention head, and their softmax.

    autosched tune examples/attention_scores.py -D tokens=64
"""


def attention_scores(Q: f32[tokens, d], K: f32[tokens, d], P: f32[tokens, tokens], *, tokens=256, d=64):
    """P = softmax(Q Kᵀ / sqrt(d)) by rows."""
    S: f32[tokens, tokens]
    M: f32[tokens]
    Z: f32[tokens]
    for i, j in grid(tokens, tokens):
        S[i, j] = 0
        for c in range(d):
            S[i, j] += Q[i, c] * K[j, c]
    for i in range(tokens):
        M[i] = -inf
        for j in range(tokens):
            M[i] = max(M[i], S[i, j])
        Z[i] = 0
        for j in range(tokens):
            Z[i] += exp((S[i, j] - M[i]) * 0.125)
        for j in range(tokens):
            P[i, j] = exp((S[i, j] - M[i]) * 0.125) / Z[i]
