"""Plots of a study and of a comparison, on matplotlib axes that are given or made, and returned.

All raise MissingError where matplotlib (the extra `plots`) is not installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import log10
from typing import Any

import numpy as np

from autosched.costmodel.accuracy.importance import Relied
from autosched.errors import UsageError
from autosched.extras import needed
from autosched.report import statistics
from autosched.report.coinciding import LOWEST, labelled
from autosched.report.performance import Performance
from autosched.report.statistics import Floats
from autosched.store.records import Trial

_UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}


def history(trials: Iterable[Trial], ax: Any = None) -> Any:
    """Times of a search by trial, the best so far as a line, and failures as ticks below, by kind."""
    axes = _axes(ax)
    searched = [t for t in trials if t.round == "search"]
    times = [t.measurement.time_s if t.measurement.ok else None for t in searched]
    found = np.array([np.nan if s is None else s for s in times], np.float64)
    scale, unit = _unit(found)
    numbers = np.array([t.number for t in searched])
    best = np.fmin.accumulate(found) if len(found) else found
    axes.plot(numbers, found * scale, ".", color="0.6", label="trial")
    axes.step(numbers, best * scale, where="post", label="best so far")
    kinds = sorted({t.measurement.status for t in searched if not t.measurement.ok})
    for kind in kinds:
        failed = [t.number for t in searched if t.measurement.status == kind]
        # The height is in parts of the axes, so that ticks stay at the bottom whatever the times are.
        axes.plot(failed, [0.02] * len(failed), "|", markersize=10, transform=axes.get_xaxis_transform(), label=kind)
    axes.set_xlabel("trial")
    axes.set_ylabel(f"time ({unit})")
    axes.legend()
    return axes


def predicted(trials: Iterable[Trial], ax: Any = None) -> Any:
    """Predicted against measured time of each trial of a search, by the analytic clock and by the learned model."""
    axes = _axes(ax)
    done = [t for t in trials if t.round == "search" and t.measurement.ok and t.measurement.time_s]
    measured = np.array([t.measurement.time_s for t in done], np.float64)
    clock = np.array([t.analytic_s or np.nan for t in done], np.float64)
    model = np.array([t.predicted_s or np.nan for t in done], np.float64)
    scale, unit = _unit(measured)
    for name, marker, values in (("clock", ".", clock), ("learned model", "x", model)):
        if np.isfinite(values).any():
            axes.plot(measured * scale, values * scale, marker, label=name)
    if len(done):
        ends = [float(np.nanmin([measured, clock, model])) * scale, float(np.nanmax([measured, clock, model])) * scale]
        axes.plot(ends, ends, "-", color="0.7", linewidth=1, label="measured = predicted")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(f"measured ({unit})")
    axes.set_ylabel(f"predicted ({unit})")
    axes.legend()
    return axes


def comparison(curves: Mapping[str, Floats], ax: Any = None) -> Any:
    """Median over seeds of the best time so far by trial, and its 95 % interval, for each strategy.

    `curves` holds seconds, shape (seeds, trials), infinite while nothing was found (`StrategyComparison.curves`).
    """
    axes = _axes(ax)
    scale, unit = _unit(np.concatenate([c.ravel() for c in curves.values()]) if curves else np.zeros(0))
    drawn = {
        name: [np.where(np.isfinite(s), s, np.nan) * scale for s in statistics.median_curve(curve)]
        for name, curve in curves.items()
    }
    trials = np.arange(1.0, 1 + max((len(value) for value, *_ in drawn.values()), default=0))
    marked = labelled({name: value for name, (value, *_) in drawn.items()}, trials)
    for name, (value, low, high) in drawn.items():
        one = marked[name]
        (line,) = axes.plot(trials, value, "-" if one.like is None else "--", drawstyle="steps-post", label=one.label)
        axes.fill_between(trials, low, high, step="post", alpha=0.2, color=line.get_color(), linewidth=0)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(needed("matplotlib.ticker", "plots", "a plot").StrMethodFormatter("{x:g}"))
    axes.set_xlabel("trials")
    axes.set_ylabel(f"best time so far ({unit})")
    axes.legend()
    return axes


def performance(found: Performance, ax: Any = None, seed: int = 0, over: str = "trials") -> Any:
    """Mean over seeds of each strategy's performance (0 random search, 1 optimum) and its 95 % interval, over
    `trials` or over `time`. Dashed curves lie on an earlier one, triangles at the bottom mark where a curve is below;
    the legend says both. Raises UsageError for time where the recording says nothing of costs."""
    if over == "time" and not len(found.moments_s):
        raise UsageError("this recording does not say what rows cost", hint="plot over trials")
    rng = np.random.default_rng(seed)
    chosen = found.over_time if over == "time" else found.over_trials
    curves = {name: statistics.mean_curve(curve, rng) for name, curve in chosen.items()}
    x = found.moments_s if over == "time" else np.arange(1.0, next(iter(chosen.values())).shape[1] + 1)
    return performance_curves(curves, x, "time (s)" if over == "time" else "trials", ax)


def performance_curves(curves: Mapping[str, Sequence[Floats]], x: Floats, label: str, ax: Any = None) -> Any:
    """Performances over `x`, each a value with the lower and upper end of its band, marked as `performance` says."""
    axes = _axes(ax)
    marked = labelled({name: value for name, (value, *_) in curves.items()}, x, LOWEST)
    for name, (value, low, high) in curves.items():
        one = marked[name]
        (line,) = axes.plot(x, value, "-" if one.like is None else "--", label=one.label)
        axes.fill_between(x, low, high, alpha=0.2, color=line.get_color(), linewidth=0)
        if len(one.outside):
            axes.plot(one.outside, np.full(len(one.outside), LOWEST), "v", color=line.get_color(), markersize=4)
    axes.axhline(0, color="0.7", linewidth=1)
    axes.axhline(1, color="0.7", linewidth=1)
    axes.set_ylim(LOWEST, 1.05)
    axes.set_xlabel(label)
    axes.set_ylabel("performance (0 random search, 1 optimum)")
    axes.legend()
    return axes


def mark_budgets(axes: Any, budgets: Iterable[int]) -> None:
    """A dotted line at each of these numbers of trials, with the number on top."""
    for trials in budgets:
        axes.axvline(trials, color="0.5", linewidth=1, linestyle=":")
        place = (trials, 1.0)  # the height is in parts of the axes
        axes.annotate(str(trials), place, xycoords=axes.get_xaxis_transform(), ha="right", va="top", color="0.4")


def importance(found: Relied, most: int = 15, ax: Any = None) -> Any:
    """The features that a model relies on, the most important on top, as bars with the deviation over shuffles."""
    axes = _axes(ax)
    shown = [i for i in found.features if i.rise > 0][:most][::-1]
    axes.barh([i.feature for i in shown], [i.rise for i in shown], xerr=[i.deviation for i in shown])
    axes.set_xlabel(f"rise of the error without it (ln units; {found.error:.3f} with all)")
    return axes


def _axes(ax: Any) -> Any:
    if ax is not None:
        return ax
    return needed("matplotlib.pyplot", "plots", "a plot").subplots()[1]


def _unit(values: Floats) -> tuple[float, str]:
    """The factor from seconds to a unit that suits the smallest value, and its name."""
    fine = values[np.isfinite(values) & (values > 0)]
    smallest = float(fine.min()) if len(fine) else 1.0
    unit = next((u for u, size in _UNITS.items() if log10(smallest / size) >= 0), "ns")
    return 1 / _UNITS[unit], unit
