"""What guards on results leave at least: a bound that no kernel is below, whatever data say."""

from __future__ import annotations

import pytest
from support.plans import machine, plans_of
from support.programs.chosen import CHOSEN, chosen_plans

from autosched.costmodel.analytic.cpu.guard_work import least_counted
from autosched.ir import parse
from autosched.tiling.plans.nest import Nest

SCORES = """
def f(Q: f32[n, d], K: f32[n, d], S: f32[n, n], *, n=64, d=16):
    for i, j in grid(n, n):
        S[i, j] = 0
        for p in range(d):
            if GUARD:
                S[i, j] += Q[i, p] * K[j, p]
"""


def nest(guard: str) -> Nest:
    plans = plans_of(parse(SCORES.replace("GUARD", guard).lstrip(), filename="f.py"), machine())
    return next(p.tensor_parts[0].nest for p in plans if p.tensor_parts)


@pytest.mark.parametrize(
    ("guard", "share"),
    [
        ("j <= i", 65 / 128),
        ("i < 16", 16 / 64),
        ("j <= i and i < 32", 33 / 64 / 4),
        ("i - 9 <= j and j <= i", (64 * 10 - 45) / 64**2),
        ("(i + j) % 2 == 0", 1.0),  # no sum: nobody leaves anything out by it
    ],
)
def test_the_share_of_results_that_count(guard: str, share: float) -> None:
    assert least_counted(nest(guard)) == pytest.approx(share)


def test_data_may_leave_none() -> None:
    (plan,) = chosen_plans(CHOSEN["masked"], machine())
    assert least_counted(plan.tensor_parts[0].nest) == 0
