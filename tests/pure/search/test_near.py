"""The rows close to the best by the clock are found without listing a plan, and are those of a full sort."""

from __future__ import annotations

import numpy as np
import pytest
from conformance.strategy import trial

import autosched
from autosched.search.registry import strategy
from autosched.search.request import TuneRequest
from autosched.search.space.scored_space import space_of
from autosched.search.strategy.memory import has_clock
from autosched.search.tuning.tune import plans_of
from autosched.store.records import Measurement
from autosched.tiling.plans.plan import Plan

SIZES = {"m": 64, "n": 32, "k": 64, "a": "f16", "b": "f16", "acc": "f32"}
CASES = {"nvidia-h100": "cuda/wgmma.m64n16k16.f16.f32", "nvidia-a100": "cuda/mma.m16n8k16.f16.f16.f32", "x86-avx2": "*"}


def planned(target: str) -> list[Plan]:
    sizes = SIZES if target != "x86-avx2" else {"m": 32, "n": 48, "k": 24}
    request = TuneRequest(autosched.workload("matmul", **sizes), autosched.target(target), only=(CASES[target],))
    return plans_of(request)[1][:2]


@pytest.mark.parametrize("target", CASES)
@pytest.mark.parametrize("large", [pytest.param(1, marks=pytest.mark.slow), 1 << 62])
def test_they_are_those_of_a_full_sort(target: str, large: int) -> None:
    space = space_of(planned(target), large=large)
    every = np.sort(np.concatenate([space.analytic_of_plan(n) for n in range(len(space.plans))]))
    for k, count, factor in ((10**6, 20, 1.1), (10, 20, 1.1), (10**6, 1, 1.0), (30, len(every) + 1, 1.0)):
        rows, seconds = space.near(k, count, factor)
        limit = factor * every[count - 1] if count <= len(every) else np.inf
        assert np.array_equal(seconds, every[every <= limit][:k])
        assert np.array_equal(space.analytic(rows), seconds)
        assert len(rows.distinct()) == len(rows)


@pytest.mark.sampled(1)
def test_nothing_is_listed_for_them() -> None:
    space = space_of(planned("nvidia-h100"), large=1)
    assert not space.empty
    assert has_clock(space)
    auto = strategy("auto", space)
    first = auto.propose(4)
    assert len({c.key for c in first}) == 4
    auto.observe([trial(n, c, Measurement("ok", 1.0)) for n, c in enumerate(first, 1)])
    assert len(auto.propose(4)) == 4
    assert len(space.near(1000, 64, 1.05)[0])
    assert len(space.sampled(0)[0])
    assert not any("laid out" in answer for answer in space.kept.names)


def test_a_thinned_sample_is_of_legal_rows_all_alike() -> None:
    plan = planned("x86-avx2")[0]
    rows = plan.space.thinned(2000, np.random.default_rng(0))
    assert len(np.unique(rows)) == 2000
    assert plan.space.legal(rows).all()
    legal = plan.space.enumerate().ids
    for position, decision in enumerate(plan.space.decisions):
        stride, radix = plan.space.strides[position], len(decision.domain)
        for value in range(radix):
            share, drawn = np.mean(legal // stride % radix == value), np.mean(rows // stride % radix == value)
            assert abs(share - drawn) < 0.08, decision.name
    everything = plan.space.thinned(len(legal) + 5, np.random.default_rng(0))
    assert np.array_equal(np.sort(everything), legal)
