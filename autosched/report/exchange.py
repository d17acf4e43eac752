"""A comparison as one JSON object, its rows as a CSV file, its curves as a picture."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from autosched.errors import UsageError
from autosched.extras import needed
from autosched.report.comparison import StrategyComparison
from autosched.report.differences import StrategyDifference
from autosched.report.statistics import Interval
from autosched.search.evaluate.compare import Row

SCHEMA = "autosched/compare/2"


def as_json(
    found: StrategyComparison, baseline: str | None = None, checkpoints: Sequence[int] | None = None
) -> dict[str, Any]:
    """Schema autosched/compare/2. Intervals are [value, low, high]; a null value stands for "nothing was found by
    then", null ends for seeds that are no replicates.

    `runs` holds the best seconds so far after each trial of each run; performances are null where the space is not
    known whole; `areas` are those up to some trials, `areas_of_time` up to the time in which random search makes so
    many (`until_s`). `checksum` is over all trials, and not over what strategies took. `p` is null where nothing was
    tested, `untested` says why, `family` what p-values were corrected for.
    """
    summary = found.summary(baseline, checkpoints)
    return {
        "schema": SCHEMA,
        "program": found.program,
        "target": found.target,
        "device": found.device,
        "trials": found.trials,
        "seeds": list(found.seeds),
        "best_s": found.best_s,
        "checksum": found.checksum,
        "until_s": {str(n): s for n, s in summary.until_s.items()},
        "strategies": [
            {
                "strategy": s.strategy,
                "best_s": {str(n): three(i) for n, i in s.best_s.items()},
                "regret": three(s.regret),
                "failed": s.failed,
                "distinct_runs": s.distinct,
                "performance": s.performance and three(s.performance),
                "performance_of_time": s.performance_of_time and three(s.performance_of_time),
                "areas": {str(n): three(i) for n, i in s.areas.items()},
                "areas_of_time": {str(n): three(i) for n, i in s.areas_of_time.items()},
            }
            for s in summary.strategies
        ],
        "differences": differences_json(summary.differences),
        "family": summary.family,
        "runs": [
            {"strategy": name, "seed": seed, "best_s": [_finite(float(s)) for s in curve]}
            for name, curves in found.curves.items()
            for seed, curve in zip(found.seeds, curves, strict=True)
        ],
    }


def write_csv(path: Path, found: StrategyComparison) -> None:
    """All rows with a head line; empty fields for None. Raises UsageError where the file cannot be written."""
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(Row._fields)
            writer.writerows(found.rows)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None


def write_plot(path: Path, found: StrategyComparison, budgets: Sequence[int] = ()) -> None:
    """The curves as a file of the kind that its ending names, `budgets` marked in it. MissingError without matplotlib,
    UsageError where the file cannot be written or has no ending that matplotlib knows."""
    write_figure(path, lambda ax: found.plot(ax, budgets))


def write_figure(path: Path, draw: Callable[[Any], Any]) -> None:
    """What `draw` puts on the axes that it is given, as a file; raises as `write_plot` does."""
    axes = draw(figure(path).add_subplot())
    try:
        axes.figure.savefig(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write {path}: {getattr(error, 'strerror', None) or error}") from None


def figure(path: Path) -> Any:
    """An empty figure for a file, without a window. Raises MissingError without matplotlib (the extra `plots`)."""
    return needed("matplotlib.figure", "plots", str(path)).Figure(layout="tight")


def differences_json(found: Iterable[StrategyDifference]) -> list[dict[str, Any]]:
    """Differences of strategies from a baseline, for `--json`."""
    return [
        {
            "strategy": d.strategy,
            "baseline": d.baseline,
            "outcome": d.outcome,
            "difference": three(d.difference),
            "superiority": d.superiority,
            "ties": d.ties,
            "p": d.p,
            "untested": d.untested,
            "more": d.more,
        }
        for d in found
    ]


def three(interval: Interval) -> list[float | None]:
    """Value and ends, null where there is none."""
    return [_finite(x) for x in (interval.value, interval.low, interval.high)]


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None
