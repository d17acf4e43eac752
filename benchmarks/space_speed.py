"""How fast rows go through legality, clock and features, whole spaces are scored, and sparse ones sampled.

    python -m benchmarks.space_speed                      # half a minute

Legality is asked of all rows of a space (rows before any rule), clock and features of its legal rows, blocks of both
shared by the threads. `whole` lays out and ranks everything that a study would: seconds until its 25,000 best rows are
known, of all legal ones, also where these are too many to list. Sparse spaces are made up of rules that leave 10 %,
0.1 % or 0.0001 % of the rows; what is timed is a uniform sample of 1,000 legal ones, from nothing.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from autosched import api
from autosched.costmodel.analytic import clock as clocks
from autosched.costmodel.features import feature_table
from autosched.ir.program import Program
from autosched.logic import Var
from autosched.search.request import TuneRequest
from autosched.search.space.scored_space import space_of
from autosched.search.space.space import SearchSpace
from autosched.search.tuning.tune import plans_of
from autosched.tiling.plans.plan import Plan
from autosched.tiling.space.space import Space
from autosched.tiling.step import Decision, Rule, Step
from benchmarks.cpu import RESULTS, machine

CUBE = {"m": 512, "n": 512, "k": 512}
LARGE = {"m": 4096, "n": 4096, "k": 4096}
PROGRAMS: dict[str, tuple[str, dict[str, Any], str]] = {
    "gemm f32 512": ("matmul", CUBE, "x86-avx512"),
    "gemm u8s8 512": ("matmul", CUBE | {"a": "u8", "b": "s8", "acc": "s32"}, "x86-avx512"),
    "gemm s8s8 512": ("matmul", CUBE | {"a": "s8", "b": "s8", "acc": "s32"}, "x86-avx512"),
    "conv f32 7x7x512": ("conv2d", {"h": 7, "w": 7, "ci": 512, "co": 512, "t": "f32", "acc": "f32"}, "x86-avx512"),
    "gemm bf16 4096 on an H200": ("matmul", LARGE | {"a": "bf16", "b": "bf16", "acc": "f32"}, "nvidia-h200"),
}
TWO = """
def two(X: f32[m, k], A: f32[k, h], B: f32[h, n], Y: f32[m, n], *, m=128, k=256, h=512, n=256):
    T: f32[m, h]
    for i, j in grid(m, h):
        T[i, j] = 0
        for p in range(k):
            T[i, j] += X[i, p] * A[p, j]
    for i, j in grid(m, n):
        Y[i, j] = 0
        for p in range(h):
            Y[i, j] += T[i, p] * B[p, j]
"""
"""Two products, whose schedules multiply."""
ASKED = {"legality": 3e6, "clock and features": 1e6}
"""Rows a second, on two cores."""
BLOCK = 1 << 16
MOST = 1 << 20
DENSITIES = (0.1, 1e-3, 1e-6)
SAMPLED = 1000


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.space_speed", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, default=RESULTS / "space_speed.json")
    options = parser.parse_args(arguments)
    rows = {name: speeds(name, options.threads) for name in PROGRAMS}
    rows["two products"] = whole("two products", api.parse_text(TWO), "x86-avx512", options.threads)
    sparse = {f"{density:.4%}": sampling(density) for density in DENSITIES}
    data = {"schema": "autosched/benchmarks/space_speed/1", "machine": machine(), "threads": options.threads,
            "asked": ASKED, "rows": rows, "sparse": sparse, "most_bytes": most_bytes()}  # fmt: skip
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    print(f"at most {most_bytes() / 2**20:,.0f} MiB of memory; written to {options.json}", file=sys.stderr)
    return 0


def speeds(name: str, threads: int) -> dict[str, Any]:
    """Rows a second through each stage, and seconds for the whole space."""
    workload, sizes, target = PROGRAMS[name]
    program = api.workload(workload, **sizes)
    _, plans = plans_of(TuneRequest(program, api.target(target)))
    plan = max(plans, key=lambda p: p.space.size)
    took, legal = timed(lambda: plan.space.enumerate().ids)
    ids = legal[:MOST]
    before = time.process_time()
    scored_s, _ = timed(lambda: shared(ids, lambda some: described(plan, some), threads))
    processor_s = time.process_time() - before
    found = {
        "plan": plan.name,
        "rows": plan.space.size,
        "legal": len(legal),
        "legality": plan.space.size / took,
        "clock and features": len(ids) / scored_s,
        "clock and features, a core": len(ids) / processor_s,
    }
    print(
        f"{name}: legality {found['legality'] / 1e6:.1f} M rows/s (asked 3), clock and features "
        f"{found['clock and features'] / 1e6:.2f} M rows/s (asked 1), "
        f"{found['clock and features, a core'] / 1e6:.2f} M a second of processor time",
        flush=True,
    )
    return found | whole(name, program, target, threads)


def whole(name: str, program: Program, target: str, threads: int) -> dict[str, Any]:
    """Seconds until the best rows of all plans are known."""
    _, plans = plans_of(TuneRequest(program, api.target(target)))
    before = time.process_time()
    whole_s, space = timed(lambda: laid_out(plans, threads))
    processor_s = time.process_time() - before
    print(
        f"{name}: {space.legal:,} legal of {space.rows_in_all:,} rows ranked in {whole_s:.2f} s "
        f"({processor_s:.2f} s of processor time)",
        flush=True,
    )
    return {
        "whole_rows": space.rows_in_all,
        "whole_legal": space.legal,
        "whole_s": whole_s,
        "whole_processor_s": processor_s,
    }


def described(plan: Plan, ids: Any) -> None:
    values = plan.space.values(ids)
    feature_table(plan, ids, values, clocks.clock(plan, values))


def laid_out(plans: list[Plan], threads: int) -> SearchSpace:
    space = space_of(plans, threads=threads)
    space.best(25_000)
    return space


def sampling(density: float) -> dict[str, Any]:
    """Seconds for a first sample of a space of which about this share is legal, and what the share really is."""
    space = sparse_space(density)
    took, drawn = timed(lambda: space.sample(SAMPLED, np.random.default_rng(0)))
    assert space.count is not None
    legal = space.count.legal
    share = legal / space.size
    print(f"sampling at {share:.2g}: {len(drawn):,} of {space.size:,} rows in {took:.2f} s, "
          f"{len(drawn) / took:,.0f} rows/s", flush=True)  # fmt: skip
    assert space.legal(drawn).all()
    return {"rows": space.size, "legal": legal, "share": share, "sample": len(drawn), "seconds": took}


def sparse_space(density: float) -> Space:
    """Eight decisions of twenty values, in pairs whose sums must leave a remainder: each rule lets one in so many
    through, and the last one ties the pairs together, so that no prefix tells whether it can be completed."""
    names = "abcdefgh"
    steps = [Step(n, (Decision(n, tuple(range(20))),)) for n in names]
    each = round(density ** (-1 / 3))
    rules = [
        Rule(f"pair {k}", ((Var(a) * 7 + Var(b) * 3) % each).eq(0), "sums")
        for k, (a, b) in enumerate((("a", "b"), ("c", "d")))
    ]
    ties = sum((Var(n) * (11 + 2 * k) for k, n in enumerate(names[1:])), start=Var("a") * 5)
    rules.append(Rule("all", (ties % each).eq(0), "all of them"))
    return Space("sparse", [*steps, Step("rules", (), tuple(rules))])


def shared(ids: Any, work: Any, threads: int) -> None:
    blocks = [ids[top : top + BLOCK] for top in range(0, len(ids), BLOCK)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, blocks))


def timed(work: Any) -> tuple[float, Any]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def most_bytes() -> int:
    """The most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    raise SystemExit(main())
