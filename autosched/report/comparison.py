"""What strategies found with the same budget and seeds, as rows, a table, statistics and curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from autosched.errors import UnknownNameError, UsageError
from autosched.extras import needed
from autosched.report import statistics
from autosched.report.performance import Performance, performance
from autosched.report.statistics import Floats, Interval, spanned
from autosched.report.text import aligned, number, points, seconds
from autosched.search.evaluate.compare import Row
from autosched.search.evaluate.landscape import Landscape

_ENOUGH = 6  # pairs in which a sign test can reach p <= 0.05
_FEW = f"fewer than {_ENOUGH} seeds cannot show a difference (p <= 0.05), and their intervals are too narrow"


@dataclass(frozen=True)
class StrategySummary:
    """`best_s`: trials to the median over seeds of the best time so far, in seconds.

    `regret` is the mean over seeds and trials of 1 - fastest time of all / best time so far: 0 for a strategy that
    starts with the fastest candidate, 1 while nothing was found. `failed` is the share of trials that failed.
    `performance` is the mean over trials of the distance from random search (0) to the optimum (1), and
    `performance_of_time` the same over time; None where the space is not known whole, or not what rows cost.
    """

    strategy: str
    best_s: dict[int, Interval]
    regret: Interval
    failed: float
    performance: Interval | None = None
    performance_of_time: Interval | None = None


@dataclass(frozen=True)
class StrategyDifference:
    """A strategy less the baseline, paired by seed.

    `outcome` is `regret` (over the whole search) or `final` (1 - fastest of all / best after the last trial), of which
    less is better, or `performance`, of which more is.
    `superiority` is the probability that the strategy has the better of a pair, ties counting half; `p` the exact sign
    test's, corrected (Holm) for the number of strategies.
    """

    strategy: str
    baseline: str
    outcome: str
    difference: Interval
    superiority: float
    p: float


@dataclass(frozen=True)
class Summary:
    strategies: tuple[StrategySummary, ...]
    differences: tuple[StrategyDifference, ...]

    def __str__(self) -> str:
        checkpoints = list(self.strategies[0].best_s)
        known = [title for title, of in _PERFORMANCES if of(self.strategies[0]) is not None]
        head = ["strategy", *(f"best of {n}" for n in checkpoints), "regret", *known, "failed"]
        lines = [
            [
                s.strategy,
                *(spanned(s.best_s[n], seconds) for n in checkpoints),
                spanned(s.regret, points),
                *(spanned(i, number) for _, of in _PERFORMANCES if (i := of(s)) is not None),
                _share(s),
            ]
            for s in self.strategies
        ]
        text = aligned([head, *lines])
        for d in self.differences:
            gap = spanned(d.difference, (lambda x: f"{x:+.3f}") if d.outcome == "performance" else _signed)
            p = "p < 0.001" if d.p < 0.001 else f"p = {d.p:.3f}"
            text += f"\n{d.strategy} - {d.baseline}: {d.outcome} {gap}, better in {d.superiority:.0%} of pairs, {p}"
        return text


@dataclass(frozen=True)
class StrategyComparison:
    """All trials of all runs: `rows` in the order strategy, seed, trial (see `Row`); runs are paired by seed.

    `landscape` is there where the whole space is known: times of all its rows."""

    program: str
    target: str
    device: str
    strategies: tuple[str, ...]
    seeds: tuple[int, ...]
    trials: int
    rows: tuple[Row, ...]
    landscape: Landscape | None = None

    @property
    def frame(self) -> Any:
        """The rows as a pandas DataFrame, one row a trial. Raises MissingError without pandas (the extra `plots`)."""
        return needed("pandas", "plots", "table.frame").DataFrame(list(self.rows), columns=list(Row._fields))

    @property
    def best_s(self) -> float | None:
        """Seconds of the fastest candidate: of all where the space is known whole, else of those that any run found."""
        if self.landscape is not None:
            return self.landscape.optimum_s
        return min((r.time_s for r in self.rows if r.status == "ok" and r.time_s is not None), default=None)

    @cached_property
    def curves(self) -> dict[str, Floats]:
        """Best seconds so far by strategy, shape (seeds, trials); infinite until a candidate came out right. A run that
        exhausted its space keeps its last value."""
        found = {name: np.full((len(self.seeds), self.trials), np.inf) for name in self.strategies}
        place = {seed: i for i, seed in enumerate(self.seeds)}
        for row in self.rows:
            if row.best_s is not None:
                found[row.strategy][place[row.seed], row.trial - 1 :] = row.best_s
        return found

    @property
    def regrets(self) -> dict[str, Floats]:
        """1 - fastest of all / best so far, by strategy, shape (seeds, trials)."""
        best_s = self.best_s or 0.0
        return {name: 1 - best_s / curve for name, curve in self.curves.items()}

    @cached_property
    def performance(self) -> Performance | None:
        """Curves between random search (0) and the optimum (1); None where the space is not known whole."""
        if self.landscape is None:
            return None
        return performance(self.curves, self.rows, self.seeds, self.landscape)

    def summary(
        self, baseline: str | None = None, checkpoints: Sequence[int] | None = None, *, seed: int = 0
    ) -> Summary:
        """Medians at `checkpoints` (trials; default 4, 16, 64, … and the last), and differences from `baseline`
        (default: the first strategy), with 95 % bootstrap intervals over seeds drawn with `seed`.

        Raises UsageError for a checkpoint out of range, UnknownNameError for a baseline that did not take part.
        """
        chosen = list(checkpoints) if checkpoints is not None else _powers(self.trials)
        for n in chosen:
            if not 1 <= n <= self.trials:
                raise UsageError(f"checkpoint {n}: there were {self.trials} trials", hint=f"1 to {self.trials}")
        first = self.strategies[0] if baseline is None else baseline
        if first not in self.strategies:
            raise UnknownNameError("strategy", first, self.strategies)
        rng = np.random.default_rng(seed)
        return Summary(tuple(self._summarised(s, chosen, rng) for s in self.strategies), self._differences(first, rng))

    def _summarised(self, name: str, checkpoints: list[int], rng: np.random.Generator) -> StrategySummary:
        value, low, high = statistics.median_curve(self.curves[name][:, [n - 1 for n in checkpoints]], rng)
        best_s = {n: Interval(float(value[i]), float(low[i]), float(high[i])) for i, n in enumerate(checkpoints)}
        statuses = [r.status for r in self.rows if r.strategy == name]
        failed = sum(s != "ok" for s in statuses) / max(1, len(statuses))
        regret = statistics.mean(self.regrets[name].mean(axis=1), rng)
        if self.performance is None:
            return StrategySummary(name, best_s, regret, failed)
        of_time = self.performance.scores_of_time(name)
        return StrategySummary(
            name,
            best_s,
            regret,
            failed,
            statistics.mean(self.performance.scores(name), rng),
            statistics.mean(of_time, rng) if len(of_time) else None,
        )

    def _differences(self, baseline: str, rng: np.random.Generator) -> tuple[StrategyDifference, ...]:
        regrets = self.regrets
        others = [s for s in self.strategies if s != baseline]
        # Of each outcome, by strategy: what is worse is larger, and the sign with which it is told.
        worse = {
            "regret": {s: r.mean(axis=1) for s, r in regrets.items()},
            "final": {s: r[:, -1] for s, r in regrets.items()},
        }
        if self.performance is not None:
            worse["performance"] = {s: -self.performance.scores(s) for s in self.strategies}
        found: list[StrategyDifference] = []
        for outcome, of in worse.items():
            sign = -1 if outcome == "performance" else 1
            p_values = statistics.holm([statistics.sign_test(of[baseline], of[s]) for s in others])
            for s, p in zip(others, p_values, strict=True):
                difference = statistics.mean(sign * (of[s] - of[baseline]), rng)
                superiority = statistics.superiority(of[baseline], of[s])
                found.append(StrategyDifference(s, baseline, outcome, difference, superiority, p))
        return tuple(found)

    def plot(self, ax: Any = None) -> Any:
        """Performance by trials where the space is known whole, else the median best time so far, both with 95 %
        intervals, on matplotlib axes (new ones by default), which are returned. Raises MissingError without matplotlib
        (the extra `plots`)."""
        from autosched.report import plots

        if self.performance is not None:
            axes = plots.performance(self.performance, ax=ax)
        else:
            axes = plots.comparison(self.curves, ax=ax)
        axes.set_title(f"{self.program} on {self.device}, {len(self.seeds)} seeds")
        return axes

    def __str__(self) -> str:
        return self.text()

    def text(self, baseline: str | None = None) -> str:
        """What was compared, and the summary with differences from `baseline`."""
        runs = f"{len(self.strategies)} strategies × {len(self.seeds)} seeds × {self.trials} trials"
        where = f"{self.program} for {self.target} on {self.device}"
        different = len({(r.plan, r.row) for r in self.rows})
        best = f"fastest of {different} different candidates: {seconds(self.best_s)}"
        few = f"\n{_FEW}" if len(self.seeds) < _ENOUGH and len(self.strategies) > 1 else ""
        return f"{where}: {runs}\n{best}\n\n{self.summary(baseline)}{few}"


def _powers(trials: int) -> list[int]:
    return [*(n for n in (4**k for k in range(1, 16)) if n < trials), trials]


_PERFORMANCES: tuple[tuple[str, Callable[[StrategySummary], Interval | None]], ...] = (
    ("performance", lambda s: s.performance),
    ("over time", lambda s: s.performance_of_time),
)


def _signed(value: float) -> str:
    return f"{value:+.1%}"


def _share(summary: StrategySummary) -> str:
    return f"{summary.failed:.0%}"
