"""Plans of sums over numbers that data choose: the element at that number, beside the program as it is written."""

from __future__ import annotations

import autosched

LOOKUP = """
def lookup(I: s32[m], W: f32[k, n], O: f32[m, n], *, m=5, k=21, n=17):
    for i, j in grid(m, n):
        O[i, j] = 0
        for p in range(k):
            O[i, j] += (1.0 if I[i] == s32(p) else 0.0) * W[p, j]
"""


def test_kernels_read_the_element_that_data_choose() -> None:
    study = autosched.tune(autosched.parse(LOOKUP), "x86-avx512", device="simulator", trials=2, plans="adapted")
    assert not study.failed
    plan = study.best.candidate.plan if hasattr(study.best, "candidate") else study.candidate(study.searched[0]).plan
    assert plan.name.endswith("[one-hot]")
    assert [r.finite for r in plan.rewrites] == [("W",)]
