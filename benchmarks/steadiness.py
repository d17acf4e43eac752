"""Do two studies of one program that differ in their seed end with kernels of the same speed? Asked: within 3 %.

    python -m benchmarks.steadiness                       # five seeds of each case; the same command continues
    python -m benchmarks.steadiness --only gemm/f32/512x512x512 --seeds 2

What each study says of its own best would mix in how busy the machine was then, so the kernels are loaded side by side,
each in its process, and timed in turn. What counts of each is its lower quartile: a neighbour only ever adds time, and
medians of 40 rounds moved by a tenth while the fastest rounds of the same kernels lay within 3 %.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path
from typing import Any

from benchmarks.common.answering import kernel
from benchmarks.common.sampling import quartiles
from benchmarks.common.suite import CASES, Case
from benchmarks.common.tuning import Request, tune
from benchmarks.cpu import RESULTS, machine

DEFAULT = ("gemm/f32/512x512x512", "gemm/u8s8/512x512x512", "gemm/f32/1024x1024x1024", "conv/f32/nhwc/rn50_56_3x3_64")
ASKED = 0.03


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.steadiness", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--only", nargs="*", choices=[c.name for c in CASES], default=DEFAULT, metavar="CASE")
    parser.add_argument("--seeds", type=int, default=5, help="2 or more")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--json", type=Path, default=RESULTS / "steadiness.json")
    options = parser.parse_args(arguments)
    if options.seeds < 2:
        parser.error("--seeds: two studies or more are compared")
    rows = kept(options.json)
    for case in CASES:
        key = f"{case.name} threads={options.threads} trials={options.trials} seeds={options.seeds}"
        if case.name not in options.only or key in rows:
            continue
        print(f"… {key}", file=sys.stderr, flush=True)
        rows[key] = run(case, options)
        print(line(key, rows[key]), flush=True)
        data = {"schema": "autosched/benchmarks/steadiness/2", "machine": machine(), "asked": ASKED, "rows": rows}
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return 0


def run(case: Case, options: argparse.Namespace) -> dict[str, Any]:
    """`seconds`: quartiles of each seed's kernel; `apart`: (slowest - fastest) / median of the lower ones; `alike`: the
    share of pairs of seeds that lie within what is asked."""
    with tempfile.TemporaryDirectory(prefix="autosched-steady-") as folder, ExitStack() as stack:
        stores = [str(Path(folder) / f"{seed}.db") for seed in range(options.seeds)]
        studies = [
            tune(Request(case.workload, case.sizes, store, True, options.threads, options.trials, seed))
            for seed, store in enumerate(stores)
        ]
        failed = [f"seed {seed}: {s.error}" for seed, s in enumerate(studies) if not s.study]
        if failed:
            return {"error": "; ".join(failed)}
        kernels = [
            stack.enter_context(kernel(store, s.study, options.threads))
            for store, s in zip(stores, studies, strict=True)
        ]
        for k in kernels:
            k.answer()
        samples = [[k.ask("time") for k in kernels] for _ in range(options.rounds)]
    seconds = [quartiles([s[i] for s in samples]) for i in range(options.seeds)]
    quiet = [s[0] for s in seconds]
    return {
        "seconds": seconds,
        "apart": (max(quiet) - min(quiet)) / statistics.median(quiet),
        "alike": statistics.mean(max(p) <= (1 + ASKED) * min(p) for p in combinations(quiet, 2)),
        "plans": [s.plan for s in studies],
        "schedules": [s.schedule for s in studies],
        "distinguishable": [s.distinguishable for s in studies],
        "events": [s.events for s in studies],
    }


def line(key: str, row: dict[str, Any]) -> str:
    if "error" in row:
        return f"{key}: {row['error']}"
    verdict = "as asked" if row["apart"] <= ASKED else "missed"
    told = f"{key}: the seeds' kernels lie {row['apart']:.1%} apart (asked {ASKED:.0%}): {verdict}"
    return f"{told}; {row['alike']:.0%} of the pairs are within it"


def kept(path: Path) -> dict[str, Any]:
    """Rows of an earlier run on this machine with this version, but for those that failed."""
    if not path.exists():
        return {}
    data = json.loads(path.read_text(encoding="utf-8"))
    if data["machine"] != machine():
        raise SystemExit(f"{path} is of another machine or version: give another --json")
    return {key: row for key, row in data["rows"].items() if "error" not in row}


if __name__ == "__main__":
    raise SystemExit(main())
