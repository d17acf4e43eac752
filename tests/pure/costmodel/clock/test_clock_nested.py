"""Tile loops inside others on a GPU: what is inside is the work of one core, however deep it lies."""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np
import pytest

import autosched
from autosched.costmodel.analytic.clock import clock, timed_parts
from autosched.costmodel.analytic.gpu.rates import issue_rate
from autosched.costmodel.analytic.limits import limit
from autosched.ir import parse
from autosched.search.request import TuneRequest
from autosched.search.tuning.tune import plans_of
from autosched.tiling.plans.plan import Plan, TensorPart

CHAIN = """
def chain(A: f16[{h}, {n}, 64], B: f16[{l}, 64], W: f16[{l}, 64], O: f32[{h}, {n}, 64]):
    S: f32[{h}, {n} // 64, 64, 64]
    P: f16[{h}, {n} // 64, 64, 64]
    G: f32[{h}, {n} // 64, 64, 64]
    for h, q in grid({h}, {n} // 64):
        for i, e in grid(64, 64):
            G[h, q, i, e] = 0
        for c in range({l} // 64):
            for x, j in grid(64, 64):
                S[h, q, x, j] = 0
                for p in range(64):
                    S[h, q, x, j] += f32(A[h, q * 64 + x, p]) * f32(B[c * 64 + j, p])
            for x, j in grid(64, 64):
                P[h, q, x, j] = f16(max(S[h, q, x, j], 0.0))
            for y, w in grid(64, 64):
                for k in range(64):
                    G[h, q, y, w] += f32(P[h, q, y, k]) * f32(W[c * 64 + k, w])
        for z, v in grid(64, 64):
            O[h, q * 64 + z, v] = G[h, q, z, v]
"""


@cache
def planned(h: int, n: int, rows: int) -> Plan:
    """The first plan of a chain with two products in a loop inside a grid of h n / 64 blocks."""
    program = parse(CHAIN.format(h=h, n=n, l=rows), filename="f.py")
    plans = plans_of(TuneRequest(program, autosched.target("nvidia-h200"), only=("cuda/mma.m16n8k16.*", "cuda/fma*")))
    return next(p for p in plans[1] if any(len(t.around) == 2 for t in timed_parts(p)))


def bounds(plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    """The bound and the clock's seconds of some rows."""
    values = plan.space.values(plan.space.sample(40, np.random.default_rng(0)))
    return limit(plan, values), clock(plan, values)["total"]


@pytest.mark.parametrize(("h", "n", "rows"), [(2, 64, 128), (2, 128, 256), (200, 64, 128)])
def test_the_bound_is_all_calls_of_the_core_with_the_most_blocks(h: int, n: int, rows: int) -> None:
    plan = planned(h, n, rows)
    least, seconds = bounds(plan)
    assert np.all(least <= seconds * (1 + 1e-9))
    target, issued = plan.target, 0.0
    for timed in timed_parts(plan):
        if isinstance(timed.part, TensorPart):
            calls = prod(a.units for a in timed.part.nest.axes) * prod(p.trips for p in timed.around)
            issued += calls / issue_rate(timed.part.nest.intrinsic, target)
    blocks = h * n // 64
    assert np.allclose(least, issued / blocks * -(-blocks // target.cores) / target.clock_hz)


def test_tiles_of_a_block_follow_each_other() -> None:
    """Twice as many iterations of the loop inside take about twice as long, on as many cores."""
    _, short = bounds(planned(2, 128, 1024))
    _, long = bounds(planned(2, 128, 2048))
    assert 1.5 * short.min() < long.min() < 2.5 * short.min()
