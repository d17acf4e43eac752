"""The simulator as a machine: what more bandwidth, slots, blocks and threads do to a kernel's time, and its traces."""

from __future__ import annotations

import dataclasses
import itertools
import json
from typing import Any

import numpy as np
import pytest
from support.cards.gpu_plans import H200, plans

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import Kernel
from autosched.device.simulator.cpu.cpu_model import play_cpu, threads_of
from autosched.device.simulator.device import estimate
from autosched.device.simulator.gpu.gpu_model import QUARTERS, play
from autosched.device.simulator.spatial.spatial_model import play_spatial
from autosched.device.simulator.trace import trace
from autosched.device.simulator.walk.walk import facts
from autosched.machine.catalogue import load_target
from autosched.machine.target import Target
from autosched.tiling.plans.plan import Plan

GEMMINI, AVX512 = load_target("gemmini"), load_target("x86-avx512")
BYTES = {"a": "s8", "b": "s8", "acc": "s32"}
HALVES = {"a": "f16", "b": "f16", "acc": "f32"}
SPECS: dict[str, tuple[str, Target, int, dict[str, Any]]] = {
    "gpu": ("cuda/wmma.*", H200, 1, {"m": 1024, "n": 1024, "k": 1024, **HALVES}),
    "threads": ("cuda/dp4a*", H200, 1, {"m": 256, "n": 512, "k": 512, **BYTES}),
    "spatial": ("gemmini/*", GEMMINI, 1, {"m": 256, "n": 256, "k": 512, **BYTES}),
    "cpu": ("x86/vfmadd*zmm", AVX512, 4, {"m": 256, "n": 256, "k": 256}),
}
MADE: dict[str, list[Kernel]] = {}


def plan_of(name: str) -> Plan:
    only, target, threads, sizes = SPECS[name]
    return plans("matmul", only, target, threads, **sizes)[1][0]


def kernels(name: str) -> list[Kernel]:
    if name not in MADE:
        plan = plan_of(name)
        rows = plan.space.sample(8, np.random.default_rng(3))
        MADE[name] = [lower(plan, plan.space.schedule(int(r))) for r in rows]
    return MADE[name]


def seconds(kernel: Kernel, target: Target) -> float:
    return estimate(kernel, [facts(kernel, s) for s in kernel.main.body], target).seconds["total"]


def scaled(target: Target, factor: float, name: str | None = None) -> Target:
    """The target with the bandwidth of one level, or of all, times a factor."""
    memories = [
        dataclasses.replace(m, bandwidth_bytes_per_s=m.bandwidth_bytes_per_s * factor)
        if m.bandwidth_bytes_per_s and name in (None, m.name)
        else m
        for m in target.memories
    ]
    return dataclasses.replace(target, memories=tuple(memories))


@pytest.mark.slow
@pytest.mark.parametrize("name", SPECS)
def test_more_bandwidth_or_a_faster_clock_never_hurts(name: str) -> None:
    target = SPECS[name][1]
    helped = 0
    for kernel in kernels(name):
        slow, usual, quick = (seconds(kernel, scaled(target, f)) for f in (0.25, 1.0, 4.0))
        # Events are served in order, so that a quicker copy may get in another's way: a per mille or two.
        assert quick <= usual * 1.02
        assert usual <= slow * 1.02
        helped += slow > usual * 1.05
        faster = dataclasses.replace(target, clock_hz=target.clock_hz * 2)
        assert seconds(kernel, faster) < usual * 1.02
    assert helped


@pytest.mark.slow
@pytest.mark.parametrize("name", SPECS)
def test_nothing_is_faster_than_its_units(name: str) -> None:
    target = SPECS[name][1]
    for kernel in kernels(name):
        causes = estimate(kernel, [facts(kernel, s) for s in kernel.main.body], target).seconds
        busiest = max(v for k, v in causes.items() if k not in ("total", "launch", "start", "call", "wake"))
        assert causes["total"] >= busiest * 0.999


@pytest.mark.slow
def test_tensor_peak_is_not_passed() -> None:
    peak = H200.cores * H200.rates["ops.tensor.f16"] * H200.clock_hz
    for kernel in kernels("gpu"):
        assert 2 * 1024**3 / seconds(kernel, H200) < peak


def test_two_blocks_of_a_core_share_its_pipes() -> None:
    kernel = kernels("gpu")[0]
    found = facts(kernel, kernel.main.body[0])
    one_core = dataclasses.replace(H200, cores=1)
    run = play(kernel, found, one_core)
    issues = sum(i.runs * i.intrinsic.operations for i in found.issues)
    pipe = sum(run.outcome.busy[:QUARTERS]) / QUARTERS / 64
    assert pipe == pytest.approx(issues / (0.62 * 4096), rel=0.05)
    assert run.outcome.end / 64 >= pipe


def test_a_tail_of_a_few_blocks_costs_most_of_a_wave() -> None:
    def even(kernel: Kernel) -> bool:
        grid = play(kernel, facts(kernel, kernel.main.body[0]), H200).grid
        return round(grid.count) % (2 * grid.at_once) == 0

    kernel = next(k for k in kernels("gpu") if k.schedule["persistent"] == "no" and even(k))
    found = facts(kernel, kernel.main.body[0])
    blocks = round(play(kernel, found, H200).grid.count)
    at_once = play(kernel, found, H200).grid.at_once

    def ends(cores: int) -> float:
        return play(kernel, found, dataclasses.replace(H200, cores=cores)).outcome.end

    assert blocks % 2 == 0
    assert at_once < blocks // 2  # else there is no tail
    exact = max(2, blocks // (2 * at_once))
    whole, tail = ends(exact), ends(exact - 1)
    assert tail > whole * 1.02


def test_double_buffering_helps_where_copies_bound() -> None:
    plan = plan_of("spatial")
    base = {"block_i": 4, "block_j": 4, "block_p": 8, "order": 0, "resident_a": 3, "resident_b": 3}
    times = []
    for slots in (1, 2):
        row = plan.space.row_of(base | {"slots_a": slots, "slots_b": slots, "slots_c": slots})
        kernel = lower(plan, plan.space.schedule(int(plan.space.canonical([row])[0])))
        times.append(seconds(kernel, scaled(GEMMINI, 4.0, "DRAM")))
    assert times[1] < 0.85 * times[0]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["gpu", "spatial", "threads"])
def test_bytes_moved_are_the_kernels(name: str) -> None:
    """What the events move is what the loop tree touches, however it is cut into requests."""
    target = SPECS[name][1]
    for kernel in kernels(name):
        found = facts(kernel, kernel.main.body[0])
        if name == "spatial":
            totals = play_spatial(kernel, found, target).totals
            filled = sum(t.runs * t.bytes * t.lane.width for t in found.touches if t.scope == "shared" and t.write)
            assert totals.loaded == pytest.approx(filled, rel=1e-9)
            assert totals.operations == sum(i.runs * i.intrinsic.operations for i in found.issues)
            continue
        moved = 0.0

        def add(span: Any) -> bool:
            nonlocal moved
            moved += span.amount if span.name == "load" else 0.0
            return True  # all of it: nothing is skipped

        blocks = round(play(kernel, found, target).grid.count)
        run = play(kernel, found, dataclasses.replace(target, cores=blocks), add)  # each on a core of its own
        assert moved * blocks == pytest.approx(run.moved["L2"], rel=1e-9)


def test_threads_share_memory_but_not_cores() -> None:
    for kernel in kernels("cpu"):
        for stmt in kernel.main.body:
            found = facts(kernel, stmt)
            threads = threads_of(found)
            run = play_cpu(kernel, found, AVX512, threads)
            assert sum(s.startswith("core ") for s in run.servers) == round(threads)
            assert len([s for s in run.servers if s == "DRAM"]) == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SPECS)
def test_traces_load_and_lanes_do_not_overlap(name: str) -> None:
    kernel = kernels(name)[1]
    found = json.loads(json.dumps(trace(kernel, SPECS[name][1])))
    spans = [e for e in found["traceEvents"] if e["ph"] == "X"]
    assert spans
    names = {e["tid"]: e["args"]["name"] for e in found["traceEvents"] if e["name"] == "thread_name"}
    for lane in {e["tid"] for e in spans}:
        own = sorted((e["ts"], e["ts"] + e["dur"]) for e in spans if e["tid"] == lane)
        assert all(a[1] <= b[0] + 1e-6 for a, b in itertools.pairwise(own)), names[lane]
    whole = [e for e in spans if names[e["tid"]] == "statements"]
    assert len([e for e in whole if ":" in e["name"]]) == len(kernel.main.body)
    end = whole[-1]["ts"] + whole[-1]["dur"]
    assert all(e["ts"] >= 0 and e["ts"] + e["dur"] <= end * 1.000001 for e in spans)
