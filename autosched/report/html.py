"""Reports as one HTML file each, of a study and of a comparison: text, tables and charts, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from autosched.escape import html_text
from autosched.report import statistics
from autosched.report.coinciding import LOWEST, labelled
from autosched.report.comparison import StrategyComparison
from autosched.report.html_tables import notes_html, table_html, tables_html
from autosched.report.statistics import spanned
from autosched.report.svg import PlotAxis, Series, chart
from autosched.report.text import amount, microseconds, points, seconds
from autosched.store.ranking import ranked
from autosched.store.records import StudyRecord, Trial

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid #ddd; vertical-align: top; }
pre { background: #f6f6f6; padding: .7rem; overflow-x: auto; font-size: 13px; }
.chart { width: 100%; height: auto; font: 12px system-ui, sans-serif; } .grid { stroke: #e5e5e5; fill: none; }
.note { color: #555; }
"""
_SHOWN = 20  # trials in the table of a study: the best
UNITS = {"latency": "seconds", "energy": "joules", "edp": "joules times seconds"}


def study_html(record: StudyRecord, trials: Sequence[Trial], texts: Mapping[str, str] | None = None) -> str:
    """The report of a study: what was tuned, how the search went, the fastest trials, failures, and `texts` (title to
    preformatted text, as the kernel) at the end."""
    searched = [t for t in trials if t.round == "search"]
    standing, objective = ranked(trials), record.settings.get("objective", "latency")
    best = next(iter(standing), None)
    said = {"program": record.program_name, "target": record.target, "device": record.device}
    said |= {"seed": str(record.seed), "trials": str(len(searched))}
    if best is not None:
        spread = best.measurement.spread
        said["best"] = f"trial {best.number}: {seconds(best.measurement.time_s)}"
        said["best"] += f", {amount(best.measurement.cost, objective)}" if objective != "latency" else ""
        said["best"] += f", spread {points(spread)}" if spread is not None else ""
        said["schedule"] = "  ".join(f"{k}={v}" for k, v in best.schedule.items())
    failed: dict[str, list[Trial]] = {}
    for t in searched:
        if not t.measurement.ok:
            failed.setdefault(t.measurement.status, []).append(t)
    parts = [table_html(["", ""], [[k, v] for k, v in said.items()])]
    parts += ["<h2>The search</h2>", _history(searched, objective)]
    if predictions := _predictions(searched, objective):
        parts += ["<h2>Predicted and measured</h2>", predictions]
    rows = [
        [str(t.number), *(amount(v, objective) for v in spent), t.plan, _named(t)]
        for t, spent in ((t, (t.measurement.cost, t.analytic_s, t.predicted_s)) for t in standing[:_SHOWN])
    ]
    heads = ["trial", "measured", "clock", "model", "plan", "schedule"]
    parts += ["<h2>The best trials</h2>", table_html(heads, rows)]
    if failed:
        why = [[kind, str(len(found)), found[0].measurement.message[:300]] for kind, found in sorted(failed.items())]
        parts += ["<h2>Failures</h2>", table_html(["kind", "trials", "the first said"], why)]
    for title, text in {"Program": record.program, **(texts or {})}.items():
        parts += [f"<h2>{html_text(title)}</h2>", f"<pre>{html_text(text)}</pre>"]
    return _page(record.name, parts)


def comparison_html(
    found: StrategyComparison, baseline: str | None = None, checkpoints: Sequence[int] | None = None
) -> str:
    """The report of a comparison: curves, tables with intervals, differences with their tests, and how it was done."""
    summary = found.summary(baseline, checkpoints)
    rng = np.random.default_rng(0)
    title = f"{found.program} on {found.device}"
    parts = [notes_html(found.headline().splitlines())]
    if found.performance is not None:
        curves = {n: statistics.mean_curve(c, rng) for n, c in found.performance.over_trials.items()}
        parts += ["<h2>Performance over trials</h2>", _performances(curves, None, "trials", checkpoints or ())]
        if len(found.performance.moments_s):
            curves = {n: statistics.mean_curve(c, rng) for n, c in found.performance.over_time.items()}
            parts += ["<h2>Performance over time</h2>", _performances(curves, found.performance.moments_s, "time (s)")]
    parts += ["<h2>Best time so far</h2>", _best_so_far(found)]
    parts += ["<h2>Strategies</h2>", tables_html(summary.tables(microseconds))]
    rows = [
        [
            f"{d.strategy} - {d.baseline}",
            d.outcome,
            spanned(d.difference, lambda x: f"{x:+.3f}"),
            d.pairs,
            d.untested or ("" if d.p is None else "< 0.001" if d.p < 0.001 else f"{d.p:.3f}"),
        ]
        for d in summary.differences
    ]
    if rows:
        heads = ["", "outcome", "difference", "pairs", "p (Holm)"]
        parts += ["<h2>Differences, paired by seed</h2>", table_html(heads, rows)]
        parts.append(notes_html(summary.notes()))
    parts.append(f'<p class="note">{_METHOD}</p>')
    return _page(title, parts)


_METHOD = (
    "Brackets and bands are 95 % intervals over seeds, of this space alone: bootstrap-t of means, order statistics of "
    "medians. Regret is the mean over trials of 1 - fastest / best so far. Performance is 0 where random search "
    "without replacement is expected to be (calculated, not drawn) and 1 at the optimum."
)


def _named(trial: Trial) -> str:
    return "  ".join(f"{k}={v}" for k, v in trial.schedule.items())


def _history(searched: Sequence[Trial], objective: str) -> str:
    x = np.array([t.number for t in searched], np.float64)
    y = np.array([t.measurement.cost if t.measurement.ok else np.nan for t in searched], np.float64)
    best = np.fmin.accumulate(y) if len(y) else y
    series = [Series("trial", x, y, points=True), Series("best so far", x, best, steps=True)]
    return chart(series, PlotAxis("trial"), PlotAxis(UNITS[objective], log=True))


def _predictions(searched: Sequence[Trial], objective: str) -> str:
    """Predicted against measured; empty where nothing was predicted."""
    done = [t for t in searched if t.measurement.ok and t.measurement.time_s]
    x = np.array([t.measurement.cost for t in done], np.float64)
    of = {"clock": [t.analytic_s for t in done], "model": [t.predicted_s for t in done]}
    series = [
        Series(name, x, np.array([v if v else np.nan for v in values], np.float64), points=True)
        for name, values in of.items()
        if any(values)
    ]
    if not series:
        return ""
    ends = np.array([x.min(), x.max()])
    line = Series("measured = predicted", ends, ends)
    unit = UNITS[objective]
    return chart([*series, line], PlotAxis(f"measured ({unit})", log=True), PlotAxis(f"predicted ({unit})", log=True))


def _performances(
    curves: Mapping[str, Sequence[statistics.Floats]],
    x: statistics.Floats | None,
    label: str,
    marks: Sequence[int] = (),
) -> str:
    series = []
    places = x if x is not None else np.arange(1.0, len(next(iter(curves.values()))[0]) + 1)
    marked = labelled({name: value for name, (value, *_) in curves.items()}, places, LOWEST)
    for name, (value, low, high) in curves.items():
        series.append(Series(marked[name].label, places, value, low, high, dashed=marked[name].like is not None))
    return chart(series, PlotAxis(label), PlotAxis("0 random search, 1 optimum", low=LOWEST, high=1.0), marks)


def _best_so_far(found: StrategyComparison) -> str:
    """Median best time so far, in microseconds."""
    series = []
    curves = {name: [c * 1e6 for c in statistics.median_curve(curve)] for name, curve in found.curves.items()}
    x = np.arange(1.0, found.trials + 1)
    marked = labelled({name: value for name, (value, *_) in curves.items()}, x)
    for name, (value, low, high) in curves.items():
        dashed = marked[name].like is not None
        series.append(Series(marked[name].label, x, value, low, high, steps=True, dashed=dashed))
    return chart(series, PlotAxis("trials"), PlotAxis("µs (median)", log=True))


def _page(title: str, parts: Sequence[str]) -> str:
    head = f'<meta charset="utf-8"><title>{html_text(title)}</title><style>{_STYLE}</style>'
    body = f"<h1>{html_text(title)}</h1>{''.join(parts)}"
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'
