"""Numbers and tables as plain text."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite


def seconds(value: float | None) -> str:
    """Seconds with a fitting unit; `-` for none.

    >>> seconds(1.234e-4), seconds(None), seconds(float("inf"))
    ('123 µs', '-', '-')
    """
    if value is None or not isfinite(value):
        return "-"
    for factor, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def points(value: float) -> str:
    """A share in per cent: `12.3%`."""
    return f"{value:.1%}"


def number(value: float) -> str:
    """A score with two decimals: `0.87`."""
    return f"{value:.2f}"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Columns set to the left, two blanks apart.

    >>> print(aligned([["a", "bcd"], ["ef", "g"]]))
    a   bcd
    ef  g
    """
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    return "\n".join("  ".join(x.ljust(w) for x, w in zip(row, widths, strict=True)).rstrip() for row in rows)
