"""Figures with units, as people write them: `48 KiB`, `1.98 GHz`, `4.8 TB/s`, `4 cycles`, `0.5 issue/cycle`.

Text is matched against one pattern and looked up in a table; nothing is evaluated.
"""

from __future__ import annotations

import math
import re

from autosched.errors import SpecError, nearest

UNITS: dict[str, dict[str, float]] = {
    "bytes": {
        "B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
        "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
    },
    "frequency": {"Hz": 1, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
    "bandwidth": {
        "B/s": 1, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "TB/s": 1e12,
        "KiB/s": 2**10, "MiB/s": 2**20, "GiB/s": 2**30, "TiB/s": 2**40,
    },
    "time": {"s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9},
    "issues": {"issue/cycle": 1, "issues/cycle": 1},
    "operations": {"op/cycle": 1, "ops/cycle": 1},
    "energy per operation": {"J/op": 1, "nJ/op": 1e-9, "pJ/op": 1e-12, "fJ/op": 1e-15},
    "energy per byte": {"J/B": 1, "nJ/B": 1e-9, "pJ/B": 1e-12, "fJ/B": 1e-15},
    "power": {"W": 1, "mW": 1e-3, "kW": 1e3},
}  # fmt: skip
"""Dimension to unit to how much of the base unit (byte, hertz, byte/s, second, 1/cycle, joule, watt) it is."""
PER_CYCLE: dict[str, tuple[str, ...]] = {"bandwidth": ("B/cycle", "B/clk"), "time": ("cycle", "cycles", "clk")}
"""Units that need the clock."""
_FIGURE = re.compile(r"\s*([+-]?(?:\d[\d,_]*)(?:\.\d+)?(?:[eE][+-]?\d+)?)\s*([^\s\d].*?)?\s*")


def quantity(text: object, dimension: str, clock_hz: float | None = None) -> float:
    """The figure in base units of `dimension` (a key of UNITS); per-cycle units need `clock_hz`.

    SpecError (without a place) where it is no figure, has no unit or another dimension's, or is not positive.

    >>> quantity("48 KiB", "bytes"), quantity("4 cycles", "time", clock_hz=2e9)
    (49152.0, 2e-09)
    """
    example = {"bytes": "48 KiB", "frequency": "1.98 GHz", "bandwidth": "4.8 TB/s", "time": "4 cycles"}.get(
        dimension, f"2 {next(iter(UNITS[dimension]))}"
    )
    units = [*UNITS[dimension], *PER_CYCLE.get(dimension, ())]
    hint = f"write it as `{example}`; units: {', '.join(units)}"
    if isinstance(text, int | float) and not isinstance(text, bool):
        raise SpecError(f"the figure {text} has no unit", hint=hint)
    found = _FIGURE.fullmatch(text) if isinstance(text, str) else None
    if found is None or found[2] is None:
        raise SpecError(f"{text!r} is not a figure with a unit", hint=hint)
    number, unit = float(found[1].replace(",", "").replace("_", "")), found[2]
    if unit in PER_CYCLE.get(dimension, ()):
        if clock_hz is None:
            raise SpecError(f"{text!r} counts cycles, and there is no clock", hint="state `units.clock`")
        factor = clock_hz if dimension == "bandwidth" else 1 / clock_hz
    elif unit in UNITS[dimension]:
        factor = UNITS[dimension][unit]
    else:
        raise SpecError(f"unknown unit {unit!r} for a figure of {dimension}", hint=_unit_hint(unit, dimension, units))
    value = number * factor
    if not (math.isfinite(value) and value > 0):
        raise SpecError(f"{text!r} is impossible: a figure of {dimension} is positive and finite")
    return value


def _unit_hint(unit: str, dimension: str, units: list[str]) -> str:
    other = next((d for d, table in UNITS.items() if unit in table and d != dimension), None)
    if other is not None:
        return f"{unit} measures {other}; units here: {', '.join(units)}"
    close = nearest(unit, units)
    return (f"did you mean {close!r}? " if close else "") + f"units: {', '.join(units)}"


def written(value: float, dimension: str, *units: str, clock_hz: float | None = None) -> str:
    """`value` (in base units) as text that reads back to exactly the same number, the shortest that `units` give.

    >>> written(1.98e9, "frequency", "GHz", "Hz")
    '1.98 GHz'
    >>> written(29 * (1 / 1.83e9), "time", "cycles", "ns", clock_hz=1.83e9)
    '29 cycles'
    """
    texts = []
    for unit in units:
        shown = value / quantity(f"1 {unit}", dimension, clock_hz)
        texts += [f"{shown:.{digits}g} {unit}" for digits in (6, 12, 17)]
    exact = [text for text in texts if quantity(text, dimension, clock_hz) == value]
    return min(exact, key=len, default=f"{value!r} {units[-1]}")
