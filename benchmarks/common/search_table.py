"""What `benchmarks.search` keeps of its runs, and the tables of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from autosched.report import statistics
from autosched.report.performance import scaled
from autosched.report.statistics import Interval
from autosched.report.text import aligned
from autosched.search.evaluate.compare import Row
from autosched.search.evaluate.landscape import Landscape

CHECKPOINTS = (16, 32, 64, 256)
_DIGITS = 4


@dataclass(frozen=True)
class Score:
    """Of one run: the regret at each checkpoint within the budget, and the performance over all trials."""

    regret: tuple[float, ...]
    performance: float


@dataclass
class Space:
    """A recorded space and the scores of its runs, by strategy and seed."""

    rows: int
    clock: bool
    optimum_s: float
    trials: int
    runs: dict[str, dict[int, Score]] = field(default_factory=dict)

    def like(self, other: Space) -> bool:
        """Whether runs on one are runs on the other."""
        same = (self.rows, self.clock, self.trials) == (other.rows, other.clock, other.trials)
        return same and bool(np.isclose(self.optimum_s, other.optimum_s))

    def seeds(self, strategy: str) -> set[int]:
        return set(self.runs.get(strategy, ()))

    def add(self, strategy: str, seed: int, score: Score) -> None:
        self.runs.setdefault(strategy, {})[seed] = score

    @property
    def checkpoints(self) -> tuple[int, ...]:
        return tuple(n for n in CHECKPOINTS if n <= self.trials)

    @property
    def common(self) -> list[int]:
        """Seeds that all strategies have run with."""
        return sorted(set.intersection(*(set(r) for r in self.runs.values()))) if self.runs else []

    def scores(self, strategy: str) -> list[Score]:
        """Of the seeds that all strategies have."""
        return [self.runs[strategy][seed] for seed in self.common]

    def plain(self) -> dict[str, Any]:
        """As JSON: for each strategy a list of [seed, performance, regrets…]."""
        runs = {
            name: [[seed, score.performance, *score.regret] for seed, score in sorted(by_seed.items())]
            for name, by_seed in self.runs.items()
        }
        head = {"rows": self.rows, "clock": self.clock, "optimum_s": self.optimum_s, "trials": self.trials}
        return {**head, "runs": runs}

    @staticmethod
    def of(data: Mapping[str, Any]) -> Space:
        runs = {n: {int(r[0]): Score(tuple(r[2:]), r[1]) for r in rows} for n, rows in data["runs"].items()}
        return Space(data["rows"], data["clock"], data["optimum_s"], data["trials"], runs)


Kept: TypeAlias = dict[str, Space]


def scored(rows: Sequence[Row], trials: int, landscape: Landscape) -> Score:
    """Of the trials of one run; one that ended early keeps its last best."""
    best = np.full(trials, np.inf)
    for row in rows:
        best[row.trial - 1 :] = np.inf if row.best_s is None else row.best_s
    expected = landscape.expected_s(np.arange(1, trials + 1))
    curve = scaled(best[None], expected, landscape)[0]
    regret = np.minimum(best, landscape.times_s[-1]) / landscape.optimum_s - 1
    at = tuple(round(float(regret[n - 1]), _DIGITS) for n in CHECKPOINTS if n <= trials)
    return Score(at, round(float(curve.mean()), _DIGITS))


def interval(scores: Sequence[Score]) -> Interval:
    """Mean performance with its 95 % interval over seeds."""
    return statistics.mean(np.array([s.performance for s in scores]), np.random.default_rng(0))


def text(name: str, space: Space) -> str:
    """The table of one space, the best performance first."""
    clock = "with" if space.clock else "without"
    head = f"{name}: {space.rows} rows, {clock} a clock, {len(space.common)} seeds of {space.trials} trials"
    if not space.common:
        return head + "\n"
    found = {strategy: interval(space.scores(strategy)) for strategy in space.runs}
    rows = [["strategy", *(f"regret at {n}" for n in space.checkpoints), "performance"]]
    for strategy in sorted(found, key=lambda s: -found[s].value):
        regrets = np.median([s.regret for s in space.scores(strategy)], axis=0)
        rows.append([strategy, *(f"{r:.1%}" for r in regrets), _said(found[strategy])])
    return f"{head}\n{aligned(rows)}\n"


def together(kept: Kept, clock: bool) -> tuple[list[str], list[int], dict[str, Interval]]:
    """Names of the spaces with a clock, or without; the seeds that all of them have; and of each strategy that all have
    its performance over them: each space counts alike, intervals are over seeds. The best comes first."""
    some = {name: s for name, s in kept.items() if s.clock == clock and s.common}
    if not some:
        return [], [], {}
    seeds = sorted(set.intersection(*(set(s.common) for s in some.values())))
    found = {}
    for strategy in set.intersection(*(set(s.runs) for s in some.values())) if seeds else ():
        each = [[s.runs[strategy][seed].performance for seed in seeds] for s in some.values()]
        found[strategy] = statistics.mean(np.array(each).mean(axis=0), np.random.default_rng(0))
    return list(some), seeds, dict(sorted(found.items(), key=lambda item: -item[1].value))


def overall(kept: Kept) -> str:
    """Performances over all spaces with a clock, and over all without."""
    parts = []
    for clock, said in ((True, "with"), (False, "without")):
        names, seeds, found = together(kept, clock)
        if names:
            rows = [["strategy", "performance"], *([strategy, _said(mean)] for strategy, mean in found.items())]
            parts.append(f"{len(names)} spaces {said} a clock, {len(seeds)} seeds\n{aligned(rows)}\n")
    return "\n".join(parts)


def markdown(kept: Kept) -> str:
    """Both tables for the documentation: performance over all spaces, then regrets in percent, space by space."""
    parts = []
    for clock in (True, False):
        names, seeds, found = together(kept, clock)
        if not found:
            continue
        after = " / ".join(map(str, kept[names[0]].checkpoints))
        head = [f"{'with' if clock else 'without'} a clock, {len(seeds)} seeds", f"all {len(names)}, performance"]
        lines = [[*head, f"{names[0]}: after {after}", *names[1:]]]
        for strategy, mean in found.items():
            regrets = [np.median([s.regret for s in kept[n].scores(strategy)], axis=0) * 100 for n in names]
            lines.append([f"`{strategy}`", _said(mean), *(" / ".join(map(_percent, each)) for each in regrets)])
        lines.insert(1, ["---"] * len(lines[0]))
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n")
    return "\n".join(parts)


def _said(mean: Interval) -> str:
    return f"{mean.value:.3f} [{mean.low:.3f}, {mean.high:.3f}]"


def _percent(value: float) -> str:
    """Two digits, or whole numbers."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
