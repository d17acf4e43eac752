"""Values of run-time scalars on which a kernel is checked beside a random one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from autosched.ir.oracle.assumed import assumed_range
from autosched.ir.oracle.numerics import round_float, store
from autosched.ir.program import Program

MOST = 6
"""Data sets for scalars."""
FLOATS = (0.0, -3.0, 1.0, 5.0, -1.0, 0.5)
INTEGERS = (0, 1, -1, 3, 7, 17)
NEAR_TILES = (16, 17, 33, 65)


def scalar_sets(program: Program, compared: Mapping[str, tuple[int | float, ...]]) -> Iterator[dict[str, Any]]:
    """All scalars in each data set: zero, one, negative, odd, at the ends of what is assumed; of one that is compared
    with an axis the axis' ends, and next to tiles."""
    values = {name: _values(program, name, compared.get(name, ())) for name in program.scalars}
    seen = []
    for number in range(min(MOST, max(map(len, values.values()), default=0))):
        chosen = {n: several[(number + shift) % len(several)] for shift, (n, several) in enumerate(values.items())}
        if chosen not in seen:
            seen.append(chosen)
            yield {n: stored(program, n, v) for n, v in chosen.items()}


def stored(program: Program, name: str, value: float) -> Any:
    """A number as the program's scalar."""
    dtype = program.scalars[name].dtype
    if dtype.is_float:
        return store(np.asarray(round_float(np.float64(value), dtype)), dtype)[()]
    return store(np.asarray(value, np.uint64 if dtype.name == "u64" else np.int64), dtype)[()]


def _values(program: Program, name: str, near: tuple[int | float, ...]) -> list[int | float]:
    """What a scalar may be, the most telling first."""
    dtype = program.scalars[name].dtype
    low, high = assumed_range(program, name)
    if dtype.is_float:
        said: list[int | float] = [v for v in (low, high) if v is not None]
        wanted = [*near[:1], *near[-1:], *near, *said, *FLOATS] if near else [*said, *FLOATS]
    else:
        least, most = dtype.limits
        low, high = least if low is None else max(least, low), most if high is None else min(most, high)
        borders = [v for v in NEAR_TILES if near and near[0] <= v <= near[-1]]
        axis = [near[-2], 1, near[-3], *borders[1:], 0, near[0]] if len(near) > 3 else list(near)
        ends = [high, low] if (low, high) != (least, most) or dtype.bits <= 16 else []
        wanted = [*axis, *([] if near else ends), *INTEGERS, *ends]
    inside = [v for v in dict.fromkeys(wanted) if (low is None or v >= low) and (high is None or v <= high)]
    return inside or [v for v in (low, high) if v is not None]
