"""A search without hardware: real spaces, a clock, and a device whose hidden cost function the clock only resembles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autosched.costmodel import Samples
from autosched.device.protocol import Build
from autosched.ir import workload
from autosched.ir.program import Program
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.logic import Var, ceil_div
from autosched.search import SearchSpace
from autosched.search.space.rows import Rows
from autosched.store.records import Measurement, StudyRecord
from autosched.tensorize.match_types import Mapping
from autosched.tiling.candidate import Candidate
from autosched.tiling.plans.plan import Part, TensorPart
from autosched.tiling.space.space import Space
from autosched.tiling.step import Decision, Rule, Step

MATMUL = workload("matmul", m=96, n=12, k=512)


@dataclass(frozen=True)
class FakePlan:
    """What the search needs of a plan: name, space, and that it relies on nothing. `speed` scales its hidden cost. It
    has no parts, and no rewrite led to it."""

    name: str
    space: Space
    speed: float = 1.0
    mappings: tuple[Mapping, ...] = ()
    stages_on_intrinsics: frozenset[str] = frozenset()
    relies: tuple[str, ...] = ()
    rewrites: tuple[RewriteVerdict, ...] = ()
    parts: tuple[Part, ...] = ()
    tensor_parts: tuple[TensorPart, ...] = ()
    in_tile_loops: bool = False
    program: Program = MATMUL


def make_plan(name: str, speed: float = 1.0, tiles: int = 8) -> FakePlan:
    """Tiles, blocks, unroll, prefetch and order of a matrix multiplication as a space of some 10^4 rows."""
    m, n, k = Var("tile_m"), Var("tile_n"), Var("block_k")
    step = Step(
        "tile",
        (
            Decision("tile_m", tuple(range(1, tiles + 1))),
            Decision("tile_n", (1, 2, 3, 4)),
            Decision("block_m", (1, 2, 4, 8, 16)),
            Decision("block_k", (16, 48, 64, 128, 256, 512)),
            Decision("unroll", (1, 2, 4)),
            Decision("prefetch", (0, 4, 8)),
            Decision("order", (0, 1), labels=("mnk", "nmk")),
        ),
        (Rule("registers", Var("registers") <= 32, "{registers} registers > 32"),),
        {
            "registers": m * n + m + n,
            "bytes": k * (m * Var("block_m") + n * 16) * 4,
            "trips": ceil_div(512, k) * ceil_div(96, m) * ceil_div(12, n),
        },
    )
    return FakePlan(name, Space(name, [step]), speed)


def tiny_plan(name: str = "tiny") -> FakePlan:
    """Seven legal rows of eight."""
    step = Step(
        "tile",
        (Decision("tile", (1, 2, 4, 8)), Decision("unroll", (1, 2))),
        (Rule("registers", Var("registers") <= 8, "{registers} registers > 8"),),
        {"registers": Var("tile") * Var("unroll")},
    )
    return FakePlan(name, Space(name, [step]))


def clock(plan: FakePlan, values: Any) -> dict[str, Any]:
    """Roughly right: arithmetic that wants many accumulators, loads, and a cost for each trip."""
    registers = np.asarray(values["registers"], np.float64)
    compute = 1e-4 * plan.speed * (1 + 8 / registers)
    load = 2e-4 * plan.speed / (1 + registers / 4)
    overhead = 2e-9 * np.asarray(values.get("trips", 0))
    return {"compute": compute, "load": load, "overhead": overhead, "total": np.maximum(compute, load) + overhead}


def hidden_s(plan: FakePlan, values: Any) -> Any:
    """What the device really takes: the clock's trend, and caches, conflicts, prefetching that it lacks."""
    total = clock(plan, values)["total"]
    if "trips" not in values:
        return total
    size, k, m = (np.asarray(values[name]) for name in ("bytes", "block_k", "tile_m"))
    unroll, prefetch, order = (np.asarray(values[name]) for name in ("unroll", "prefetch", "order"))
    cache = 1 + 0.5 * (size > 12_000) + 1.0 * (size > 48_000)
    conflict = np.where((k % 128 == 0) & (m % 2 == 0), 1.3, 1.0)  # sets of a cache that collide
    ahead = np.where((prefetch == 4) & (order == 1), 0.85, 1.0) * np.where((prefetch == 8) & (size < 12_000), 1.1, 1.0)
    spill = np.where(unroll * np.asarray(values["registers"]) > 60, 1.6, 1.0) * np.where(unroll == 2, 0.93, 1.0)
    return total * cache * conflict * ahead * spill


def measured(space: SearchSpace, rows: Rows) -> Samples:
    """The rows with their hidden costs, to learn from."""
    times = np.empty(len(rows))
    for n, entry in enumerate(space.plans):
        mine = rows.plan == n
        times[mine] = hidden_s(entry.plan, entry.plan.space.values(rows.ids[mine]))
    return Samples(space.features(rows), space.analytic(rows), times, ("ok",) * len(rows))


@dataclass
class SyntheticDevice:
    """Answers from the hidden cost with noise. `fail` names a failure by candidate; every call advances `now` by
    `takes_s`, so that tests own the time."""

    noise: float = 0.01
    fail: Any = None
    takes_s: float = 0.01
    now: float = 0.0
    measured: list[str] = field(default_factory=list)
    interrupt_after: int | None = None
    seed: int = 0

    def describe(self) -> dict[str, Any]:
        return {"name": "synthetic", "kind": "synthetic"}

    def clock(self) -> float:
        return self.now

    def build(self, candidate: Candidate) -> Build:
        self.now += self.takes_s
        if self.fail and self.fail(candidate) == "build":
            return Build(candidate, error="no such instruction\nin line 3")
        return Build(candidate, payload=candidate, kernel_sha=candidate.key)

    def measure(self, build: Build, repeats: str = "search") -> Measurement:
        self.now += self.takes_s
        self.measured.append(build.candidate.key)
        if self.interrupt_after is not None and len(self.measured) > self.interrupt_after:
            raise KeyboardInterrupt
        kind = self.fail(build.candidate) if self.fail else None
        if kind == "raise":
            raise RuntimeError("the device broke")
        if kind:
            return Measurement(kind, message=f"it went {kind}")
        plan = build.candidate.plan
        exact = float(hidden_s(plan, plan.space.values([build.candidate.row]))[0])
        rng = np.random.default_rng([self.seed, len(self.measured)])
        time_s = exact * (1 + self.noise * rng.standard_normal())
        costs = {"check": self.takes_s / 4}
        return Measurement("ok", time_s, (time_s,), 0.0, 1e-6, 1e-3, kernel_sha=build.kernel_sha, costs_s=costs)

    def close(self) -> None:
        pass


def record(name: str = "gemm", seed: int = 0, **key: str) -> StudyRecord:
    fields = {"program": "gemm 512", "target": "t", "device": "d", **key}
    return StudyRecord(name, fields, "def gemm…", "gemm", "t", "d", seed)
