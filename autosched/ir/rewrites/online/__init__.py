"""`online`: stages along one axis that read each other's final values run in one pass, with carried state.

    for j: M = max(M, S[j])             for blocks of j: M = max(M, S[j] …)
    for j: Z += exp(S[j] - M)                            Z = Z * exp(M_before - M) + exp(S[j] - M) + …
    for j: O += exp(S[j] - M) * V[j]                     O = O * exp(M_before - M) + exp(S[j] - M) * V[j] + …

Read `members` (which stages), `states` (what is carried, what is deferred), `obligations` (what z3 proves), `fused`
(the program that results) and `search` (all of it, with the reason where it fails).
"""
