"""How fast matching answers: every built-in workload, in several types, against the whole catalogue.

    python -m benchmarks.matching                 # results in matching.json
    python -m benchmarks.matching --only matmul conv2d -o results.json

A query is one stage and one intrinsic. Reported: median and greatest query, the processor's time for all of
them, and z3's share of it. `--jobs` processes (two by default) share the workloads; `wall_s` is how long that took.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import z3

import autosched
from autosched.errors import AutoschedError
from autosched.ir.workload import workload_names
from autosched.tensorize import Catalogue, match

TYPES = ({"a": "f32", "b": "f32"}, {"a": "u8", "b": "s8"}, {"a": "s8", "b": "s8"}, {"a": "f16", "b": "f16"})


@dataclass
class Result:
    """One workload in one choice of types."""

    workload: str
    types: str
    queries: int
    total_s: float
    median_s: float
    greatest_s: float
    slowest: str
    z3_s: float
    verdicts: dict[str, int] = field(default_factory=dict)

    def row(self) -> str:
        found = ", ".join(f"{n} {v}" for v, n in sorted(self.verdicts.items()))
        share = 100 * self.z3_s / max(self.total_s, 1e-9)
        return (
            f"| {self.workload} | {self.types} | {self.queries} | {self.total_s:.2f} | {1e3 * self.median_s:.2f} | "
            f"{1e3 * self.greatest_s:.0f} ({self.slowest}) | {share:.0f} % | {found} |"
        )


@contextmanager
def solver_time() -> Iterator[list[float]]:
    """The processor's seconds of each call of the solver meanwhile."""
    seconds: list[float] = []
    check = z3.Solver.check

    def timed(self: z3.Solver, *assumptions: Any) -> Any:
        started = time.process_time()
        try:
            return check(self, *assumptions)
        finally:
            seconds.append(time.process_time() - started)

    z3.Solver.check = timed
    try:
        yield seconds
    finally:
        z3.Solver.check = check


def cases_of(name: str) -> list[dict[str, str]]:
    """The choices of types that a workload has; as it is declared where it has none of ours."""
    found = []
    for types in TYPES:
        try:
            autosched.workload(name, **types)
        except AutoschedError:
            continue
        found.append(types)
    return found or [{}]


def measure(name: str, types: dict[str, str]) -> Result:
    """One workload against the whole catalogue."""
    intrinsics = list(Catalogue.builtin().values())
    program = autosched.workload(name, **types)
    with solver_time() as seconds:
        started = time.process_time()
        found = match(program, intrinsics)
        total = time.process_time() - started
    slowest = max(found, key=lambda m: m.seconds)
    return Result(
        name,
        " ".join(types.values()) or "as declared",
        len(found),
        total,
        statistics.median(m.seconds for m in found),
        slowest.seconds,
        slowest.intrinsic.name,
        sum(seconds),
        dict(Counter(m.verdict for m in found)),
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.matching", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=workload_names(), help="workloads (default: all)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("-o", "--output", type=Path, default=Path("matching.json"))
    options = parser.parse_args()
    head = "| workload | types | queries | s | median ms | greatest ms | z3 | verdicts |"
    print(head + "\n|---|---|---|---|---|---|---|---|")
    results: list[Result] = []
    names = options.only or workload_names()
    started = time.perf_counter()
    cases = [(name, types) for name in names for types in cases_of(name)]
    with ProcessPoolExecutor(options.jobs) as pool:
        for found in pool.map(measure, *zip(*cases, strict=True)):
            results.append(found)
            print(found.row(), flush=True)
    wall = time.perf_counter() - started
    total = sum(r.total_s for r in results)
    summary = {
        "queries": sum(r.queries for r in results),
        "wall_s": wall,
        "total_s": total,
        "median_s": statistics.median(r.median_s for r in results),
        "greatest_s": max(r.greatest_s for r in results),
        "z3_share": sum(r.z3_s for r in results) / total,
    }
    print("\n" + ", ".join(f"{k}: {v:.4g}" for k, v in summary.items()))
    data = {"schema": "autosched/matching/1", "summary": summary, "results": [asdict(r) for r in results]}
    options.output.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
