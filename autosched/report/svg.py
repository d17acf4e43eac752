"""Charts as SVG text: lines with bands and points, enough for a report that needs no other file and no package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

import numpy as np
import numpy.typing as npt

from autosched.escape import html_text

Floats = npt.NDArray[np.float64]

# Okabe and Ito's colours (2008), distinct for colour-blind readers too, and two more.
COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f3c8d", "#666666", "#000000", "#a5aa99",
)  # fmt: skip
_WIDTH, _HEIGHT = 720, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 12, 40
_TICKS = 6
_DOTTED = 'stroke-dasharray="2 3"'


@dataclass(frozen=True)
class Series:
    """`x` and `y` have one shape. `low` and `high`: the band around a line. `points`: marks instead of a line. `steps`:
    a value holds until the next. `dashed`: it lies on another line. Values that are not finite are left out."""

    name: str
    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None
    points: bool = False
    steps: bool = False
    dashed: bool = False


@dataclass(frozen=True)
class PlotAxis:
    """A `log` axis has ticks at powers of ten; `low` and `high` are its ends (None: those of the data)."""

    label: str
    log: bool = False
    low: float | None = None
    high: float | None = None


def chart(series: Sequence[Series], x: PlotAxis, y: PlotAxis, marks: Sequence[float] = ()) -> str:
    """An `<svg>` element with axes, a legend and the series; an empty one where there is no finite value. At each
    of the `marks` on the axis `x` stands a dotted line with its number."""
    xs = _Scale(x, [s.x for s in series], _LEFT, _WIDTH - _RIGHT)
    ys = _Scale(y, [s.y for s in series], _HEIGHT - _BOTTOM, _TOP)
    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT + 20 * ceil(len(series) / 4)}" role="img" class="chart">']
    parts.append(f"<title>{html_text(y.label)} by {html_text(x.label)}</title>")
    for value, place in xs.ticks:
        parts.append(f'<path class="grid" d="M{place:.1f} {_TOP}V{_HEIGHT - _BOTTOM}"/>')
        parts.append(f'<text x="{place:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{value:g}</text>')
    for value, place in ys.ticks:
        parts.append(f'<path class="grid" d="M{_LEFT} {place:.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{place + 4:.1f}" text-anchor="end">{value:g}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 6}" text-anchor="middle">{html_text(x.label)}</text>')
    rotated = f'transform="rotate(-90 14 {_HEIGHT / 2})"'
    parts.append(f'<text x="14" y="{_HEIGHT / 2}" text-anchor="middle" {rotated}>{html_text(y.label)}</text>')
    for value, place in zip(marks, xs.places(np.array(marks, np.float64)), strict=True):
        parts.append(f'<path class="mark" d="M{place:.1f} {_TOP}V{_HEIGHT - _BOTTOM}" stroke="#777" {_DOTTED}/>')
        parts.append(f'<text x="{place - 3:.1f}" y="{_TOP + 10}" text-anchor="end">{value:g}</text>')
    for number, one in enumerate(series):
        parts += _drawn(one, COLOURS[number % len(COLOURS)], xs, ys)
        left, top = _LEFT + 164 * (number % 4), _HEIGHT + 12 + 20 * (number // 4)
        parts.append(f'<path d="M{left} {top - 4}h18" stroke="{COLOURS[number % len(COLOURS)]}" stroke-width="3"/>')
        parts.append(f'<text x="{left + 24}" y="{top}">{html_text(one.name)}</text>')
    return "".join([*parts, "</svg>"])


def _drawn(one: Series, colour: str, xs: _Scale, ys: _Scale) -> list[str]:
    finite = np.isfinite(one.x) & np.isfinite(one.y)
    x, y = xs.places(one.x[finite]), ys.places(one.y[finite])
    if not len(x):
        return []
    if one.points:
        marks = (f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5"/>' for a, b in zip(x, y, strict=True))
        return [f'<g fill="{colour}">', *marks, "</g>"]
    parts = []
    if one.low is not None and one.high is not None:
        bounds = (np.where(np.isnan(b), one.y, b)[finite] for b in (one.low, one.high))  # none, where seeds are alike
        low, high = (ys.places(b) for b in bounds)
        outline = [*zip(x, high, strict=True), *reversed(list(zip(x, low, strict=True)))]
        band = " ".join(f"{a:.1f},{b:.1f}" for a, b in outline)
        parts.append(f'<polygon points="{band}" fill="{colour}" opacity="0.15"/>')
    path = [f"M{x[0]:.1f} {y[0]:.1f}"]
    path += [f"H{a:.1f}V{b:.1f}" if one.steps else f"L{a:.1f} {b:.1f}" for a, b in zip(x[1:], y[1:], strict=True)]
    dashes = ' stroke-dasharray="6 6"' if one.dashed else ""
    parts.append(f'<path d="{"".join(path)}" fill="none" stroke="{colour}" stroke-width="1.8"{dashes}/>')
    return parts


class _Scale:
    """Maps values to positions on the page."""

    def __init__(self, axis: PlotAxis, columns: Sequence[Floats], start: float, end: float) -> None:
        values = np.concatenate([np.zeros(0), *(np.asarray(c, np.float64) for c in columns)])
        values = values[np.isfinite(values) & ((values > 0) | (not axis.log))]
        low, high = (float(values.min()), float(values.max())) if len(values) else (1.0, 2.0)
        low = axis.low if axis.low is not None else low
        high = axis.high if axis.high is not None else high
        self._log = axis.log
        self._low, self._high = self._of(low), self._of(high)
        if not self._high > self._low:
            self._high = self._low + 1.0
        self._start, self._end = start, end

    def _of(self, value: float) -> float:
        return log10(value) if self._log else value

    def places(self, values: Floats) -> Floats:
        inside = np.clip(np.log10(np.maximum(values, 1e-300)) if self._log else values, self._low, self._high)
        inside = np.where(np.isfinite(inside), inside, self._high)
        found = self._start + (inside - self._low) / (self._high - self._low) * (self._end - self._start)
        return np.asarray(found, np.float64)

    @property
    def ticks(self) -> list[tuple[float, float]]:
        """Round values within the axis, and where they are."""
        span = self._high - self._low
        step = 10.0 ** floor(log10(span / _TICKS))
        step = next((step * m for m in (1, 2, 5) if span / (step * m) <= _TICKS), step * 10)
        if self._log and span >= 2:
            step = max(1.0, round(step))
        marks = np.arange(ceil(self._low / step - 1e-9), floor(self._high / step + 1e-9) + 1) * step
        values = np.asarray(10.0**marks if self._log else marks, np.float64)
        places = self.places(values).tolist()
        return [(_short(v), p) for v, p in zip(values.tolist(), places, strict=True) if isfinite(p)]


def _short(value: float) -> float:
    """Three digits: enough beside an axis, and they hide rounding errors of the steps."""
    return float(f"{value:.3g}")
