"""Comparisons of the same strategies on several spaces, put together: intervals over spaces and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.errors import UnknownNameError, UsageError
from autosched.report import statistics
from autosched.report.comparison import StrategyComparison
from autosched.report.differences import StrategyDifference, differences, family
from autosched.report.exchange import differences_json, three
from autosched.report.html_tables import notes_html, tables_html
from autosched.report.statistics import Floats, Interval, spanned
from autosched.report.text import aligned, counted, number

SCHEMA = "autosched/compare-spaces/1"
FEW = f"fewer than {statistics.FEWEST} spaces: intervals hold the truth in some 90 of 100 cases, not 95"


@dataclass(frozen=True)
class OverSpaces:
    """`performance` by strategy: its mean over spaces and seeds, each space counting alike, with an interval that
    speaks of other spaces like these; and `differences` from the baseline, one family of tests. `curves` by strategy
    have performance by trial, a row for each space (its mean over seeds), up to the shortest budget of all; `until`
    the performance up to each stated budget, over the spaces that have so many trials."""

    spaces: tuple[str, ...]
    seeds: int
    performance: dict[str, Interval]
    differences: tuple[StrategyDifference, ...]
    curves: dict[str, Floats] = field(default_factory=dict)
    until: dict[int, dict[str, Interval]] = field(default_factory=dict)
    held: dict[int, int] = field(default_factory=dict)
    """Of each stated budget, how many spaces have runs of so many trials; of fewer than two `until` lacks it."""
    longest: int = 0
    """Trials of the longest runs."""

    @property
    def family(self) -> str:
        return family(self.differences, f"{len(self.spaces)} spaces and {counted(self.seeds, 'seed')}")

    def __str__(self) -> str:
        return "\n".join([self._head(), aligned(self._table()), *self._told()])

    def plot(self, ax: Any = None) -> Any:
        """Performance by trial, its mean over spaces, with a band of 95 % that speaks of other spaces like these, each
        trial by itself (Student's t over the spaces' means). It ends with the shortest runs; stated budgets up to there
        are marked. Returns the axes of matplotlib."""
        from autosched.report import plots

        trials = np.arange(1.0, next(iter(self.curves.values())).shape[1] + 1)
        bands = {name: band(curve) for name, curve in self.curves.items()}
        ends = f"; the shortest runs end here, the longest after {self.longest}" if len(trials) < self.longest else ""
        axes = plots.performance_curves(bands, trials, f"trials ({self._head()}{ends})", ax)
        plots.mark_budgets(axes, [n for n in self.held if n <= len(trials)])
        return axes

    def _repr_html_(self) -> str:
        """For notebooks."""
        return notes_html([self._head()]) + tables_html([("", self._table())]) + notes_html(self._told())

    def _head(self) -> str:
        return f"{len(self.spaces)} spaces, {counted(self.seeds, 'seed')}"

    def _table(self) -> list[list[str]]:
        of = {n: f" ({self.held[n]} spaces)" if self.held[n] < len(self.spaces) else "" for n in self.until}
        rows = [["strategy", "performance", *(f"up to {n}{said}" for n, said in of.items())]]
        for name, mean in self.performance.items():
            stated = (spanned(found[name], number) for found in self.until.values())
            rows.append([name, spanned(mean, number), *stated])
        return rows

    def _told(self) -> list[str]:
        more = [f"undecided: {d.strategy} - {d.baseline}: {d.more}" for d in self.differences if d.more]
        few = [FEW] if len(self.spaces) < statistics.FEWEST else []
        lone = [f"up to {n}: one space has so many trials, see its table" for n, held in self.held.items() if held < 2]
        return [*map(str, self.differences), *([self.family] if self.family else []), *more, *few, *lone]


def over_spaces(
    found: Sequence[StrategyComparison], baseline: str | None = None, seed: int = 0, budgets: Sequence[int] = ()
) -> OverSpaces:
    """Put comparisons together, of spaces that are known whole. Raises UsageError for fewer than two, comparisons
    that differ in their seeds, or budgets above the trials of all of them, UnknownNameError for a baseline that did not
    take part in all of them."""
    if len(found) < 2:
        raise UsageError(f"{len(found)} spaces are not several", hint="give two or more")
    if len({c.seeds for c in found}) > 1:
        raise UsageError("the spaces were searched with different seeds", hint="give all of them the same ones")
    names = [s for s in found[0].strategies if all(s in c.strategies for c in found)]
    base = found[0].strategies[0] if baseline is None else baseline
    if base not in names:
        raise UnknownNameError("strategy", base, names)
    each = [c.performance for c in found]
    known = [p for p in each if p is not None]
    if len(known) < len(found):
        raise UsageError("performance needs spaces that are known whole: recordings")
    shortest, longest = min(c.trials for c in found), max(c.trials for c in found)
    if budgets and not 1 <= min(budgets) <= max(budgets) <= longest:
        raise UsageError(f"the longest runs have {longest} trials", hint="state budgets of 1 to that")
    scores = {name: [p.scores(name) for p in known] for name in names}
    curves = {name: np.array([p.over_trials[name][:, :shortest].mean(axis=0) for p in known]) for name in names}
    long = {n: [p for p, c in zip(known, found, strict=True) if c.trials >= n] for n in budgets}
    until = {
        n: {name: _mean([p.scores(name, n) for p in some], seed) for name in names}
        for n, some in long.items()
        if len(some) > 1
    }
    means = {name: _mean(values, seed) for name, values in scores.items()}
    compared = differences(scores, base, "performance", seed)
    held = {n: len(some) for n, some in long.items()}
    spaces = tuple(c.program for c in found)
    return OverSpaces(spaces, len(found[0].seeds), means, compared, curves, until, held, longest)


def _mean(values: Sequence[Floats], seed: int) -> Interval:
    return statistics.estimate(values, np.random.default_rng(seed)).interval.within(most=1.0)


def spaces_json(found: OverSpaces) -> dict[str, Any]:
    """Schema autosched/compare-spaces/1."""
    return {
        "schema": SCHEMA,
        "spaces": list(found.spaces),
        "seeds": found.seeds,
        "performance": {name: three(i) for name, i in found.performance.items()},
        "until_spaces": {str(n): count for n, count in found.held.items()},
        "until": {str(n): {name: three(i) for name, i in each.items()} for n, each in found.until.items()},
        "differences": differences_json(found.differences),
        "family": found.family,
    }


def band(curves: npt.ArrayLike) -> tuple[Floats, ...]:
    """Mean over spaces and its 95 % interval for each column of `curves` (spaces, columns), each column by itself:
    value, low, high, by Student's t.

    >>> value, low, high = band([[0.0, 1.0], [1.0, 1.0], [0.5, 1.0]])
    >>> value.tolist(), low.round(2).tolist(), high.round(2).tolist()
    ([0.5, 1.0], [-0.74, 1.0], [1.74, 1.0])
    """
    from scipy.stats import t

    table = np.asarray(curves, np.float64)
    value, count = table.mean(axis=0), len(table)
    half = float(t.ppf((1 + statistics.LEVEL) / 2, count - 1)) * table.std(axis=0, ddof=1) / np.sqrt(count)
    return value, value - half, value + half
