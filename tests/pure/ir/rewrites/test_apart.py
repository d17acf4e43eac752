"""What is said of stages that read each other's results: which rewrite joins them, or what keeps them apart."""

from __future__ import annotations

import pytest

import autosched
from autosched import ir
from autosched.ir.rewrites.apart import Dependence, kept_apart

TEXT = """
def f(X: f32[4, 6], I: s32[4], A: f32[4], B: f32[4], M: f32[4], P: f32[4, 6]):
    assume(0 <= I <= 3)
    for i in range(4):
        M[i] = -inf
        for j in range(6):
            M[i] = max(M[i], X[i, j])
    for i in range(4):
        A[i] = 0
        for j in range(LENGTH):
            A[i] += TERM
    for i in range(4):
        B[i] = A[AT] * 2
"""


def told(term: str, length: str = "6", at: str = "i") -> list[Dependence]:
    program = ir.parse(TEXT.replace("TERM", term).replace("LENGTH", length).replace("AT", at))
    return kept_apart(program, autosched.rewrites(program))


@pytest.mark.parametrize(
    ("term", "length", "needs", "answer"),
    [
        ("exp(X[i, j] - M[i])", "6", "known after all of j", "one pass over j_2 computes both (online, rescaled)"),
        ("tanh(X[i, j] - M[i])", "6", "known after all of j", "no pass computes both, NOT_SEPARABLE: tanh"),
        ("exp(M[i] - X[i, j])", "6", "known after all of j", "no pass computes both, NOT_DISTRIBUTIVE: when"),
        ("exp(X[i, j] - M[i])", "5", "known after all of j", "bounds differ"),
        ("exp(X[i, j] - M[3])", "6", "known after all of j", "two passes, as M[3] is read at no row"),
        ("X[i, j] * M[I[i]]", "6", "at places from data", "all of M is computed before"),
        ("X[i, j] * M[j % 4]", "6", "for every j_2", "M is kept whole, or computed a block at a time"),
    ],
)
def test_a_sum_that_reads_a_maximum(term: str, length: str, needs: str, answer: str) -> None:
    first, _ = told(term, length)
    assert (first.first, first.second) == ("M", "A")
    assert needs in first.needs
    assert answer in first.answer
    assert first.location is not None
    assert first.location.line == 11
    assert str(first).startswith("A (<text>:11:13) reads M[")


def test_an_elementwise_stage() -> None:
    _, behind = told("exp(X[i, j] - M[i])")
    assert "nothing keeps them apart: B can be computed behind A" in behind.answer
    _, turned = told("exp(X[i, j] - M[i])", at="3 - i")
    assert turned.answer == "A is kept for it"


def test_stages_that_read_nothing_of_each_other() -> None:
    assert kept_apart(ir.workload("matmul"), []) == []
