"""The space of a spatial accelerator from two YAML files: every row is right and fits, no two rows are one kernel."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
import pytest
from support.cards.gpu_plans import covering, plans
from support.compiled.kernel_check import check_kernel

import autosched
from autosched.codegen.lower import lower
from autosched.codegen.tree.text import print_kernel
from autosched.costmodel.accuracy.metrics import spearman
from autosched.costmodel.analytic.clock import clock
from autosched.device.simulator.spatial.spatial_model import START_SECONDS
from autosched.device.simulator.verify.verify import Verifier
from autosched.machine.catalogue import load_target
from autosched.tiling.candidate import Candidate
from autosched.tiling.plans.plan import Plan

GEMMINI = load_target("gemmini")
BYTES = {"a": "s8", "b": "s8", "acc": "s32"}
CASES = [
    ("matmul", {"m": 40, "n": 40, "k": 70, **BYTES}),
    ("matmul", {"m": 17, "n": 16, "k": 5, **BYTES}),
    ("batch_matmul", {"batch": 3, "m": 20, "n": 33, "k": 40, **BYTES}),
    ("conv2d", {"h": 6, "w": 6, "ci": 20, "co": 18, "t": "s8", "acc": "s32"}),
]


def found(name: str, sizes: Mapping[str, int | str]) -> list[Plan]:
    return plans(name, "gemmini/*", GEMMINI, **sizes)[1]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("name", "sizes"), CASES)
def test_every_decision_gives_the_right_answer(name: str, sizes: dict[str, int | str]) -> None:
    for plan in found(name, sizes)[:2]:
        assert plan.tensor_parts[0].scheme == "spatial"
        verifier = Verifier(0)
        for row in covering(plan):
            kernel = lower(plan, plan.space.schedule(row))
            check_kernel(kernel)
            difference = verifier.whole(kernel, plan).difference
            assert difference is not None
            assert difference.ok, plan.space.schedule(row)


def test_memories_hold_what_a_row_keeps() -> None:
    (plan,) = found("matmul", {"m": 300, "n": 200, "k": 500, **BYTES})
    rows = plan.space.sample(40, np.random.default_rng(0))
    values = plan.space.values(rows)
    for n, row in enumerate(rows):
        buffers = lower(plan, plan.space.schedule(int(row))).buffers.values()
        for memory, scope in (("scratchpad", "shared"), ("accumulator", "accumulator")):
            used = sum(b.elements * b.dtype.bits // 8 for b in buffers if b.scope == scope)
            assert used == values[f"bytes_in_{memory}"][n] <= GEMMINI.memory(memory).bytes


def test_no_two_rows_are_one_kernel() -> None:
    (plan,) = found("matmul", {"m": 32, "n": 16, "k": 48, **BYTES})
    ids = plan.space.enumerate().ids
    texts = {print_kernel(lower(plan, plan.space.schedule(int(i)))).split("buffers")[1] for i in ids}
    assert len(texts) == len(ids)


def test_less_memory_leaves_fewer_rows_and_says_why() -> None:
    sizes = {"m": 256, "n": 256, "k": 256, **BYTES}
    (plan,) = found("matmul", sizes)
    small = [dataclasses.replace(m, bytes=4096) if m.holds else m for m in GEMMINI.memories]
    tight = plans("matmul", "gemmini/*", dataclasses.replace(GEMMINI, memories=tuple(small)), **sizes)[1][0]
    whole, few = plan.space.enumerate(), tight.space.enumerate()
    assert 0 < len(few.ids) < len(whole.ids)
    assert few.rejected["bytes_in_scratchpad"] > whole.rejected["bytes_in_scratchpad"]


def test_the_clock_knows_reuse_and_double_buffering() -> None:
    (plan,) = found("matmul", {"m": 1024, "n": 1024, "k": 1024, **BYTES})
    ids = plan.space.sample(2000, np.random.default_rng(0))
    terms = clock(plan, plan.space.values(ids))
    best = plan.space.schedule(int(ids[np.argmin(terms["total"])])).values
    assert best["slots_a"] == best["slots_b"] == 2
    assert terms["total"].min() >= 1024**3 / 256 / GEMMINI.clock_hz
    assert (terms["memory"].max() / terms["memory"].min()) > 10


@pytest.mark.slow
def test_the_clock_orders_rows_as_the_simulator_does() -> None:
    (plan,) = found("matmul", {"m": 128, "n": 96, "k": 160, **BYTES})
    ids = plan.space.sample(60, np.random.default_rng(0))
    device = autosched.device("simulator", target=GEMMINI, noise=0.0)
    builds = [device.build(Candidate(plan, int(row))) for row in ids]
    played = np.array([device.measure(build, "search").time_s for build in builds], np.float64)
    assert spearman(clock(plan, plan.space.values(ids))["total"], played) > 0.9


def test_commands_that_follow_each_other_are_started_once() -> None:
    (plan,) = found("matmul", {"m": 64, "n": 64, "k": 64, **BYTES})
    device = autosched.device("simulator", target=GEMMINI, noise=0.0)
    for resident, statements in ((0, 2), (3, 1)):  # an input that stays for all loops is copied before them
        rows = plan.space.enumerate().ids
        values = plan.space.values(rows)
        row = int(rows[(values["resident_a"] == resident) & (values["resident_b"] > 0)][0])
        assert len(lower(plan, plan.space.schedule(row)).main.body) == statements
        measured = device.measure(device.build(Candidate(plan, row)), "search")
        assert measured.extra["model_s"]["start"] == START_SECONDS


def test_tunes_from_two_yaml_files() -> None:
    program = autosched.workload("matmul", m=48, n=32, k=64, **BYTES)
    study = autosched.tune(program, target="gemmini", device="simulator", trials=6)
    assert not study.failed
    assert study.best.trial.measurement.extra["verified"]
    assert study.best.candidate.plan.tensor_parts[0].scheme == "spatial"
