"""The program's loops as written, in bands of rows: with what they write, whole outputs of large programs are compared.

The interpreter computes boxes of them only. These loops share neither rewrites nor tiles nor instructions with the
candidates; each statement is a nest of its own, along the rows of what it writes (`ir.oracle.nests.along_rows`). Where
they take long they run in bands, each with what it depends on, in an order that spreads those that there is time for
over all rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from autosched.device.cpu.build import compile_draft, draft
from autosched.device.cpu.builder import Builder
from autosched.device.job import Band, RowsAlong
from autosched.errors import AutoschedError
from autosched.ir.oracle.nests import Unit, along_rows, plan
from autosched.ir.oracle.slicing import Box, narrowed, slice_of
from autosched.ir.program import Program
from autosched.ir.work import steps
from autosched.machine.target import Target
from autosched.tiling.candidate import Candidate
from autosched.tiling.plans.literal import literal_plan

RATE = 1e9
"""Operations a second that such loops do, about."""
BAND_S, BANDS, LONG_S = 0.5, 64, 5.0
"""What a band is to take, at that rate; the most bands that are built; and what one may take where these are not all
bands."""
WASTE = 1.3
"""How much more all bands together may compute than the whole: a statistic of all rows belongs to every band."""
ROWS = 16
"""Rows are along the first dimension that has so many, else along the longest."""


@dataclass(frozen=True)
class PlainLoops:
    """The first of `count` bands, each compiled, in the order to run them in."""

    bands: tuple[Band, ...]
    count: int


def plain_loops(
    program: Program, target: Target, builder: Builder, scalars: Mapping[str, Any], budget_s: float
) -> PlainLoops:
    """The loops in bands of which several fit into so many seconds. AutoschedError where they cannot be built."""
    program = replace(program, body=along_rows(program.body))
    axes = {name: _axis(program.tensors[name].extents) for name in program.outputs}
    count = _count(program, axes, min(1.0, budget_s / 8))
    bands = [_rows(program, axes, count, number) for number in _spread(count)[:BANDS]]
    return PlainLoops(tuple(_band(program, target, builder, scalars, rows, count > 1) for rows in bands), count)


def _band(
    program: Program,
    target: Target,
    builder: Builder,
    scalars: Mapping[str, Any],
    rows: dict[str, RowsAlong],
    part: bool,
) -> Band:
    body = narrowed(program, _boxes(program, rows)) if part else None
    built = compile_draft(draft(Candidate(literal_plan(program, target, body), 0), dict(scalars)), target, builder)
    if built.error is not None:
        raise AutoschedError(built.error)
    return Band(replace(built.payload, violations=()), rows)


def _axis(extents: tuple[int, ...]) -> int:
    """The dimension whose elements are rows."""
    long = [d for d, extent in enumerate(extents) if extent >= ROWS]
    return long[0] if long else max(range(len(extents)), key=lambda d: extents[d], default=0)


def _rows(program: Program, axes: Mapping[str, int], count: int, number: int) -> dict[str, RowsAlong]:
    """Of each output, one of so many bands of rows."""
    extents = {name: (*program.tensors[name].extents, 1)[axis] for name, axis in axes.items()}
    return {
        name: RowsAlong(axes[name], extent * number // count, extent * (number + 1) // count)
        for name, extent in extents.items()
    }


def _boxes(program: Program, rows: Mapping[str, RowsAlong]) -> dict[str, Box]:
    found = {}
    for name, part in rows.items():
        whole = [(0, n) for n in program.tensors[name].extents]
        if part.high > part.low and whole:
            whole[part.axis] = part.low, part.high - part.low
        if part.high > part.low:
            found[name] = tuple(whole)
    return found


def _count(program: Program, axes: Mapping[str, int], band_s: float) -> int:
    """How many bands there are to be; short ones take `band_s` seconds."""
    whole_s = steps(program) / RATE
    count = max(min(BANDS, math.ceil(whole_s / min(BAND_S, band_s))), math.ceil(whole_s / min(LONG_S, 5 * band_s)))
    longest = max(((*program.tensors[n].extents, 1)[axis] for n, axis in axes.items()), default=1)
    count = min(count, longest)
    units = plan(program.body)
    while count > 1 and _waste(program, axes, count, units) > WASTE:
        count //= 2
    return max(count, 1)


def _waste(program: Program, axes: Mapping[str, int], count: int, units: tuple[Unit, ...]) -> float:
    """How much more all bands together compute than the whole, by a few of them."""
    whole = {name: tuple((0, n) for n in program.tensors[name].extents) for name in program.outputs}
    few = sorted({0, count // 2, count - 1})
    points = [slice_of(program, _boxes(program, _rows(program, axes, count, k)), units).points for k in few]
    return count * sum(points) / len(points) / max(1, slice_of(program, whole, units).points)


def _spread(count: int) -> list[int]:
    """0 to count - 1, such that the first few are evenly apart: the ends, then halves between those before."""
    order = list(dict.fromkeys([0, count - 1]))
    while len(order) < count:
        known = sorted(order)
        order += [(a + b) // 2 for a, b in pairwise(known) if b - a > 1]
    return order
