"""Numbers and tables as plain text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from autosched.ir.work import within_peak

JOULES = ((1.0, "J"), (1e-3, "mJ"), (1e-6, "µJ"), (1e-9, "nJ"))


def scaled(value: float, units: Sequence[tuple[float, str]], digits: int) -> str:
    """A value above zero with so many digits, in the first of the units (from the largest down) that it fills.

    >>> [scaled(v, [(1.0, "s"), (1e-3, "ms")], 3) for v in (0.9996, 0.00999, 0.0102)]
    ['1.00 s', '9.99 ms', '10.2 ms']
    """
    rounded = float(f"{value:.{digits}g}")
    factor, unit = next((u for u in units if rounded >= u[0]), units[-1])
    shown = round(rounded / factor, digits)
    return f"{shown:.{max(digits - len(str(int(shown))), 0)}f} {unit}"


def seconds(value: float | None) -> str:
    """Seconds with a fitting unit; `-` for none.

    >>> seconds(1.234e-4), seconds(1e-3), seconds(None), seconds(float("inf"))
    ('123 µs', '1.00 ms', '-', '-')
    """
    if value is None or not isfinite(value):
        return "-"
    return scaled(value, ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")), 3) if value > 0 else "0 s"


def microseconds(value: float | None) -> str:
    """Seconds as microseconds with four digits, for tables whose numbers share a unit; `-` for none.

    >>> microseconds(1.234e-4), microseconds(2.5), microseconds(float("inf"))
    ('123.4 µs', '2,500,000 µs', '-')
    """
    if value is None or not isfinite(value):
        return "-"
    micro = float(f"{value * 1e6:.4g}")
    return f"{micro:,.0f} µs" if micro >= 1000 else f"{micro:.4g} µs"


def amount(value: float | None, objective: str) -> str:
    """What a study minimises: seconds for `latency`, joules for `energy`, joules times seconds for `edp`; `-` for none.

    >>> amount(1.234e-4, "latency"), amount(4e-5, "energy"), amount(1.284e-10, "edp")
    ('123 µs', '40.0 µJ', '1.28e-10 J·s')
    """
    if objective == "latency" or value is None or not isfinite(value) or value <= 0:
        return seconds(value)
    return f"{value:.3g} J·s" if objective == "edp" else scaled(value, JOULES, 3)


def speed(operations: float, value: float | None) -> str:
    """Operations a second with a fitting unit; `-` where there are none.

    >>> speed(2.7e8, 1e-3), speed(0, 1.0)
    ('270.0 GOP/s', '-')
    """
    if not value or not operations:
        return "-"
    return scaled(operations / value, ((1e12, "TOP/s"), (1e9, "GOP/s"), (1e6, "MOP/s"), (1.0, "OP/s")), 4)


def amount_of(number: float) -> str:
    """A count in words.

    >>> amount_of(2.7e8), amount_of(1234), amount_of(0)
    ('270 million', '1,234', '0')
    """
    if number < 1e6:
        return f"{number:,.0f}"
    return scaled(number, ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")), 3)


def bytes_of(count: int) -> str:
    """A number of bytes as people read them.

    >>> bytes_of(512), bytes_of(8192), bytes_of(3 << 20)
    ('512 bytes', '8 KiB', '3 MiB')
    """
    units = (("MiB", 1 << 20), ("KiB", 1 << 10))
    shown = ((count / of, name) for name, of in units if count >= of)
    return next((f"{n:,.0f} {name}" if n >= 1000 else f"{n:.3g} {name}" for n, name in shown), f"{count} bytes")


def counted(number: int, what: str) -> str:
    """A number of things.

    >>> counted(1, "plan"), counted(1200, "plan")
    ('1 plan', '1,200 plans')
    """
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def compared(ratio: float) -> str:
    """How a speed compares with another one, `ratio` times it; the number is never below 1.

    >>> compared(1.7), compared(0.5), compared(1.001), compared(23456.0)
    ('1.7x as fast as', '2x as slow as', 'as fast as', '23,456x as fast as')
    """
    more = max(ratio, 1 / ratio)
    if f"{more:.3g}" == "1":
        return "as fast as"
    return f"{times(more)}x as {'fast' if ratio > 1 else 'slow'} as"


def of_peak(ratio: float) -> str:
    """A share of the peak, which says so where it is more than there can be.

    >>> of_peak(0.98), of_peak(1.004), of_peak(1.2)
    ('98% of peak', '100% of peak', 'above the peak')
    """
    return f"{ratio:.0%} of peak" if within_peak(ratio) else "above the peak"


def times(ratio: float) -> str:
    """Three digits below a hundred, whole numbers above.

    >>> times(2.345), times(1234.5)
    ('2.35', '1,234')
    """
    return f"{ratio:.3g}" if ratio < 100 else f"{ratio:,.0f}"


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


def schedule_lines(named: Mapping[str, int | str]) -> list[str]:
    """The decisions of a schedule: on one line where they are of one part, else a line for each part and for each group
    of parts that decide alike.

    >>> schedule_lines({"reg_i": 4, "order": "j i"})
    ['reg_i=4  order=j i']
    >>> schedule_lines({"C.reg_i": 4, "M.vector": 16, "M.unroll": 2, "Z.vector": 16, "Z.unroll": 2})
    ['C: reg_i=4', 'M, Z: vector=16  unroll=2']
    """
    parts: dict[str, list[str]] = {}
    for name, value in named.items():
        part, _, decision = name.rpartition(".")
        parts.setdefault(part, []).append(f"{decision}={value}")
    alike: dict[str, list[str]] = {}
    for part, decisions in parts.items():
        alike.setdefault("  ".join(decisions), []).append(part)
    if list(parts) in ([], [""]):
        return list(alike)
    return [f"{', '.join(filter(None, names))}: {said}" if any(names) else said for said, names in alike.items()]
