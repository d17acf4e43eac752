"""How often 95 % intervals hold the truth: by simulation, on the differences of strategies that were really found.

    python -m benchmarks.coverage                # a few minutes; --samples 300 for a first look
    python -m benchmarks.coverage --markdown     # what is kept, as docs/research.md has it

The runs of `benchmarks/results/search.json` are the world: a pair of strategies, and of each space the differences of
performance of 50 seeds. Of a world the true mean is known; samples are drawn from it as an experiment draws seeds and
spaces, and the share of samples is counted whose interval holds that mean. `percentile` is the plain bootstrap.
Samples whose seeds are all alike have no interval and are left out. The method was chosen with this world in view, so
distributions that have nothing to do with it are beside it, harder ones among them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from autosched.report import statistics
from autosched.report.statistics import Floats
from autosched.report.text import aligned
from benchmarks.common.provenance import INTERVALS, made, said
from benchmarks.common.search_table import Kept
from benchmarks.cpu import RESULTS
from benchmarks.search import read

SCHEMA = "autosched/coverage/1"
PAIRS = (
    ("auto", "random"), ("evolutionary", "genetic"), ("ils", "random"), ("bayesian", "kt-genetic"),
    ("kt-greedy-ils", "optuna-tpe"), ("auto", "evolutionary"), ("annealing", "constrained"),
)  # fmt: skip
SEEDS = (5, 10, 20)
SPACES = (3, 6, 9, 12)
DISTRIBUTIONS: dict[str, tuple[Callable[[np.random.Generator, int], Floats], float]] = {
    "normal": (lambda rng, n: rng.normal(size=n), 0.0),
    "exponential": (lambda rng, n: rng.exponential(size=n), 1.0),
    "log-normal": (lambda rng, n: rng.lognormal(size=n), float(np.exp(0.5))),
    "one of ten far off": (lambda rng, n: rng.normal(0, 0.05, n) + (rng.random(n) < 0.1), 0.1),
}
"""What seeds may be drawn from, with its mean."""
World = list[Floats]
"""Of a pair of strategies, the differences of all seeds by space."""


def worlds(kept: Kept) -> list[World]:
    """One for each pair."""
    return [
        [np.array([s.runs[a][i].performance - s.runs[b][i].performance for i in s.common]) for s in kept.values()]
        for a, b in PAIRS
    ]


def one_space(all_worlds: Sequence[World], seeds: int, samples: int, rng: np.random.Generator) -> dict[str, float]:
    """Of samples of so many seeds of one space: the share of intervals that hold the mean, or the median, of all."""
    held: dict[str, list[bool]] = {"mean": [], "percentile": [], "median": []}
    while len(held["mean"]) < samples:
        world = all_worlds[rng.integers(len(all_worlds))]
        truth = world[rng.integers(len(world))]
        drawn = rng.choice(truth, seeds)
        if np.ptp(drawn) == 0:
            continue  # no interval is given
        found = statistics.estimate([drawn], rng)
        held["mean"].append(found.low <= truth.mean() <= found.high)
        held["percentile"].append(_percentile([drawn], truth.mean(), rng))
        _, low, high = statistics.median_curve(drawn[:, None])
        held["median"].append(bool(low[0] <= np.median(truth) <= high[0]))
    return {name: round(float(np.mean(h)), 3) for name, h in held.items()}


def drawn_from(name: str, seeds: int, samples: int, rng: np.random.Generator) -> dict[str, float]:
    """As `one_space`, of a distribution."""
    draw, truth = DISTRIBUTIONS[name]
    held: dict[str, list[bool]] = {"mean": [], "percentile": []}
    for _ in range(samples):
        drawn = draw(rng, seeds)
        found = statistics.estimate([drawn], rng)
        held["mean"].append(found.low <= truth <= found.high)
        held["percentile"].append(_percentile([drawn], truth, rng))
    return {name: round(float(np.mean(h)), 3) for name, h in held.items()}


def several_spaces(
    all_worlds: Sequence[World], spaces: int, seeds: int, samples: int, rng: np.random.Generator
) -> dict[str, float]:
    """As `one_space`, of the mean over spaces. `seeds only` is over seeds alone, as if there were no other spaces."""
    held: dict[str, list[bool]] = {"mean": [], "percentile": [], "seeds only": []}
    for _ in range(samples):
        world = all_worlds[rng.integers(len(all_worlds))]
        truth = float(np.mean([space.mean() for space in world]))
        drawn = [rng.choice(world[rng.integers(len(world))], seeds) for _ in range(spaces)]
        found = statistics.estimate(drawn, rng)
        held["mean"].append(found.low <= truth <= found.high)
        held["percentile"].append(_percentile(drawn, truth, rng))
        over = statistics.estimate([np.mean(drawn, axis=0)], rng)
        held["seeds only"].append(over.low <= truth <= over.high)
    return {name: round(float(np.mean(h)), 3) for name, h in held.items()}


def _percentile(drawn: Sequence[Floats], truth: float, rng: np.random.Generator) -> bool:
    """Whether the plain percentile bootstrap over seeds (and spaces, where there are several) holds it."""
    count, seeds = len(drawn), len(drawn[0])
    at = rng.integers(0, count, (statistics.RESAMPLES, count))
    means = np.array(drawn)[at[:, :, None], rng.integers(0, seeds, (*at.shape, seeds))].mean(axis=(1, 2))
    low, high = np.quantile(means, [0.025, 0.975])
    return bool(low <= truth <= high)


def simulated(samples: int, seed: int, tell: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    rng, kept = np.random.default_rng(seed), read(RESULTS / "search.json")
    world = worlds(kept)
    found: dict[str, Any] = {"schema": SCHEMA, "samples": samples, "seed": seed, "one": {}, "several": {}}
    found["drawn"] = drawn(samples, seed)
    for seeds in SEEDS:
        found["one"][str(seeds)] = one_space(world, seeds, samples, rng)
        tell(f"one space, {seeds} seeds")
    for spaces in SPACES:
        for seeds in SEEDS:
            found["several"][f"{spaces} x {seeds}"] = several_spaces(world, spaces, seeds, samples, rng)
        tell(f"{spaces} spaces")
    return found


def drawn(samples: int, seed: int) -> dict[str, dict[str, float]]:
    """Of all distributions, with a generator of their own."""
    rng = np.random.default_rng([seed, 1])
    return {f"{name} x {seeds}": drawn_from(name, seeds, samples, rng) for name in DISTRIBUTIONS for seeds in SEEDS}


def rows_of(found: dict[str, Any]) -> list[list[str]]:
    """The table: percent of intervals that hold the truth."""
    head = ["", "mean", "median", "percentile bootstrap", "seeds only"]
    rows = [head]
    for seeds, held in found["one"].items():
        rows.append([f"1 space, {seeds} seeds", *(_percent(held.get(name)) for name in _COLUMNS)])
    for label, held in found["drawn"].items():
        name, _, seeds = label.rpartition(" x ")
        rows.append([f"{name}, {seeds} seeds", *(_percent(held.get(column)) for column in _COLUMNS)])
    for label, held in found["several"].items():
        spaces, _, seeds = label.split()
        rows.append([f"{spaces} spaces, {seeds} seeds", *(_percent(held.get(name)) for name in _COLUMNS)])
    return rows


_COLUMNS = ("mean", "median", "percentile", "seeds only")


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share * 100:.1f}"


def markdown(found: dict[str, Any]) -> str:
    head, *rows = rows_of(found)
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *rows])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, default=RESULTS / "coverage.json")
    parser.add_argument("--markdown", action="store_true", help="simulate nothing, print the table of docs/research.md")
    options = parser.parse_args(arguments)
    if options.markdown:
        kept = json.loads(options.json.read_text())
        print(f"{markdown(kept)}\n\n{said(kept, INTERVALS)}")
        return 0
    found = simulated(options.samples, options.seed, lambda text: print(text, file=sys.stderr, flush=True))
    found["made"] = made(INTERVALS)
    options.json.write_text(json.dumps(found, indent=1) + "\n")
    print(aligned(rows_of(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
