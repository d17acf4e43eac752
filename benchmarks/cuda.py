"""The GPU benchmark, in one command where a GPU is, or in three where it is elsewhere.

    python -m benchmarks.cuda all --only 'squares/*' --out results.json        # rounds of tuning, then libraries
    python -m benchmarks.cuda prepare --trials 64 -o bundle.bin                # needs no GPU
    python -m benchmarks.cuda run bundle.bin -o recorded.bin --limit 300       # on the GPU: numpy and cuda-bindings
    python -m benchmarks.cuda merge bundle.bin recorded.bin --out results.json # back here; learn, and prepare the next
    python -m benchmarks.cuda table results.json                            # as docs/cuda.md has it; or the kept ones
"""

from __future__ import annotations

import argparse
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

STORE = "cuda_benchmark.db"
KEPT = Path(__file__).parent / "results" / "cuda.json"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("all", "prepare", "run", "merge", "list", "table"))
    parser.add_argument("files", nargs="*", type=Path, help="the bundle, then its recordings; for a table: results")
    parser.add_argument("-o", "--output", type=Path, help="what prepare and run write")
    parser.add_argument("--out", type=Path, help="results as JSON")
    parser.add_argument("--only", action="append", default=[], metavar="GLOB", help="cases, as in squares/bf16/*")
    parser.add_argument("--store", default=STORE, help="the studies")
    parser.add_argument("--trials", type=int, default=64, help="proposals of each study")
    parser.add_argument("--batch", type=int, default=16, help="candidates between two lots of news (all)")
    parser.add_argument("--random", type=int, default=0, help="uniform rows of each case beside them")
    parser.add_argument("--limit", type=float, default=540.0, help="seconds on the GPU after which no case begins")
    parser.add_argument("--no-peers", action="store_true", help="measure candidates alone")
    given = parser.parse_args(arguments)
    match given.command:
        case "list":
            print("\n".join(c.name for c in _cases(given.only)))
        case "table":
            _table(given)
        case "prepare":
            _prepare(given, given.output or Path("bundle.bin"))
        case "run":
            _run(given, given.files[0], given.output or Path("recorded.bin"))
        case "merge":
            _merge(given, given.files[0], given.files[1:])
        case "all":
            _all(given, given.output or Path("recorded.bin"))


def _say(text: str) -> None:
    print(text, flush=True)


def _cases(only: list[str]) -> list[Any]:
    from benchmarks.gpu.cases import all_cases
    from benchmarks.gpu.chains import chain_cases
    from benchmarks.gpu.rows import row_cases

    every = (*all_cases(), *row_cases(), *chain_cases())
    found = [c for c in every if not only or any(fnmatch(c.name, g) for g in only)]
    if not found:
        sys.exit(f"no case is called {' or '.join(only)}")
    return found


def _table(given: argparse.Namespace) -> None:
    from benchmarks.gpu.table import results, table

    cases = [c for path in given.files or [KEPT] for c in results(path)]
    print(table(c for c in cases if not given.only or any(fnmatch(c["name"], g) for g in given.only)))


def _prepare(given: argparse.Namespace, output: Path) -> None:
    from autosched.store.sqlite import SqliteStore
    from benchmarks.gpu.bundle import save
    from benchmarks.gpu.prepare import prepare

    with SqliteStore(given.store) as store:
        bundle = prepare(_cases(given.only), store, given.trials, given.random, say=print)
    save(output, bundle)
    entries = sum(len(p.entries) for p in bundle.problems)
    print(f"{output}: {entries:,} candidates of {len(bundle.problems)} cases, {output.stat().st_size / 2**20:.1f} MiB")


def _run(given: argparse.Namespace, bundle: Path, output: Path) -> None:
    from benchmarks.gpu.bundle import load
    from benchmarks.gpu.run import run

    run(load(bundle), output, given.limit, _say, not given.no_peers)


def _all(given: argparse.Namespace, output: Path) -> None:
    from benchmarks.gpu.bundle import load
    from benchmarks.gpu.report import as_text, write_results
    from benchmarks.gpu.tune import tune

    tune(_cases(given.only), given.store, given.trials, given.batch, output, given.limit, _say)
    for bundle, recorded in load(output):
        if given.out is not None:
            write_results(given.out, bundle, [recorded])
    print(as_text([(b.problems[0], r) for b, r in load(output)]))


def _merge(given: argparse.Namespace, bundle: Path, recorded: list[Path]) -> None:
    from autosched.store.sqlite import SqliteStore
    from benchmarks.gpu.bundle import load
    from benchmarks.gpu.merge import merge
    from benchmarks.gpu.report import as_text, write_results

    cases = _cases(given.only)
    with SqliteStore(given.store) as store:
        for path in recorded:
            found = load(path)
            for name, count in merge(load(bundle), found, cases, store).items():
                print(f"{name}: {count} new trials")
            if given.out is not None:
                write_results(given.out, load(bundle), found)
            problems = {p.name: p for p in load(bundle).problems}
            print(as_text([(problems[r.name], r) for r in found]))


if __name__ == "__main__":
    main()
