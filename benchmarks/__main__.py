"""One command: tune each case, then time ours, the peers and the machine's peak in one interleaved run.

    python -m benchmarks                      # every case, one and two threads; results in benchmarks.json
    python -m benchmarks --only matmul_f32 --threads 1 -o results.json

Peers other than numpy are optional: `pip install 'autosched[bench]'` adds PyTorch (oneDNN).
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path

from benchmarks.cases import CASES
from benchmarks.measure import CaseResult, run_case
from benchmarks.scoring import score_rows


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=sorted(CASES), help="cases (default: all)")
    parser.add_argument("--threads", nargs="*", type=int, default=[1, 2], help="thread counts (default: 1 2)")
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=40, help="interleaved rounds of the final comparison")
    parser.add_argument("--no-scoring", action="store_true", help="skip the scoring of one million rows")
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks.json"))
    options = parser.parse_args()
    results: list[CaseResult] = []
    for threads in options.threads:
        for name in options.only or CASES:
            print(f"tuning {name}, {threads} thread(s) …", file=sys.stderr, flush=True)
            results.append(run_case(CASES[name], threads, options.trials, options.rounds))
            print(results[-1].line(), flush=True)
    scoring = None if options.no_scoring else score_rows()
    if scoring is not None:
        print(scoring.line(), flush=True)
    print("\n" + table(results))
    data = {
        "schema": "autosched/benchmarks/1",
        "machine": {"cpu": results[0].cpu if results else platform.processor(), "python": platform.python_version()},
        "cases": [r.to_json() for r in results],
        "scoring": scoring.to_json() if scoring else None,
    }
    options.output.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    print(f"written to {options.output}", file=sys.stderr)
    return 0


def table(results: list[CaseResult]) -> str:
    """The results as a Markdown table."""
    head = "| case | threads | ours | share of peak | vs peers | tuning | candidates/s |\n|---|---|---|---|---|---|---|"
    return "\n".join([head, *(r.row() for r in results)])


if __name__ == "__main__":
    raise SystemExit(main())
