"""What `benchmarks.search` keeps of its runs, and the tables of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from autosched.report import statistics
from autosched.report.differences import StrategyDifference, differences, family
from autosched.report.performance import scaled
from autosched.report.statistics import Interval, spanned
from autosched.report.text import aligned
from autosched.search.evaluate.compare import Row
from autosched.search.evaluate.landscape import Landscape

CHECKPOINTS = (16, 32, 64, 150, 256)
EARLIER = (16, 32, 64, 256)
"""Those of results that do not state theirs."""
_DIGITS = 4


@dataclass(frozen=True)
class Score:
    """Of one run: the regret at each checkpoint within the budget, the performance over all trials, and up to each
    checkpoint (absent in earlier results)."""

    regret: tuple[float, ...]
    performance: float
    until: tuple[float, ...] = ()


@dataclass
class Space:
    """A recorded space and the scores of its runs, by strategy and seed."""

    rows: int
    clock: bool
    optimum_s: float
    trials: int
    runs: dict[str, dict[int, Score]] = field(default_factory=dict)
    all_checkpoints: tuple[int, ...] = CHECKPOINTS

    def like(self, other: Space) -> bool:
        """Whether runs on one are runs on the other."""
        same = (self.rows, self.clock, self.trials) == (other.rows, other.clock, other.trials)
        same &= self.checkpoints == other.checkpoints
        return same and bool(np.isclose(self.optimum_s, other.optimum_s))

    def seeds(self, strategy: str) -> set[int]:
        return set(self.runs.get(strategy, ()))

    def add(self, strategy: str, seed: int, score: Score) -> None:
        self.runs.setdefault(strategy, {})[seed] = score

    @property
    def checkpoints(self) -> tuple[int, ...]:
        return tuple(n for n in self.all_checkpoints if n <= self.trials)

    @property
    def common(self) -> list[int]:
        """Seeds that all strategies have run with."""
        return sorted(set.intersection(*(set(r) for r in self.runs.values()))) if self.runs else []

    def scores(self, strategy: str) -> list[Score]:
        """Of the seeds that all strategies have."""
        return [self.runs[strategy][seed] for seed in self.common]

    def plain(self) -> dict[str, Any]:
        """As JSON: for each strategy a list of [seed, performance, regrets…, performances up to each checkpoint…]."""
        runs = {
            name: [[seed, score.performance, *score.regret, *score.until] for seed, score in sorted(by_seed.items())]
            for name, by_seed in self.runs.items()
        }
        head = {"rows": self.rows, "clock": self.clock, "optimum_s": self.optimum_s, "trials": self.trials}
        return {**head, "checkpoints": list(self.all_checkpoints), "runs": runs}

    @staticmethod
    def of(data: Mapping[str, Any]) -> Space:
        checkpoints = tuple(data.get("checkpoints", EARLIER))
        end = 2 + sum(n <= data["trials"] for n in checkpoints)
        runs = {
            name: {int(r[0]): Score(tuple(r[2:end]), r[1], tuple(r[end:])) for r in rows}
            for name, rows in data["runs"].items()
        }
        return Space(data["rows"], data["clock"], data["optimum_s"], data["trials"], runs, checkpoints)


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
    until = tuple(round(float(curve[:n].mean()), _DIGITS) for n in CHECKPOINTS if n <= trials)
    return Score(at, round(float(curve.mean()), _DIGITS), until)


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
    its performance over them: each space counts alike, intervals are over spaces and seeds. The best comes first."""
    some = {name: s for name, s in kept.items() if s.clock == clock and s.common}
    if not some:
        return [], [], {}
    seeds = sorted(set.intersection(*(set(s.common) for s in some.values())))
    found = {}
    for strategy in set.intersection(*(set(s.runs) for s in some.values())) if seeds else ():
        each = [[s.runs[strategy][seed].performance for seed in seeds] for s in some.values()]
        found[strategy] = statistics.estimate(each, np.random.default_rng(0)).interval.within(most=1.0)
    return list(some), seeds, dict(sorted(found.items(), key=lambda item: -item[1].value))


def against(kept: Kept, clock: bool, baseline: str = "auto") -> tuple[StrategyDifference, ...]:
    """The differences of all strategies from the baseline over these spaces, one family of tests."""
    names, seeds, found = together(kept, clock)
    if baseline not in found:
        return ()
    scores = {s: [np.array([kept[n].runs[s][seed].performance for seed in seeds]) for n in names] for s in found}
    return differences(scores, baseline, "performance", 0)


def overall(kept: Kept) -> str:
    """Performances over all spaces with a clock, and over all without, and how far they are from `auto`'s."""
    parts = []
    for clock, said in ((True, "with"), (False, "without")):
        names, seeds, found = together(kept, clock)
        if names:
            rows = [["strategy", "performance"], *([strategy, _said(mean)] for strategy, mean in found.items())]
            lines = [f"{len(names)} spaces {said} a clock, {len(seeds)} seeds", aligned(rows)]
            compared = against(kept, clock)
            lines += [*map(str, compared), family(compared, "spaces and seeds")]
            parts.append("\n".join(line for line in lines if line) + "\n")
    return "\n".join(parts)


LABELS = {
    "evolutionary": "`evolutionary`, our model",
    "evolutionary:throughput": "MetaSchedule's settings, a model without a clock",
    "kt-genetic": "Kernel Tuner's genetic",
    "kt-greedy-ils": "Kernel Tuner's greedy ILS",
    "optuna-tpe": "Optuna's TPE",
}
SPACES = {
    "gemm_f32_512": "GEMM f32 512³",
    "conv_f32_28x28x128": "conv 28x28x128",
    "depthwise_f32_56x56x128": "depthwise 56x56x128",
    "h200_bf16_4096x4096x4096": "H200 bf16 4096³",
    "h200_bf16_256x7168x2048": "H200 bf16 256x7168x2048",
    "h200_f16_2048x2048x2048": "H200 f16 2048³",
    "convolution_A4000": "convolution A4000",
    "convolution_W6600": "convolution W6600",
    "dedispersion_A4000": "dedispersion A4000",
}


def markdown(kept: Kept) -> str:
    """Both tables for the documentation: performance over all spaces and what it is less than `auto`'s, then regrets in
    percent, space by space."""
    parts = []
    for clock in (True, False):
        names, seeds, found = together(kept, clock)
        if not found:
            continue
        after = " / ".join(map(str, kept[names[0]].checkpoints))
        columns = [SPACES.get(n, n) for n in names]
        head = [f"{'with' if clock else 'without'} a clock, {len(seeds)} seeds", f"all {len(names)}, performance"]
        lines = [[*head, "less `auto`'s", "p", f"{columns[0]}: after {after}", *columns[1:]]]
        less = {d.strategy: d for d in against(kept, clock)}
        for strategy, mean in found.items():
            regrets = [np.median([s.regret for s in kept[n].scores(strategy)], axis=0) * 100 for n in names]
            d = less.get(strategy)
            test = ["", ""] if d is None else [spanned(d.difference, "{:+.3f}".format), _p(d.p)]
            label = LABELS.get(strategy, f"`{strategy}`")
            lines.append([label, _said(mean), *test, *(" / ".join(map(_percent, each)) for each in regrets)])
        lines.insert(1, ["---"] * len(lines[0]))
        parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n")
    return "\n".join(parts)


def _p(p: float | None) -> str:
    return "" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"


def _said(mean: Interval) -> str:
    return spanned(mean, "{:.3f}".format)


def _percent(value: float) -> str:
    """Two digits, or whole numbers."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
