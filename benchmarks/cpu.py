"""The tables: ours against libraries and against the machine's limits, after so many trials a shape.

    python -m benchmarks.cpu                              # everything, hours; the same command continues
    python -m benchmarks.cpu --only 'gemm/f32/*' --threads 1
    python -m benchmarks.cpu --quick                      # two shapes a series, few trials: does everything run?
    python -m benchmarks.cpu --merge FILE --code REV      # take its rows into what git keeps of the results
    python -m benchmarks.cpu --only-table                 # the docs' table of that

Results are kept after every row. Peers are optional: `pip install 'autosched[bench]'`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from autosched.machine.detect import cpu_model
from autosched.version import __version__
from benchmarks.common import kept as kept_results
from benchmarks.common.contest import Bout, compare
from benchmarks.common.suite import CASES, Case, quick
from benchmarks.common.tables import Row, row_key, summaries, table
from benchmarks.common.tuning import Request, tune

RESULTS = Path(__file__).parent / "results"
KEPT = RESULTS / "cpu_zen5.json"
QUICK_TRIALS, QUICK_ROUNDS = 8, 5


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cpu", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", default=["*"], metavar="GLOB", help="names of cases, as 'conv/f32/*'")
    parser.add_argument("--threads", default="1,2", help="thread counts (default: 1,2)")
    parser.add_argument("--trials", type=int, help="of each shape (default: 64)")
    parser.add_argument("--rounds", type=int, help="interleaved rounds of a comparison (default: 25)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tables", default="packed,plain", help="packed, plain or both (default)")
    parser.add_argument("--quick", action="store_true", help=f"two shapes a series, {QUICK_TRIALS} trials")
    parser.add_argument("--list", action="store_true", help="names of cases, and nothing else")
    parser.add_argument("--fresh", action="store_true", help="measure again what the file already holds")
    parser.add_argument("--store", help="keep the studies in this file (default: nowhere)")
    parser.add_argument("--json", type=Path, help="results (default: benchmarks/results/cpu.json, or cpu-quick.json)")
    parser.add_argument("--merge", type=Path, help="results whose rows are taken into --kept; nothing is measured")
    parser.add_argument("--code", default="", help="the revision that --merge's results were measured with")
    parser.add_argument("--only-table", action="store_true", help="print the series of --kept; nothing is measured")
    parser.add_argument("--kept", type=Path, default=KEPT, help=f"kept results, also by name (default: {KEPT.name})")
    options = parser.parse_args(arguments)
    if options.merge or options.only_table:
        file = options.kept if options.kept.exists() or options.kept.parent != Path() else RESULTS / options.kept
        return show_kept(file, options.merge, options.code)
    cases = [c for c in CASES if any(fnmatch(c.name, glob) for glob in options.only)]
    cases = list(quick(tuple(cases))) if options.quick else cases
    if options.list:
        print("\n".join(c.name for c in cases))
        return 0
    if not cases:
        parser.error(f"no case fits {' '.join(options.only)}; --list shows their names")
    options.trials = options.trials or (QUICK_TRIALS if options.quick else 64)
    options.rounds = options.rounds or (QUICK_ROUNDS if options.quick else 25)
    path = options.json or RESULTS / ("cpu-quick.json" if options.quick else "cpu.json")
    rows = {} if options.fresh else kept(path, options.trials)
    with tempfile.TemporaryDirectory(prefix="autosched-bench-") as folder:
        store = options.store or str(Path(folder) / "studies.db")
        for threads, packed, case in planned(cases, options):
            key = row_key(case, threads, packed)
            if key in rows:
                continue
            print(f"… {key}", file=sys.stderr, flush=True)
            rows[key] = run_case(case, threads, packed, store, options)
            print(rows[key].line(), flush=True)
            write(path, list(rows.values()), options)
    chosen = [r for r in rows.values() if any(r.case.name == c.name for c in cases)]
    for packed in (True, False):
        shown = [r for r in chosen if r.packed == packed]
        if shown:
            print(f"\n{'Constants packed before' if packed else 'Nothing packed before'}\n\n{table(shown)}\n")
            print("\n".join(s.line() for s in summaries(shown)))
    print(f"written to {path}", file=sys.stderr)
    return 0


def show_kept(path: Path, merge: Path | None, code: str) -> int:
    """Take results into what is kept at `path`, if any, and print its series."""
    data = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    if merge is not None:
        data = kept_results.merged(data, json.loads(merge.read_text(encoding="utf-8")), code)
        kept_results.write(path, data)
    if data is None:
        raise SystemExit(f"{path} is not there; --merge makes it")
    rows = kept_results.rows_of(data)
    for packed, threads in sorted({(r.packed, r.threads) for r in rows}, key=lambda kind: (not kind[0], kind[1])):
        print(f"\n{'Packed' if packed else 'Nothing packed'}, {threads} thread{'s' if threads > 1 else ''}\n")
        print(kept_results.series_table([r for r in rows if (r.packed, r.threads) == (packed, threads)]))
    print(f"\n{kept_results.codes(data)}")
    return 0


def planned(cases: Iterable[Case], options: Any) -> Iterable[tuple[int, bool, Case]]:
    cases = list(cases)
    for packed in (True, False):
        if ("packed" if packed else "plain") not in options.tables.split(","):
            continue
        for threads in map(int, options.threads.split(",")):
            for case in cases:
                if packed or case.plain:
                    yield threads, packed, case


def run_case(case: Case, threads: int, packed: bool, store: str, options: Any) -> Row:
    """Tune, then compare; whatever fails is a row with an error."""
    request = Request(case.workload, case.sizes, store, packed, threads, options.trials, options.seed)
    tuned = tune(request)
    if not tuned.study:
        return Row(case, threads, packed, tuned, None, tuned.error)
    found = compare(Bout(store, tuned.study, packed, threads, options.rounds))
    if isinstance(found, str):
        return Row(case, threads, packed, tuned, None, found)
    return Row(case, threads, packed, tuned, found, tuned.error)


def kept(path: Path, trials: int) -> dict[str, Row]:
    """Rows of an earlier run of this version on this machine with as many trials, but for those that failed."""
    if not path.exists():
        return {}
    data = json.loads(path.read_text(encoding="utf-8"))
    if data["machine"] != machine() or data["trials"] != trials:
        raise SystemExit(f"{path} is of another machine, version or number of trials: --fresh, or another --json")
    rows = [Row.from_json(r) for r in data["rows"]]
    return {r.key: r for r in rows if r.outcome is not None}


def write(path: Path, rows: list[Row], options: Any) -> None:
    """All rows so far, in one step: an interrupted run leaves a whole file."""
    versions = next((r.outcome.versions for r in reversed(rows) if r.outcome), {})
    data = {
        "schema": "autosched/benchmarks/cpu/1",
        "machine": machine(),
        "versions": versions,
        "trials": options.trials,
        "rounds": options.rounds,
        "summaries": [asdict(s) for s in summaries(rows)],
        "rows": [r.to_json() for r in rows],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    os.replace(beside, path)


def machine() -> dict[str, str]:
    return {"cpu": cpu_model(), "python": platform.python_version(), "autosched": __version__}


if __name__ == "__main__":
    raise SystemExit(main())
