"""Strategies side by side on recorded spaces, our own and those that others measured whole.

    python -m benchmarks.search                              # all recorded spaces: 50 seeds, 256 trials
    python -m benchmarks.search --seeds 10 --trials 64 --spaces gemm_f32_512 --strategies auto random
    python -m benchmarks.search --more FILE FOLDER…          # and these (caches, T4 results, recordings)

Every strategy gets the same seeds. What is told is the regret (best so far / optimum - 1, median over seeds) after
some trials, and the performance: 0 random search, 1 optimum, the mean over all trials with its 95 % interval over
seeds. Runs are shared among `--jobs` processes of one thread each.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from autosched.report import statistics
from autosched.report.comparison import Comparison
from autosched.report.text import aligned
from autosched.search.compare import Row, contestants
from autosched.search.landscape import Landscape
from autosched.search.simulate import all_strategies, has_clock, simulate
from autosched.store.exchanged import read_any

RECORDED = Path(__file__).with_name("recorded")
CHECKPOINTS = (16, 32, 64, 256)
_CHUNK = 5  # seeds of one task


@dataclass(frozen=True)
class Task:
    """Some runs of one strategy on one space."""

    path: str
    strategy: str
    trials: int
    seeds: tuple[int, ...]


def spaces(more: Sequence[Path] = ()) -> dict[str, Path]:
    """Name to file of every recorded space, and of `more`: files, and folders of them."""
    files = [f for p in (RECORDED, *more) for f in (sorted(p.glob("*.json*")) if p.is_dir() else [p])]
    return {f.name.removesuffix(".gz").removesuffix(".json"): f for f in files}


def play(task: Task) -> list[Row]:
    """The trials of a task's runs."""
    recording = read_any(task.path)
    return list(simulate(recording, contestants([task.strategy]), task.trials, task.seeds))


def compared(
    files: dict[str, Path], strategies: Sequence[str] | None, trials: int, seeds: int, jobs: int
) -> dict[str, Comparison]:
    """A comparison for each space, of all strategies that can search it where none are named."""
    recordings = {name: read_any(path) for name, path in files.items()}
    chosen = {n: [s for s in strategies or all_strategies(r) if s in all_strategies(r)] for n, r in recordings.items()}
    parts = [tuple(range(first, min(first + _CHUNK, seeds))) for first in range(0, seeds, _CHUNK)]
    budgets = {name: min(trials, len(r)) for name, r in recordings.items()}
    tasks = [(n, Task(str(files[n]), s, budgets[n], part)) for n in files for s in chosen[n] for part in parts]
    found: dict[str, list[Row]] = {name: [] for name in files}
    began, context = time.monotonic(), multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context) as pool:
        for done, ((name, _), rows) in enumerate(zip(tasks, pool.map(play, [t for _, t in tasks]), strict=True), 1):
            found[name] += rows
            print(f"\r{done} of {len(tasks)} tasks, {time.monotonic() - began:.0f} s ", end="", file=sys.stderr)
    print(file=sys.stderr)
    return {
        n: Comparison(
            n, "recorded", str(r.device.get("name", "")), tuple(chosen[n]), tuple(range(seeds)), budgets[n],
            tuple(found[n]), Landscape.of(r),
        )
        for n, r in recordings.items()
    }  # fmt: skip


def told(found: Comparison, clocked: bool) -> dict[str, Any]:
    """A space's results as plain values: for each strategy regrets at the checkpoints and the performance."""
    checkpoints = [n for n in CHECKPOINTS if n <= found.trials]
    rng = np.random.default_rng(0)
    assert found.landscape is not None
    assert found.performance is not None
    table = {}
    for name, curve in found.curves.items():
        regret = curve / found.landscape.optimum_s - 1
        scores = statistics.mean(found.performance.scores(name), rng)
        table[name] = {
            "regret": {n: float(np.median(regret[:, n - 1])) for n in checkpoints},
            "optimum": {n: float(np.mean(regret[:, n - 1] <= 0)) for n in checkpoints},
            "performance": [scores.value, scores.low, scores.high],
        }
    return {
        "rows": found.landscape.rows,
        "clock": clocked,
        "optimum_s": found.landscape.optimum_s,
        "trials": found.trials,
        "seeds": len(found.seeds),
        "strategies": table,
    }


def text(name: str, result: dict[str, Any]) -> str:
    """The table of one space, the best performance first."""
    clock = "with" if result["clock"] else "without"
    head = f"{name}: {result['rows']} rows, {clock} a clock, {result['seeds']} seeds of {result['trials']} trials"
    table = result["strategies"]
    checkpoints = list(next(iter(table.values()))["regret"])
    rows = [["strategy", *(f"regret at {n}" for n in checkpoints), "performance"]]
    for strategy in sorted(table, key=lambda s: -table[s]["performance"][0]):
        value, low, high = table[strategy]["performance"]
        regrets = (f"{table[strategy]['regret'][n]:.1%}" for n in checkpoints)
        rows.append([strategy, *regrets, f"{value:.3f} [{low:.3f}, {high:.3f}]"])
    return f"{head}\n{aligned(rows)}\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--spaces", nargs="*", metavar="NAME", help="of those in benchmarks/recorded and of --more")
    parser.add_argument("--more", nargs="*", type=Path, default=[], metavar="FILE|FOLDER")
    parser.add_argument("--strategies", nargs="*", metavar="NAME")
    parser.add_argument("--trials", type=int, default=256)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")  # the processes are the parallelism
    here = spaces(options.more)
    unknown = sorted(set(options.spaces or ()) - set(here))
    if unknown or not here:
        parser.error(f"no space {', '.join(unknown)}; here are: {', '.join(here) or 'none'}")
    files = {name: path for name, path in here.items() if not options.spaces or name in options.spaces}
    found = compared(files, options.strategies, options.trials, options.seeds, options.jobs)
    results = {name: told(c, has_clock(read_any(files[name]))) for name, c in found.items()}
    for name, result in results.items():
        print(text(name, result))
    if options.json:
        options.json.write_text(json.dumps({"schema": "autosched/search/1", "spaces": results}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
