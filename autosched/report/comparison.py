"""What strategies found with the same budget and seeds, as rows, a table, statistics and curves."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from autosched.errors import UnknownNameError, UsageError
from autosched.extras import needed
from autosched.report import statistics
from autosched.report.differences import FEW_SEEDS, StrategyDifference, differences, family
from autosched.report.html_tables import notes_html, tables_html
from autosched.report.performance import Performance, performance
from autosched.report.statistics import Floats, Interval
from autosched.report.summary import StrategySummary, Summary
from autosched.report.text import counted, microseconds, seconds
from autosched.search.evaluate.compare import Row
from autosched.search.evaluate.landscape import Landscape
from autosched.store.columns import PlanPart, decision_columns
from autosched.tiling.space.base import SpaceBase as Space

_ONE = "one seed has no intervals, and nothing is tested"


@dataclass(frozen=True)
class StrategyComparison:
    """All trials of all runs: `rows` in the order strategy, seed, trial (see `Row`); runs are paired by seed.

    `landscape` is there where the whole space is known: times of all its rows. `spaces` are those of the plans, by
    their names."""

    program: str
    target: str
    device: str
    strategies: tuple[str, ...]
    seeds: tuple[int, ...]
    trials: int
    rows: tuple[Row, ...]
    landscape: Landscape | None = None
    spaces: Mapping[str, Space] = field(default_factory=dict, repr=False, compare=False)

    @property
    def frame(self) -> Any:
        """The rows as a pandas DataFrame, one row a trial: the fields of `Row`, then a column for each decision
        (`store.columns`). Raises MissingError without pandas (the extra `plots`)."""
        pandas = needed("pandas", "plots", "table.frame")
        fields = pandas.DataFrame(list(self.rows), columns=list(Row._fields))
        return fields.assign(**self.decisions)

    @cached_property
    def decisions(self) -> dict[str, Any]:
        """What was decided in each trial, a column for each decision, in the order of `rows`."""
        places: dict[str, list[int]] = {}
        for place, row in enumerate(self.rows):
            places.setdefault(row.plan, []).append(place)
        parts = []
        for name, mine in places.items():
            space = self.spaces.get(name)
            if space is not None:
                index = space.rows(np.array([self.rows[p].row for p in mine], np.int64))
                table = np.stack([np.asarray(index[d.name]) for d in space.decisions], axis=1)
                parts.append(PlanPart(space.decisions, table, np.array(mine)))
        return decision_columns(len(self.rows), parts, Row._fields)

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
        (default: the first strategy), with 95 % intervals over seeds (`seed` draws the resamples).

        Raises UsageError for a checkpoint out of range, UnknownNameError for a baseline that did not take part.
        """
        chosen = list(checkpoints) if checkpoints is not None else _powers(self.trials)
        for n in chosen:
            if not 1 <= n <= self.trials:
                raise UsageError(f"checkpoint {n}: there were {self.trials} trials", hint=f"1 to {self.trials}")
        first = self.strategies[0] if baseline is None else baseline
        if first not in self.strategies:
            raise UnknownNameError("strategy", first, self.strategies)
        summaries = tuple(self._summarised(s, chosen, np.random.default_rng(seed)) for s in self.strategies)
        found = self._differences(first, seed)
        until = {n: self.performance.until_s(n) for n in chosen if self.performance and len(self.performance.moments_s)}
        return Summary(summaries, found, family(found, f"{len(self.seeds)} seeds, paired"), len(self.seeds), until)

    def _summarised(self, name: str, checkpoints: list[int], rng: np.random.Generator) -> StrategySummary:
        value, low, high = statistics.median_curve(self.curves[name][:, [n - 1 for n in checkpoints]])
        if self.distinct[name] == 1:  # one run, however often
            low = high = np.full(len(checkpoints), np.nan)
        best_s = {n: Interval(float(value[i]), float(low[i]), float(high[i])) for i, n in enumerate(checkpoints)}
        statuses = [r.status for r in self.rows if r.strategy == name]
        failed = sum(s != "ok" for s in statuses) / max(1, len(statuses))
        regret = statistics.mean(self.regrets[name].mean(axis=1), rng).within(0.0, 1.0)
        if self.performance is None:
            return StrategySummary(name, best_s, regret, failed, distinct=self.distinct[name])
        found = self.performance
        areas = {n: statistics.mean(found.scores(name, n), rng).within(most=1.0) for n in checkpoints}
        of_time = found.scores_of_time(name)
        areas_of_time = {
            n: statistics.mean(found.scores_of_time(name, found.until_s(n)), rng).within(most=1.0)
            for n in checkpoints
            if len(of_time)
        }
        return StrategySummary(
            name,
            best_s,
            regret,
            failed,
            statistics.mean(self.performance.scores(name), rng).within(most=1.0),
            statistics.mean(of_time, rng).within(most=1.0) if len(of_time) else None,
            self.distinct[name],
            areas,
            areas_of_time,
        )

    def _differences(self, baseline: str, seed: int) -> tuple[StrategyDifference, ...]:
        regrets = self.regrets
        outcomes = {
            "performance": {s: [self.performance.scores(s)] for s in self.strategies} if self.performance else {},
            "regret": {s: [r.mean(axis=1)] for s, r in regrets.items()},
            "final": {s: [r[:, -1]] for s, r in regrets.items()},
        }
        known = {outcome: of for outcome, of in outcomes.items() if of}
        alike = [s for s, runs in self.distinct.items() if runs == 1]
        return tuple(
            d
            for number, (outcome, of) in enumerate(known.items())
            for d in differences(of, baseline, outcome, seed, alike=alike, tested=number == 0)
        )

    @cached_property
    def distinct(self) -> dict[str, int]:
        """By strategy, how many different runs its seeds made: the same candidates in the same order are one."""
        runs: dict[tuple[str, int], list[tuple[str, int]]] = {}
        for row in self.rows:
            runs.setdefault((row.strategy, row.seed), []).append((row.plan, row.row))
        return {s: len({tuple(run) for (name, _), run in runs.items() if name == s}) for s in self.strategies}

    def plot(self, ax: Any = None, budgets: Sequence[int] = ()) -> Any:
        """Performance by trials where the space is known whole, else the median best time so far, both with 95 %
        intervals, on matplotlib axes (new ones by default), which are returned. `budgets`, numbers of trials, are
        marked by lines. Raises MissingError without matplotlib (the extra `plots`)."""
        from autosched.report import plots

        if self.performance is not None:
            axes = plots.performance(self.performance, ax=ax)
        else:
            axes = plots.comparison(self.curves, ax=ax)
        plots.mark_budgets(axes, budgets)
        axes.set_title(f"{self.program} on {self.device}, {counted(len(self.seeds), 'seed')}")
        return axes

    @property
    def checksum(self) -> str:
        """16 hex digits over all trials: what was tried, in which order, and what came out; times that strategies took
        have no part in it, so that equal results have equal checksums on any machine."""
        rows = [(r.strategy, r.seed, r.trial, r.plan, r.row, r.status, r.time_s) for r in self.rows]
        return hashlib.sha256(repr(rows).encode()).hexdigest()[:16]

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        """For notebooks: what was compared, and the summary's tables."""
        found = self.summary()
        head, tables = notes_html(self.headline().splitlines()), tables_html(found.tables(microseconds))
        return head + tables + notes_html(found.told())

    def headline(self) -> str:
        """What was compared, and the best time known, in two lines."""
        several = "1 strategy" if len(self.strategies) == 1 else f"{len(self.strategies)} strategies"
        runs = f"{several} × {counted(len(self.seeds), 'seed')} × {counted(self.trials, 'trial')}"
        where = f"{self.program} for {self.target} on {self.device}"
        different = len({(r.plan, r.row) for r in self.rows})
        if self.landscape is None:
            best = f"fastest of {different} different candidates: {seconds(self.best_s)}"
        else:
            best = f"optimum of {self.landscape.rows:,} rows: {seconds(self.best_s)}; {different:,} of them were tried"
        return f"{where}: {runs}\n{best}; results {self.checksum}"

    def text(self, baseline: str | None = None, checkpoints: Sequence[int] | None = None) -> str:
        """What was compared, and the summary with differences from `baseline` and areas up to `checkpoints`."""
        few = _ONE if len(self.seeds) == 1 else FEW_SEEDS if len(self.seeds) < statistics.FEWEST else ""
        return f"{self.headline()}\n\n{self.summary(baseline, checkpoints)}" + (f"\n{few}" if few else "")


def _powers(trials: int) -> list[int]:
    return [*(n for n in (4**k for k in range(1, 16)) if n < trials), trials]
