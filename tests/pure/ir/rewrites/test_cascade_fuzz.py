"""Random cascades (`tests/fuzz/cascades.py`): what is proved computes what the program does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fuzz.cascades import Found, cascade, check, search, wrong_in

import autosched
from autosched import ir

PLAIN = """
def f(X: f32[3, 5], c: f32, A: f32[3]):
    M: f32[3]
    for i in range(3):
        M[i] = -inf
        for j in range(5):
            M[i] = max(M[i], X[i, j])
        A[i] = 0
        for j in range(5):
            A[i] += exp(X[i, j] - M[i])
"""
KNOWN = {
    "a state that is not its member's first keeps its terms of a block": 5,
    "a refused factor has a run-time scalar": 19,
    "two exponentials that overflow become one that does not": 173,
}


@pytest.mark.parametrize(("first", "programs", "least"), [(34, 6, 3), pytest.param(30, 12, 3, marks=pytest.mark.slow)])
def test_few_programs(first: int, programs: int, least: int) -> None:
    found = search(first, programs)
    assert not found.wrong
    assert sum(n for what, n in found.counts.items() if what.startswith("accepted: online")) >= least


@pytest.mark.parametrize("why", KNOWN)
def test_programs_that_were_wrong(why: str) -> None:
    found = Found()
    check(KNOWN[why], found)
    assert not found.wrong


def test_cascades_are_of_many_kinds() -> None:
    texts = [cascade(seed) for seed in range(200)]
    for part in ("log(Z[i])", "bf16", "if G[i, j] != 0", "min(M[i]", "P[i, j] * V[j]", "N[i]", "range(1, "):
        assert sum(part in t for t in texts) >= 3, part


@pytest.mark.slow
def test_eighty_programs() -> None:
    """`python -m tests.fuzz.cascades --programs 5000` looks at more of them."""
    found = search(1000, 80)
    assert not found.wrong
    assert found.counts["accepted: online at rescaled"] >= 15
    assert found.counts["accepted: online at real"] >= 15
    assert sum(n for what, n in found.counts.items() if what.startswith("refused")) >= 20


def test_a_wrong_program_is_told() -> None:
    """The fuzzer sees that a row has the factor of another."""
    before = ir.parse(PLAIN)
    (found,) = (v for v in autosched.rewrites(before, block=2) if v.name == "online")
    assert not wrong_in(before, found, 2, 0)
    assert "*= M_moved[i" in str(found.after)
    other = str(found.after).replace("*= M_moved[i", "*= M_moved[0 * i")
    assert wrong_in(before, replace(found, after=ir.parse(other)), 2, 0)
