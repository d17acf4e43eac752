"""Bytes that a team's part on a GPU moves: out of memory, out of L2, and over the ports of the cores.

Lanes that are no neighbours in memory take a line of the core's port each. What a window reads again is in a core's
cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

from autosched.costmodel.analytic.gpu.gpu_traffic import LINE_BYTES, Column
from autosched.ir.nodes import Axis, Stage
from autosched.ir.program import Program
from autosched.ir.value import Read, reads
from autosched.logic import Int, affine, free_vars
from autosched.tiling.plans.plan import WarpCooperativePart
from autosched.tiling.plans.teams import elements, inner_axes
from autosched.tiling.steps.scalar.results_per_thread import moves, slides

TILED_LINES = 3.0  # of what passes through a tile in shared memory: read, written there, and read again


@dataclass(frozen=True)
class ReadBytes:
    """Of all blocks together, each of shape (rows,)."""

    first: Column  # by the first member that reads an element
    again: Column  # by later members
    port: Column  # over the cores' ports: of lanes that are no neighbours in memory a line each


def read_bytes(
    part: WarpCooperativePart,
    vector: Column,
    tiled: npt.NDArray[np.bool_],
    results_along: Mapping[str, Column],
    program: Program,
) -> ReadBytes:
    """Bytes that lanes read in loads of `vector` elements, `tiled` where they pass through a tile in shared memory;
    `results_along`: results of a thread by axis."""
    first, again, port = np.zeros_like(vector), np.zeros_like(vector), np.zeros_like(vector)
    seen: set[str] = set()
    for member in part.members:
        for read in dict.fromkeys(reads(member.assign.value)):
            size = read.dtype.bits / 8
            distinct = float(elements([a for a in member.axes if a.name in _vars(read)])) * size
            tensor = float(prod(program.tensors[read.tensor].extents)) * size
            if read.tensor in seen:
                again = again + min(distinct, tensor)
            else:
                first = first + min(distinct, tensor)
                seen.add(read.tensor)
            stride = lane_stride(part, member, read)
            asked = float(elements(member.axes)) * size if stride else distinct
            share = read_share(part, read, results_along) if member is part.members[0] else 1.0
            lines = 1.0 if stride <= 1 else min(LINE_BYTES / size, float(stride))
            joined = np.gcd(vector.astype(np.int64), _row_elements(member, read)).astype(np.float64)
            each = np.where(stride == 1, vector / joined, np.where(tiled, TILED_LINES, lines))
            port = port + asked * share * each
        seen.add(member.assign.tensor)
    return ReadBytes(first, again, port)


def read_share(part: WarpCooperativePart, read: Read, results_along: Mapping[str, Column]) -> Column | float:
    """How often a thread with several results reads an element, over how often it would with one at a time."""
    share: Column | float = 1.0
    for axis, count in results_along.items():
        terms = slides(part, read, axis) if moves(read, axis) else 0
        share = share * (np.minimum(1.0, (count + terms - 1.0) / (count * terms)) if terms else 1.0 / count)
    return share


def written_bytes(part: WarpCooperativePart, program: Program) -> float:
    """Bytes of the program's own tensors that the part writes."""
    found = {m.assign.tensor: m for m in part.members if not program.tensors[m.assign.tensor].intermediate}
    return sum(float(elements(m.spatial)) * m.assign.value.dtype.bits / 8 for m in found.values())


def lane_stride(part: WarpCooperativePart, member: Stage, read: Read) -> int:
    """Elements from one lane's to the next one's along the innermost axis of lanes, 0 where all read one."""
    inner = [a for a in inner_axes(part, member) if a.extent > 1]
    if not inner:
        return 0
    return abs(_stride(member, read, inner[-1]))


def _stride(member: Stage, read: Read, axis: Axis) -> int:
    """Elements from one step along the axis to the next; a large number where no formula says."""
    total, below = 0, 1
    extents = _extents(member, read)
    for index, extent in zip(reversed(read.index), reversed(extents), strict=True):
        form = affine(index) if isinstance(index, Int) else None
        if form is None:
            return 1 << 20
        total += form.coefficient(axis.name) * below
        below *= extent
    return total


def _extents(member: Stage, read: Read) -> list[int]:
    """The range of each subscript, as far as the member's loops say: the tensor is at least as large."""
    found = []
    for index in read.index:
        form = affine(index) if isinstance(index, Int) else None
        names = {} if form is None else form.coefficients
        found.append(1 + sum(abs(names.get(a.name, 0)) * (a.extent - 1) for a in member.axes))
    return found


def _row_elements(member: Stage, read: Read) -> int:
    """Elements of a row of the tensor that is read."""
    return _extents(member, read)[-1] if read.index else 1


def _vars(read: Read) -> frozenset[str]:
    """Axes that the subscripts read."""
    return frozenset[str]().union(*(free_vars(i) for i in read.index if isinstance(i, Int)))
