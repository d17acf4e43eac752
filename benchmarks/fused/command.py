"""Fused chains on the CPU: ours against PyTorch, against our own kernels apart, and against a roofline.

    python -m benchmarks.fused                                    # the small cases of every group, 16 trials
    python -m benchmarks.fused --only 'attention/*' --threads 1,2
    python -m benchmarks.fused --full --trials 64                 # every case: hours. The same command continues
    python -m benchmarks.fused --only-table --json FILE           # tables of results; nothing is measured

Results are kept after every row. Rows of other code, trials or rounds are measured again. PyTorch is optional:
`pip install 'autosched[bench]'`; without it its column says so.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from benchmarks.common.tuning import Request, Tuned, tune
from benchmarks.cpu import machine
from benchmarks.fused.cases import CASES, Case, Part
from benchmarks.fused.contest import Bout, compare
from benchmarks.fused.rows import Row, summaries, table

SCHEMA = "autosched/benchmarks/fused/1"
ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "fused.json"


def main(arguments: list[str] | None = None, known: Sequence[Case] = CASES) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fused", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--only", nargs="*", default=["*"], metavar="GLOB", help="names of cases, as 'attention/causal/*'"
    )
    parser.add_argument("--full", action="store_true", help="the large cases, too")
    parser.add_argument("--threads", default="1", help="thread counts, as 1,2 (default: 1)")
    parser.add_argument("--trials", type=int, default=16, help="of each program (default: 16)")
    parser.add_argument("--rounds", type=int, default=15, help="interleaved rounds of a comparison (default: 15)")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds after which no round begins (default: 60)")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds of tuning for a program (default: 300)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="names of cases, and nothing else")
    parser.add_argument("--fresh", action="store_true", help="measure again what the file already holds")
    parser.add_argument("--store", help="keep the studies in this file (default: nowhere)")
    parser.add_argument("--json", type=Path, default=RESULTS, metavar="FILE", help=f"results (default: {RESULTS.name})")
    parser.add_argument("--only-table", action="store_true", help="print the tables of --json; nothing is measured")
    options = parser.parse_args(arguments)
    fitting = [c for c in known if any(fnmatch(c.name, glob) for glob in options.only)]
    cases = [c for c in fitting if c.small or options.full]
    if options.list:
        print("\n".join(c.name for c in cases))
        return 0
    if not cases:
        large = f"; {len(fitting)} large cases do, with --full" if fitting else "; --list shows their names"
        parser.error(f"no case fits {' '.join(options.only)}{large}")
    rows = kept(options.json, anywhere=options.only_table)
    if not options.only_table:
        measure(cases, rows, options)
        print(f"written to {options.json}", file=sys.stderr)
    chosen = [r for r in rows.values() if any(r.case.name == c.name for c in cases)]
    for threads in sorted({r.threads for r in chosen}):
        held = [r for r in chosen if r.threads == threads]
        print(f"\n{threads} thread{'s' if threads > 1 else ''}\n\n{table(held)}\n")
        print("\n".join(summaries(held)))
    return 0


def measure(cases: Sequence[Case], rows: dict[str, Row], options: Any) -> None:
    """Fill in the rows of these cases that are missing, failed, or were measured with other code or settings."""
    code = revision()
    with tempfile.TemporaryDirectory(prefix="autosched-bench-") as folder:
        session = Session(options.store or str(Path(folder) / "studies.db"), code, options)
        for threads in map(int, options.threads.split(",")):
            for case in cases:
                key = f"{case.name} threads={threads}"
                if not options.fresh and session.holds(rows.get(key), case):
                    continue
                print(f"… {key}", file=sys.stderr, flush=True)
                rows[key] = session.row(case, threads)
                print(rows[key].line(), flush=True)
                write(options.json, list(rows.values()), options)


class Session:
    """Tunes programs, each once, and compares."""

    def __init__(self, store: str, code: str, options: Any) -> None:
        self.store, self.code, self.options = store, code, options
        self._tuned: dict[str, Tuned] = {}

    def holds(self, row: Row | None, case: Case) -> bool:
        """Whether an earlier run has measured this case just so: with the same code, all of it committed."""
        return (
            row is not None
            and row.outcome is not None
            and row.case == case
            and row.trials == self.options.trials
            and row.code == self.code
            and not self.code.endswith("+")
        )

    def row(self, case: Case, threads: int) -> Row:
        """Tune the chain and its parts, then compare; whatever fails is a row with an error."""
        before = os.getloadavg()[0]
        chain = self.tuned(Part(case.workload, case.sizes), threads)
        apart = {a.name: [self.tuned(p, threads) for p in a.parts] for a in case.apart}
        all_tuned = (chain, *(t for found in apart.values() for t in found))
        error, outcome = next((t.error for t in all_tuned if t.error), ""), None
        if all(t.study for t in all_tuned):
            studies = {name: [t.study for t in found] for name, found in apart.items()}
            options = self.options
            found = compare(Bout(case, self.store, chain.study, studies, threads, options.rounds, options.budget))
            error, outcome = (found, None) if isinstance(found, str) else (error, found)
        load = (round(before, 2), round(os.getloadavg()[0], 2))
        return Row(case, threads, self.options.trials, chain, outcome, self.code, load, error)

    def tuned(self, part: Part, threads: int) -> Tuned:
        options = self.options
        request = Request(part.workload, part.sizes, self.store, part.packed, threads, options.trials, options.seed,
                          options.timeout, part.path)  # fmt: skip
        key = repr(request)
        if key not in self._tuned:
            self._tuned[key] = tune(request)
        return self._tuned[key]


def revision() -> str:
    """Of the checkout, with a + where code is changed; empty where there is none."""
    git = ["git", "-C", str(ROOT)]
    head = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    if head.returncode != 0:
        return "+"
    code = ["autosched", "benchmarks", ":!benchmarks/results"]
    changed = subprocess.run([*git, "status", "--porcelain", "--", *code], capture_output=True, text=True, check=False)
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")


def kept(path: Path, anywhere: bool = False) -> dict[str, Row]:
    """Rows of earlier runs on this machine, or `anywhere`."""
    if not path.exists():
        return {}
    data = json.loads(path.read_text(encoding="utf-8"))
    if data["schema"] != SCHEMA or not (anywhere or data["machine"]["cpu"] == machine()["cpu"]):
        raise SystemExit(f"{path} is of another machine or benchmark: name another --json")
    rows = [Row.from_json(r) for r in data["rows"]]
    return {r.key: r for r in rows}


def write(path: Path, rows: list[Row], options: Any) -> None:
    """All rows so far, in one step: an interrupted run leaves a whole file."""
    versions = next((r.outcome.versions for r in reversed(rows) if r.outcome), {})
    about = {"schema": SCHEMA, "machine": machine(), "versions": versions, "rounds": options.rounds}
    lines = ",\n".join(json.dumps(r.to_json(), separators=(",", ":")) for r in rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text(f'{json.dumps(about, indent=1)[:-2]},\n "rows": [\n{lines}\n]}}\n', encoding="utf-8")
    os.replace(beside, path)


if __name__ == "__main__":
    raise SystemExit(main())
