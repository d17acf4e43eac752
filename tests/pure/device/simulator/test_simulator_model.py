"""The simulator's model against brute force: counts against an executed tree, bytes moved against a simulated cache."""

from __future__ import annotations

import dataclasses
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.cards.gpu_plans import H200, plans

from autosched.codegen.lower import lower
from autosched.codegen.tree.kernel import (
    Assign,
    AsyncCopies,
    For,
    If,
    IntrinsicCall,
    Kernel,
    Stmt,
    WarpSpecialize,
    bodies,
)
from autosched.device.simulator import SimulatorDevice
from autosched.device.simulator.gpu.gpu_costs import accesses, workers_innermost
from autosched.device.simulator.gpu.gpu_launch import launch
from autosched.device.simulator.walk import loop_classes as places
from autosched.device.simulator.walk.facts import Facts
from autosched.device.simulator.walk.footprints import TouchFootprints
from autosched.device.simulator.walk.reuse import Reuse
from autosched.device.simulator.walk.walk import facts
from autosched.ir import parse
from autosched.ir.value import Read, walk
from autosched.logic import evaluate
from autosched.machine.catalogue import load_target
from autosched.search.tuning.baseline import literal_plan
from autosched.tiling.candidate import Candidate

AVX512 = load_target("x86-avx512")


def executed(body: tuple[Stmt, ...], env: dict[str, int]) -> Iterator[tuple[Stmt, dict[str, int]]]:
    """Every statement that a run executes, with its loop variables."""
    for stmt in body:
        match stmt:
            case For():
                for i in range(int(evaluate(stmt.lower, env)), int(evaluate(stmt.upper, env)), stmt.step):
                    yield from executed(stmt.body, env | {stmt.var: i})
            case If():
                if evaluate(stmt.condition, env):
                    yield from executed(stmt.body, env)
            case AsyncCopies() | WarpSpecialize():
                for part in bodies(stmt):
                    yield from executed(part, env)
            case _:
                yield stmt, env


def counted(kernel: Kernel) -> Counter[str]:
    names = {Assign: "assign", IntrinsicCall: "issue"}
    return Counter(names.get(type(s), "other") for s, _ in executed(kernel.main.body, {}))


def expected(kernel: Kernel) -> dict[str, float]:
    found = [facts(kernel, s) for s in kernel.main.body]
    issues = sum(i.runs for f in found for i in f.issues)
    return {"issue": issues, "assign": sum(f.statements for f in found) - issues}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("only", "target", "sizes"),
    [
        ("cuda/wmma.*", H200, {"m": 64, "n": 48, "k": 96, "a": "f16", "b": "f16", "acc": "f32"}),
        ("cuda/dp4a*", H200, {"m": 12, "n": 9, "k": 37, "a": "s8", "b": "s8", "acc": "s32"}),
        ("x86/vfmadd*zmm", AVX512, {"m": 23, "n": 70, "k": 29, "a": "f32", "b": "f32", "acc": "f32"}),
        ("gemmini/*", load_target("gemmini"), {"m": 177, "n": 120, "k": 230, "a": "s8", "b": "s8", "acc": "s32"}),
    ],
)
def test_counts_are_those_of_a_run(only: str, target: Any, sizes: dict[str, Any]) -> None:
    _, (plan, *_) = plans("matmul", only, target, threads=3, **sizes)
    for row in plan.space.sample(12, np.random.default_rng(0)):
        kernel = lower(plan, plan.space.schedule(int(row)))
        real, said = counted(kernel), expected(kernel)
        for kind in ("issue", "assign"):
            assert said[kind] == pytest.approx(real[kind], rel=1e-9), (kind, plan.space.schedule(int(row)))


NESTS = {
    "triangle": (
        "for i in range(37):\n  for j in range(i, 41):\n   for p in range(j + 1):\n    ",
        "C[i, j] += A[i, p]",
    ),
    "border": ("for i in range(90):\n  for j in range(50):\n   if 0 <= i + j - 20 < 60:\n    ", "C[i, j] += A[i, j]"),
}


@pytest.mark.parametrize("nest", NESTS)
def test_bounds_and_conditions_on_several_loops_are_counted_exactly(nest: str) -> None:
    loops, body = NESTS[nest]
    program = parse(f"def f(A: f32[90, 90], C: f32[90, 90]):\n {loops}{body}\n")
    plan = literal_plan(program, AVX512)
    kernel = lower(plan, plan.space.schedule(0))
    real = counted(kernel)
    assert expected(kernel) == {"issue": 0, "assign": pytest.approx(real["assign"], rel=1e-9)}


def test_more_places_than_are_told_apart_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    loops, body = NESTS["triangle"]
    plan = literal_plan(parse(f"def f(A: f32[90, 90], C: f32[90, 90]):\n {loops}{body}\n"), AVX512)
    kernel = lower(plan, plan.space.schedule(0))
    monkeypatch.setattr(places, "MOST", 10)
    assert expected(kernel)["assign"] == pytest.approx(counted(kernel)["assign"], rel=0.1)


def test_constant_bounds_are_counted_exactly() -> None:
    program = parse("def f(A: f32[6, 7], C: f32[6]):\n    for i in range(6):\n        for j in range(7):\n"
                    "            C[i] += A[i, j]\n")  # fmt: skip
    kernel = lower(literal_plan(program, AVX512), literal_plan(program, AVX512).space.schedule(0))
    assert expected(kernel) == {"issue": 0, "assign": 42}


class Lru:
    """A fully associative cache of `capacity` bytes in lines; counts bytes fetched."""

    def __init__(self, capacity: float, line: int) -> None:
        self.lines: OrderedDict[tuple[str, int], None] = OrderedDict()
        self.most, self.line, self.fetched = int(capacity // line), line, 0

    def touch(self, buffer: str, byte: int) -> None:
        key = buffer, byte // self.line
        if key in self.lines:
            self.lines.move_to_end(key)
            return
        self.fetched += self.line
        self.lines[key] = None
        if len(self.lines) > self.most:
            self.lines.popitem(last=False)


def fetched(kernel: Kernel, capacity: float, line: int) -> int:
    cache = Lru(capacity, line)

    def touch(name: str, index: tuple[Any, ...], env: dict[str, int]) -> None:
        buffer = kernel.buffers[name]
        if buffer.scope in ("global", "workspace", "packed"):
            flat = 0
            for i, n in zip(index, buffer.shape, strict=True):
                flat = flat * n + int(evaluate(i, env))
            cache.touch(name, flat * buffer.dtype.bytes)

    for stmt, env in executed(kernel.main.body, {}):
        if isinstance(stmt, Assign):
            for e in range(stmt.lane.width if stmt.lane else 1):
                here = env | ({stmt.lane.var: e} if stmt.lane else {})
                if not evaluate(stmt.valid, here):
                    continue
                for node in walk(stmt.value):
                    if isinstance(node, Read):
                        touch(node.tensor, node.index, here)
                touch(stmt.buffer, stmt.index, here)
    return cache.fetched


ORDERS = {
    "i j p": "for i in range(24):\n  for j in range(40):\n   for p in range(32):\n    ",
    "i p j": "for i in range(24):\n  for p in range(32):\n   for j in range(40):\n    ",
    "p j i": "for p in range(32):\n  for j in range(40):\n   for i in range(24):\n    ",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("capacity", [512, 2048, 6144, 1 << 20])
def test_bytes_are_those_of_a_cache(order: str, capacity: int) -> None:
    text = (
        "def f(A: f32[24, 32], B: f32[32, 40], C: f32[24, 40]):\n " + ORDERS[order] + "C[i, j] += A[i, p] * B[p, j]\n"
    )
    plan = literal_plan(parse(text), AVX512)
    kernel = lower(plan, plan.space.schedule(0))
    found = facts(kernel, kernel.main.body[0])
    said = sum(Reuse(found.touches, TouchFootprints(kernel.buffers, 64)).moved(capacity).values())
    real = fetched(kernel, capacity, 64)
    assert real / 2.5 <= said <= real * 2.5, (said, real)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("capacity", [1536, 4000, 1 << 20])
def test_bytes_of_tiled_kernels_are_those_of_a_cache(capacity: int) -> None:
    _, (plan, *_) = plans("matmul", "x86/vfmadd*zmm", AVX512, m=14, n=48, k=24)
    for row in plan.space.sample(5, np.random.default_rng(3)):
        kernel = lower(plan, plan.space.schedule(int(row)))
        said = 0.0
        for stmt in kernel.main.body:
            found = facts(kernel, stmt)
            said += sum(Reuse(found.touches, TouchFootprints(kernel.buffers, 64)).moved(capacity).values())
        # Right at the size of a working set a model may fall on either side of the cliff.
        most, least = fetched(kernel, capacity / 2, 64), fetched(kernel, capacity * 2, 64)
        assert least / 2.2 <= said <= most * 2.2, (said, least, most, plan.space.schedule(int(row)))


# GPUs


def gpu(**values: int | str) -> tuple[Kernel, Facts]:
    _, (plan, *_) = plans("matmul", "cuda/wmma.*", m=1024, n=1024, k=1024, a="f16", b="f16", acc="f32")
    kernel = lower(plan, plan.space.schedule(plan.space.row_of(values)))
    return kernel, facts(kernel, kernel.main.body[0])


def test_a_grid_is_read_off_the_tree() -> None:
    values: dict[str, int | str] = {
        "reg_i": 2,
        "reg_j": 4,
        "warps_i": 2,
        "warps_j": 4,
        "stage_a": "shared",
        "block_p": 2,
    }
    kernel, found = gpu(**values)
    grid = launch(kernel, found, H200)
    assert grid.count == (1024 // 64) * (1024 // 256)
    assert grid.threads == 8 * 32
    assert grid.shared_bytes == 4 * 2 * 256 * 2
    assert grid.registers >= 8 * 8 + 4 * 4  # eight f32 accumulators of eight registers, a row of f16 fragments
    assert grid.spilled == 0


def test_workers_share_what_they_read_side_by_side() -> None:
    """Eight warps along j read the same A: past an L1 that holds one step it is fetched once, not eight times."""
    one, wide = gpu(warps_j=1), gpu(warps_j=8)
    bytes_of = {}
    for name, (kernel, found) in (("one", one), ("wide", wide)):
        grid = launch(kernel, found, H200)
        touches = [t for t in found.touches if t.buffer == "A"]
        past = Reuse(touches, TouchFootprints(kernel.buffers, 32), workers_innermost, len(grid.blocks)).moved(65536)
        bytes_of[name] = sum(past.values())
    assert bytes_of["wide"] == pytest.approx(bytes_of["one"] / 8, rel=0.01)


def test_one_warp_reads_a_fragment_with_wide_loads() -> None:
    _, found = gpu(stage_a="shared", block_p=1)
    staged = next(t for t in found.touches if t.buffer == "A_shared" and not t.write)
    assert accesses(staged, 32, 32) == 1.0  # 256 halves: sixteen bytes for each of 32 lanes


def seconds(device: SimulatorDevice, candidate: Candidate) -> float:
    time_s = device.measure(device.build(candidate)).time_s
    assert time_s is not None
    return time_s


def test_good_schedules_beat_bad_ones_by_far() -> None:
    _, (plan, *_) = plans("matmul", "cuda/wmma.*", m=4096, n=4096, k=4096, a="f16", b="f16", acc="f32")
    device = SimulatorDevice(target=H200, noise=0)
    good = {"reg_i": 4, "reg_j": 4, "warps_i": 2, "warps_j": 4, "stage_a": "shared", "stage_b": "shared", "block_p": 4}
    copies = {"copy": "cp.async", "stages": 3, "vector": "16 B", "padding": "16 B"}
    row = plan.space.row_of(good | copies)
    assert plan.space.legal([row]).all(), plan.space.why_not(row)
    fast = seconds(device, Candidate(plan, row))
    slow = seconds(device, Candidate(plan, plan.space.row_of({"reg_i": 1})))
    assert 4 * fast < slow
    peak = H200.rates["ops.tensor.f16"] * H200.clock_hz * H200.cores
    assert 0.15 < 2 * 4096**3 / fast / peak < 0.65


@pytest.mark.slow
def test_nothing_is_faster_than_the_machine() -> None:
    _, found = plans("matmul", "cuda/*", m=2048, n=2048, k=2048, a="f16", b="f16", acc="f32")
    device = SimulatorDevice(target=H200, noise=0)
    peak = H200.rates["ops.tensor.f16"] * H200.clock_hz * H200.cores
    for plan in found[:2]:
        for row in plan.space.sample(20, np.random.default_rng(5)):
            assert 2 * 2048**3 / seconds(device, Candidate(plan, int(row))) < peak


def test_more_threads_and_larger_caches_never_hurt_a_large_product() -> None:
    _, (plan, *_) = plans("matmul", "x86/vfmadd*zmm", AVX512, threads=8, m=512, n=512, k=512)
    device = SimulatorDevice(target=AVX512, threads=8, noise=0)
    tile: dict[str, int | str] = {"reg_i": 8, "reg_j": 2}
    one = seconds(device, Candidate(plan, plan.space.row_of(tile)))
    eight = seconds(device, Candidate(plan, plan.space.row_of(tile | {"threads": 8, "split": "i"})))
    assert one / 8.2 < eight < one / 2
    tiny = dataclasses.replace(
        AVX512, memories=tuple(dataclasses.replace(m, bytes=m.bytes // 64) for m in AVX512.memories)
    )
    assert seconds(SimulatorDevice(target=tiny, threads=8, noise=0), Candidate(plan, plan.space.row_of(tile))) >= one
