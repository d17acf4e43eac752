"""Instructions whose sum starts from an operand or from zero, and those that add an operand to a product: random pairs,
which stages the latter are asked about, and what a refusal says."""

from __future__ import annotations

from random import Random

import pytest
from fuzz.matches import Findings, check_pair
from fuzz.started import started, written_out
from support.match.computes import made_up

from autosched.ir import parse
from autosched.tensorize import match

FUSED = made_up(
    """def m(a: f32[8], b: f32[8], c: f32[8], d: f32[8]):
 for i in range(8):
  d[i] = fma(a[i], b[i], c[i])
""",
    "{}",
)
ZERO = made_up(
    """def m(a: s8[4, 8], b: s8[8, 4], d: s32[4, 4]):
 for i, j in grid(4, 4):
  d[i, j] = 0
  for k in range(8):
   d[i, j] += s32(a[i, k]) * s32(b[k, j])
"""
)


def fuzz(seeds: range) -> Findings:
    found = Findings()
    for seed in seeds:
        rng = Random(f"started {seed}")
        check_pair(started(rng), rng, seed, found)
    return found


def test_random_pairs() -> None:
    found = fuzz(range(20))
    assert not found.wrong
    assert found.counts["mappings"] >= 8
    assert found.counts["instructions whose sum has a start"] >= 8


@pytest.mark.slow
def test_many_random_pairs() -> None:
    found = fuzz(range(20, 70))
    assert not found.wrong
    assert found.counts["mappings"] >= 25
    assert found.counts["adapted mappings"] >= 1


@pytest.mark.parametrize(("seeds", "least"), [(range(8), 1), pytest.param(range(8, 40), 8, marks=pytest.mark.slow)])
def test_sums_that_are_written_out(seeds: range, least: int) -> None:
    found = Findings()
    for seed in seeds:
        rng = Random(f"written out {seed}")
        check_pair(written_out(rng), rng, seed, found)
    assert not found.wrong
    assert found.counts["mappings"] >= least


def test_a_product_with_an_operand_added_is_asked_about_sums_and_about_elements() -> None:
    program = parse(
        """def f(A: f32[4, 8], B: f32[4, 8], D: f32[8], C: f32[8], E: f32[4, 8]):
    for j in range(8):
        C[j] = 0
        for i in range(4):
            C[j] += A[i, j] * B[i, j]
    for i, j in grid(4, 8):
        E[i, j] = fma(A[i, j], B[i, j], D[j])
"""
    )
    found = {m.stage: m for m in match(program, [FUSED])}
    assert {s: m.verdict for s, m in found.items()} == {"C": "match", "E": "match"}
    assert list(found["C"].mappings[0].operands) == ["a", "b", "d"]
    assert list(found["E"].mappings[0].operands) == ["a", "b", "c", "d"]
    assert found["C"].mappings[0].intrinsic.accumulates
    assert not found["E"].mappings[0].intrinsic.accumulates


@pytest.mark.parametrize(
    ("start", "k", "said"),
    [
        ("C[i, j] = 0", 20, "a sum of C[i, j] takes 3 issues"),
        ("C[i, j] = D[j]", 8, "C[i, j] starts from D[j]"),
        ("E[i, j] = 0", 8, "what C[i, j] holds before counts"),
    ],
)
def test_why_a_sum_from_zero_does_not_do(start: str, k: int, said: str) -> None:
    program = parse(
        f"""def f(A: s8[8, {k}], B: s8[{k}, 8], C: s32[8, 8], D: s32[8], E: s32[8, 8]):
    for i, j in grid(8, 8):
        {start}
        for p in range({k}):
            C[i, j] += s32(A[i, p]) * s32(B[p, j])
"""
    )
    (found,) = match(program, [ZERO], stages=["C"], adapt=False)
    assert found.reason is not None
    assert said in found.reason.message
    assert found.reason.code == "COMBINE_DIFFERS"
    (whole,) = match(program, [ZERO], stages=["C"])
    assert whole.mappings[0].adapters == ("add up sums of 8",)
