"""What a search costs: candidates a second, when 95 % of the final speed was there, and where the time went.

    python -m benchmarks.search_cost                      # a minute or two on a quiet machine
    python -m benchmarks.search_cost --only gemm/f32/512x512x512 --trials 64

Each case is tuned in a fresh process. Its rate counts everything from the call of `tune` on: matching, laying out and
scoring the spaces, the oracle, builds, checks, timing, model fits, the final round. Measuring the machine itself
happens once a machine, and stands by itself, as does the interpreter's start.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.common.suite import CASES, Case
from benchmarks.common.tuning import Request, Tuned, tune
from benchmarks.cpu import RESULTS, machine

DEFAULT = (
    "gemm/f32/256x256x256", "gemm/f32/512x512x512", "gemm/u8s8/512x512x512", "gemm/u8s8/1024x1024x1024",
    "conv/f32/nhwc/rn50_56_3x3_64", "conv/int8/nhwc/rn50_28_3x3_128",
)  # fmt: skip
SHARE = 0.95
RATE = 20.0
LIMITS = {"gemm": (16, 3.0), "conv": (32, 10.0)}
"""By group, what is asked: trials and seconds until SHARE of the final speed is reached."""
SHORT_S = 2e-3
"""The rate is asked of kernels up to this long."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.search_cost", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--only", nargs="*", choices=[c.name for c in CASES], default=DEFAULT, metavar="CASE")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, default=RESULTS / "search_cost.json")
    options = parser.parse_args(arguments)
    rows: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="autosched-cost-") as folder:
        for number, case in enumerate(c for c in CASES if c.name in options.only):
            print(f"… {case.name}", file=sys.stderr, flush=True)
            store = str(Path(folder) / f"{number}.db")
            request = Request(case.workload, case.sizes, store, True, options.threads, options.trials, options.seed)
            tuned = tune(request)
            rows[case.name] = asdict(tuned) | {"rate": tuned.candidates_per_s, "reached": tuned.reached(SHARE)}
            print(line(case, tuned), flush=True)
    data = {"schema": "autosched/benchmarks/search_cost/1", "machine": machine(), "trials": options.trials,
            "threads": options.threads, "rows": rows}  # fmt: skip
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    print(f"written to {options.json}", file=sys.stderr)
    return 0


def line(case: Case, tuned: Tuned) -> str:
    """Two lines: rate and convergence with what is asked, and the split of the wall time."""
    if not tuned.study:
        return f"{case.name}: {tuned.error}"
    reached, (trials, seconds) = tuned.reached(SHARE), LIMITS.get(case.group, (0, 0.0))
    short = (tuned.best_s or 0.0) <= SHORT_S
    rate = f"{tuned.candidates_per_s:.1f} candidates/s" + (f" (asked {RATE:.0f})" if short else "")
    when = f"{SHARE:.0%} of the final speed after {reached[0]} trials, {reached[1]:.1f} s" if reached else "no time"
    asked = f" (asked {trials}, {seconds:.0f} s)" if trials else ""
    outside = {"interpreter and imports": tuned.wall_s - tuned.seconds["total"] - tuned.seconds["target"]}
    split = {k: v for k, v in tuned.seconds.items() if k != "total" and v >= 0.05} | outside
    spent = ", ".join(f"{k} {v:.1f}" for k, v in split.items())
    return f"{case.name}: {rate}; {when}{asked}\n  {tuned.wall_s:.1f} s in all: {spent}"


if __name__ == "__main__":
    raise SystemExit(main())
