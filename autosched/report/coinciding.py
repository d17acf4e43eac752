"""Curves that a picture would hide: those that lie on another one, and those that leave it below."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from autosched.report.statistics import Floats

LOWEST = -0.5
"""Performance below it is outside of a picture, which marks it."""


@dataclass(frozen=True)
class Marked:
    """What a legend says of a curve; `like`: the earlier one that it lies on; `outside`: where it is below."""

    label: str
    like: str | None
    outside: Floats


def labelled(curves: Mapping[str, Floats], x: Floats, lowest: float = float("-inf")) -> dict[str, Marked]:
    """Labels of curves over the same `x`: `b (as a)` where b lies on a, `c (below -0.5 up to 12)` where c is outside.

    >>> x = np.arange(1.0, 4.0)
    >>> found = labelled({"a": x, "b": x, "c": x - 2.6}, x, lowest=-0.5)
    >>> [one.label for one in found.values()]
    ['a', 'b (as a)', 'c (below -0.5 up to 2)']
    """
    found = dict[str, Marked]()
    for name, curve in curves.items():
        like = next((n for n in found if found[n].like is None and _same(curves[n], curve)), None)
        outside = x[np.asarray(curve) < lowest]
        said = ([f"as {like}"] if like is not None else []) + (
            [f"below {lowest:g} {_where(outside, x)}"] if len(outside) else []
        )
        found[name] = Marked(f"{name} ({', '.join(said)})" if said else name, like, outside)
    return found


def _where(outside: Floats, x: Floats) -> str:
    """At which of the `x` a curve is outside: up to the last of them, with or without others between."""
    last = f"{outside[-1]:.3g}"
    return f"up to {last}" if len(outside) == np.sum(x <= outside[-1]) else f"now and then up to {last}"


def _same(a: Floats, b: Floats) -> bool:
    """Within a thousandth of what the curve spans, everywhere: no eye tells them apart."""
    fine = np.isfinite(a)
    if not np.array_equal(fine, np.isfinite(b)):
        return False
    span = float(np.ptp(a[fine])) if fine.any() else 0.0
    return bool(np.all(np.abs(a[fine] - b[fine]) <= 1e-3 * span + 1e-12))
