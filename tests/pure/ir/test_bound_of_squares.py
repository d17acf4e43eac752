"""What an error bound is relative to, where the term multiplies an element by itself."""

from __future__ import annotations

import pytest

import autosched
from autosched.errors import UsageError

SQUARES = """
def squares(X: f32[m, k], S: f32[m], *, m=16, k=96):
    for i in range(m):
        S[i] = 0
        for p in range(k):
            S[i] += X[i, p] * X[i, p]
"""


def test_a_squared_element_counts_twice() -> None:
    (mapping, *_) = autosched.match(autosched.parse(SQUARES), "x86/vfmadd.f32.ymm").mappings
    assert mapping.certificate.error_bound == "γ_96 · Σ|X[i, p]·X[i, p]|"


def test_a_name_is_no_program() -> None:
    with pytest.raises(UsageError, match="program is 'matmul', and must be a Program") as refused:
        autosched.match("matmul", "x86/vfmadd.f32.ymm")  # type: ignore[arg-type]
    assert "autosched.workload" in (refused.value.hint or "")
    with pytest.raises(UsageError, match="must be a Program"):
        autosched.tune("matmul", trials=1)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="must be a Program"):
        autosched.compare("matmul", ["random"])  # type: ignore[arg-type]
