"""What a comparison comes to: strategies with intervals, their differences, and the same as tables."""

from __future__ import annotations

from dataclasses import dataclass, field

from autosched.report.differences import StrategyDifference
from autosched.report.html_tables import notes_html, tables_html
from autosched.report.statistics import Interval, Show, spanned
from autosched.report.text import aligned, microseconds, number, points, seconds

_ALIKE = " ="
_ALIKE_SAID = "= made the same run with every seed: its seeds are no replicates"
_SCALE = " (0: random search, 1: optimum)"


@dataclass(frozen=True)
class StrategySummary:
    """`best_s`: trials to the median over seeds of the best time so far, in seconds.

    `regret` is the mean over seeds and trials of 1 - fastest time of all / best time so far: 0 for a strategy that
    starts with the fastest candidate, 1 while nothing was found. `failed` is the share of trials that failed.
    `performance` is the mean over trials of the distance from random search (0) to the optimum (1), and
    `performance_of_time` the same over time; None where the space is not known whole, or not what rows cost. `distinct`
    is how many different runs its seeds made: where it is 1 of several, they are no replicates. `areas` is the
    performance up to some trials, `areas_of_time` up to the time in which random search makes so many.
    """

    strategy: str
    best_s: dict[int, Interval]
    regret: Interval
    failed: float
    performance: Interval | None = None
    performance_of_time: Interval | None = None
    distinct: int = 0
    areas: dict[int, Interval] = field(default_factory=dict)
    areas_of_time: dict[int, Interval] = field(default_factory=dict)


@dataclass(frozen=True)
class Summary:
    """Strategies and their differences from the baseline. `family` says what the p-values are of and were corrected
    for: one outcome is tested (performance, else regret), the others are described."""

    strategies: tuple[StrategySummary, ...]
    differences: tuple[StrategyDifference, ...]
    family: str = ""
    seeds: int = 0
    until_s: dict[int, float] = field(default_factory=dict)
    """Seconds in which random search makes so many trials; empty where costs are not known."""

    def __str__(self) -> str:
        tables = [f"{title}\n{aligned(rows)}" if title else aligned(rows) for title, rows in self.tables(seconds)]
        parts = ["\n\n".join(tables) + ("\n" if len(tables) > 1 else "")]
        alike = [self.seeds > 1 and s.distinct == 1 for s in self.strategies]
        few = [f"{s.strategy}: {s.distinct}" for s in self.strategies if 1 < s.distinct <= self.seeds // 2]
        if any(alike):
            parts.append(_ALIKE_SAID)
        if few:
            parts.append(f"different runs of {self.seeds} seeds: {', '.join(few)}")
        return "\n".join([*parts, *self.told()])

    def tables(self, show: Show) -> list[tuple[str, list[list[str]]]]:
        """What strategies found, and their performance over trials and over time, each with its title and a line of
        heads; seconds are shown by `show`. `=` marks a strategy that made the same run with every seed."""
        checkpoints = list(self.strategies[0].best_s)
        names = [s.strategy + (_ALIKE if self.seeds > 1 and s.distinct == 1 else "") for s in self.strategies]
        head = ["strategy", *(f"best of {n}" for n in checkpoints), "regret", "failed"]
        lines = [
            [name, *(spanned(s.best_s[n], show) for n in checkpoints), spanned(s.regret, points), f"{s.failed:.0%}"]
            for name, s in zip(names, self.strategies, strict=True)
        ]
        found = [("", [head, *lines])]
        parts: tuple[tuple[str, list[str], list[dict[int, Interval]]], ...] = (
            (f"performance over trials{_SCALE}", [f"to {n}" for n in checkpoints], [s.areas for s in self.strategies]),
            (
                "performance over time",
                [f"to {seconds(s)}" for s in self.until_s.values()],
                [s.areas_of_time for s in self.strategies],
            ),
        )
        for title, heads, areas in parts:
            if areas[0]:
                each = zip(names, areas, strict=True)
                rows = [[name, *(spanned(i, number) for i in of.values())] for name, of in each]
                found.append((title, [["strategy", *heads], *rows]))
        return found

    def _repr_html_(self) -> str:
        """For notebooks: the same tables, times in microseconds."""
        return tables_html(self.tables(microseconds)) + notes_html(self.told())

    def told(self) -> list[str]:
        """A line for each difference, the family of the tests, and what would decide what is undecided."""
        return [*map(str, self.differences), *self.notes()]

    def notes(self) -> list[str]:
        """What the p-values are of, and what would decide what is undecided."""
        more = [f"undecided: {d.strategy} - {d.baseline}: {d.more}" for d in self.differences if d.more]
        return [*([self.family] if self.family else []), *more]
