"""Strategies side by side on recorded spaces, our own and those that others measured whole.

    python -m benchmarks.search                              # 50 seeds of 256 trials: hours of one core
    python -m benchmarks.search --seeds 10 --trials 64 --spaces gemm_f32_512 --strategies auto random
    python -m benchmarks.search --more FILE FOLDER…          # and these (caches, T4 results, recordings)
    python -m benchmarks.search --only-table                 # what is kept
    python -m benchmarks.search --first 25 --seeds 25 --limit 540 --json part.json      # a shard, anywhere
    python -m benchmarks.search --merge part.json …          # its runs join what is kept
    python -m benchmarks.search --replay 2                   # are they today's? two runs of each strategy
    python -m benchmarks.search --roofline --json out.json   # with a simpler clock than ours

Every strategy gets the same seeds. What is told is the regret (best so far / optimum - 1, median over seeds) after
some trials, and the performance: 0 random search, 1 optimum, the mean over all trials with its 95 % interval over
seeds. Runs are shared among `--jobs` processes of one thread each, seed by seed, and kept as they come: the same
command continues. Recordings of fewer than 1,024 rows take part where they are named.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from autosched.search.evaluate.landscape import Landscape
from autosched.search.evaluate.parallel_replay import Task, outcomes
from autosched.search.evaluate.simulate import has_clock_terms
from autosched.store.exchanged import read_any
from autosched.store.recorded_space import RecordedSpace
from benchmarks.common.budgets import budgets_markdown, known
from benchmarks.common.provenance import SEARCH, Made, made, replayed, said
from benchmarks.common.reached import reached_markdown
from benchmarks.common.roofline import with_roofline
from benchmarks.common.search_table import CHECKPOINTS, Kept, Space, markdown, overall, scored, text
from benchmarks.cpu import RESULTS
from benchmarks.record import FOLDER, ROWS

STRATEGIES = (
    "auto", "draft", "bayesian", "evolutionary", "evolutionary:throughput", "constrained", "genetic", "ils",
    "annealing", "beam", "clock", "random", "kt-genetic", "kt-greedy-ils", "optuna-tpe",
)  # fmt: skip
"""`evolutionary:throughput` has MetaSchedule's settings and a model of its kind, which knows no clock; `kt-…` are
Kernel Tuner's own."""
LEAST = 1024
"""Rows: of a smaller space 256 trials see too much."""
NEEDS_CLOCK = ("clock",)
_EVERY_S = 1.0  # between two writings of what is kept
IMPORTED = FOLDER / "imported"
SCHEMA, EARLIER = "autosched/search/3", "autosched/search/2"


def spaces(more: Sequence[Path] = ()) -> dict[str, Path]:
    """Name to file of every recorded space, and of `more`: files, and folders of them, in which a file in a folder is
    named after both (`gemm/A100.json.gz`: gemm_A100)."""
    ours = [FOLDER / f"{name}.json.gz" for name in ROWS]
    found = {_bare(f.name): f for f in ours}
    for place in (IMPORTED, *more):
        if not place.is_dir():
            found[_bare(place.name)] = place
            continue
        for f in sorted(place.rglob("*.json*")):
            name = _bare("_".join(f.relative_to(place).parts)).replace(" ", "_")
            if not name.endswith("_T4"):  # the hub has each of its spaces in a second format
                found[name] = f
    return found


def _as_recorded(recording: RecordedSpace) -> RecordedSpace:
    return recording


def _bare(name: str) -> str:
    return name.removesuffix(".gz").removesuffix(".json")


def open_space(recording: RecordedSpace, trials: int) -> Space:
    """What results on it depend on, and no results yet."""
    landscape = Landscape.of(recording)
    return Space(landscape.rows, has_clock_terms(recording), landscape.optimum_s, min(trials, landscape.rows))


def play(
    recordings: dict[str, RecordedSpace],
    strategies: Sequence[str],
    kept: Kept,
    seeds: range,
    jobs: int,
    path: Path,
    made: Made,
    limit_s: float | None = None,
) -> None:
    """Run what is missing in `kept`, all of a seed before the next one, and write it to `path` as it comes; nothing new
    is begun once `limit_s` seconds are over."""
    missing = [
        (seed, name, strategy)
        for seed in seeds
        for name, recording in recordings.items()
        for strategy in strategies
        if (strategy not in NEEDS_CLOCK or has_clock_terms(recording)) and seed not in kept[name].seeds(strategy)
    ]
    tasks = [Task(recordings[name], strategy, "xgb", kept[name].trials, seed) for seed, name, strategy in missing]
    landscapes = {name: Landscape.of(recording) for name, recording in recordings.items()}
    began = written = time.monotonic()
    try:
        for done, (number, found) in enumerate(outcomes(tasks, jobs), 1):
            seed, name, strategy = missing[number]
            kept[name].add(strategy, seed, scored(found.rows, kept[name].trials, landscapes[name]))
            now = time.monotonic()
            print(f"\r{done} of {len(missing)} runs, {now - began:.0f} s ", end="", file=sys.stderr)
            if now - written > _EVERY_S:
                write(path, kept, made)
                written = now
            if limit_s is not None and now - began > limit_s:
                break
    finally:
        print(file=sys.stderr)
        write(path, kept, made)


def merged(kept: Kept, other: Kept) -> Kept:
    """The runs of both. Of a space that they know differently (other rows, other trials) those of `other`."""
    found = dict(kept)
    for name, space in other.items():
        mine = found[name].runs if name in found and found[name].like(space) else {}
        runs = {s: {**mine.get(s, {}), **space.runs.get(s, {})} for s in {**mine, **space.runs}}
        found[name] = replace(space, runs=runs)
    return found


def write(path: Path, kept: Kept, made: Made) -> None:
    """All at once, so that who interrupts loses nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    spaces = {n: s.plain() for n, s in kept.items()}
    data = {"schema": SCHEMA, "made": made, "spaces": spaces}
    beside = path.with_name(path.name + ".new")
    beside.write_text(json.dumps(data, separators=(",", ":")) + "\n")
    beside.replace(path)


def read(path: Path) -> Kept:
    """What was kept; nothing where there is no such file, or one of another kind."""
    data = json.loads(path.read_text()) if path.is_file() else {}
    known = data.get("schema") in (SCHEMA, EARLIER)
    return {n: Space.of(s) for n, s in data["spaces"].items()} if known else {}


def made_with(path: Path) -> Made:
    """What the results there say of the code that made them; where they hold nothing, that of today. Runs of several
    codes keep the word of the first, so that a page says that they are stale."""
    data = json.loads(path.read_text()) if path.is_file() else {}
    return data.get("made", {}) if data.get("spaces") else made(SEARCH)


def replay(
    recordings: dict[str, RecordedSpace], kept: Kept, each: int, jobs: int, seed: int = 0
) -> tuple[int, list[str]]:
    """Play `each` runs of every strategy again, drawn at random: how many these were, and which came out otherwise."""
    rng = np.random.default_rng(seed)
    runs: dict[str, list[tuple[str, int]]] = {}
    for name in recordings:
        for strategy, by_seed in kept[name].runs.items():
            runs.setdefault(strategy, []).extend((name, number) for number in by_seed)
    drawn = [(s, *of[i]) for s, of in sorted(runs.items()) for i in rng.permutation(len(of))[:each]]
    tasks = [Task(recordings[name], strategy, "xgb", kept[name].trials, number) for strategy, name, number in drawn]
    odd = []
    for place, found in outcomes(tasks, jobs):
        strategy, name, number = drawn[place]
        again = scored(found.rows, kept[name].trials, Landscape.of(recordings[name]))
        if again != kept[name].runs[strategy][number]:
            odd.append(f"{strategy} on {name}, seed {number}")
    return len(drawn), odd


def pages(kept: Kept) -> str:
    """The tables of budgets for the documentation, and what they say of the goal."""
    tables = [budgets_markdown(kept, clock) for clock in (True, False)]
    return "\n".join(filter(None, [*tables, reached_markdown(kept)]))


def stated(path: Path) -> str:
    """Of which code these results are, and whether it is today's: the line below their tables."""
    return said(json.loads(path.read_text()), SEARCH)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--spaces", nargs="*", metavar="NAME", help="of those in benchmarks/recorded and of --more")
    parser.add_argument("--more", nargs="*", type=Path, default=[], metavar="FILE|FOLDER")
    parser.add_argument("--strategies", nargs="*", metavar="NAME", default=STRATEGIES)
    parser.add_argument("--trials", type=int, default=CHECKPOINTS[-1])
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first of the seeds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, metavar="FILE", default=RESULTS / "search.json")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="begin nothing new after that")
    parser.add_argument("--merge", nargs="*", type=Path, metavar="FILE", help="take in these runs, run nothing")
    parser.add_argument("--forget", nargs="*", metavar="STRATEGY", default=(), help="drop its runs first")
    parser.add_argument("--replay", type=int, metavar="N", help="play N runs of each strategy again: are they today's?")
    parser.add_argument("--roofline", action="store_true", help="with a clock of computing and memory alone")
    parser.add_argument("--fresh", action="store_true", help="forget what is kept")
    parser.add_argument("--only-table", action="store_true", help="run nothing")
    parser.add_argument("--markdown", action="store_true", help="run nothing, print the tables of docs/benchmarks.md")
    options = parser.parse_args(arguments)
    here = spaces(options.more)
    if options.roofline and options.json == RESULTS / "search.json":
        parser.error("--roofline wants a --json of its own: runs with the two clocks are different runs")
    clocked = with_roofline if options.roofline else _as_recorded
    unknown = sorted(set(options.spaces or ()) - set(here))
    if unknown or not here:
        parser.error(f"no space {', '.join(unknown)}; here are: {', '.join(here) or 'none'}")
    kept = {} if options.fresh else read(options.json)
    code = made(SEARCH) if options.fresh else made_with(options.json)
    for space in kept.values():
        for strategy in options.forget:
            space.runs.pop(strategy, None)
    if options.merge:
        for path in options.merge:
            kept = merged(kept, read(path))
        write(options.json, kept, code)
    elif options.replay:
        chosen = {name: clocked(read_any(here[name])) for name in kept}
        count, odd = replay(chosen, kept, options.replay, options.jobs)
        print(f"{count} runs played again, {len(odd)} otherwise{''.join(f'; {one}' for one in odd)}")
        write(options.json, kept, replayed(code, SEARCH, count, odd))
        return 1 if odd else 0
    elif not (options.only_table or options.markdown):
        wanted = {name: path for name, path in here.items() if not options.spaces or name in options.spaces}
        chosen = {name: clocked(read_any(path)) for name, path in wanted.items()}
        chosen = {name: r for name, r in chosen.items() if options.spaces or len(r) >= LEAST}
        for name, recording in chosen.items():
            fresh = open_space(recording, options.trials)
            kept[name] = kept[name] if name in kept and kept[name].like(fresh) else fresh
        seeds = range(options.first, options.first + options.seeds)
        play(chosen, options.strategies, kept, seeds, options.jobs, options.json, code, options.limit)
    if options.markdown:
        budgets = known(kept)[0] or known(kept, True)[0]
        print(pages(kept) if budgets else f"{markdown(kept)}\n{reached_markdown(kept)}")
        print(stated(options.json))
        return 0
    for name, space in kept.items():
        if not options.spaces or name in options.spaces:
            print(text(name, space))
    print(overall(kept))
    return 0


if __name__ == "__main__":
    sys.exit(main())
