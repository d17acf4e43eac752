"""Proof 1, inside a tile, by trying all points: do the coordinates of a window (`a[i + k]`) determine the element, and
whether a guard holds?

Axes that no subscript adds up are apart: `a[y + r, x + s]` asks of y and r, and of x and s. Each part has few points,
and looking at them takes a hundredth of the time that a solver does. What has many is left to the solver, and so is
what depends on data or on symbolic sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from autosched.ir.nodes import Axis
from autosched.ir.value import Read
from autosched.logic import Bool, Int, Var, affine, evaluate, free_vars
from autosched.logic.affine import Affine
from autosched.tensorize.addresses.axes import Assignment, Tile, index_axes
from autosched.tensorize.addresses.stage_facts import StageFacts

MOST_POINTS = 1 << 14
MOST_PAIRS = 8


def element_tried(facts: StageFacts, operand: Read, read: Read, assignment: Assignment, tile: Tile) -> bool | None:
    """Whether points of a tile with the same coordinates of `operand` always mean the same element `read`; None where
    trying does not tell."""
    pattern, subscripts = _sums(operand), _sums(read)
    if pattern is None or subscripts is None or facts.program.symbolic:
        return None
    differ = False
    for axes in _parts(operand):
        points = _points(facts, assignment, tile, axes, pattern, alike=True)
        if points is None:
            return None
        columns = [sum(part.coefficient(y) * of for y, of in points.values.items()) for part in subscripts]
        pairs = _differing(points.keys, _joined(columns, points.count))
        if len(pairs) and facts.exact == set(facts.extents):
            return False
        for pair in pairs[:MOST_PAIRS]:
            if _both_run(facts, [{y: int(of[n]) for y, of in points.values.items()} for n in pair]):
                return False
        differ = differ or bool(len(pairs))
    return None if differ else True


def guard_tried(facts: StageFacts, operand: Read, guard: Bool, assignment: Assignment, tile: Tile) -> bool | None:
    """Whether a guard over axes holds at both or at none of two such points, all over the hull of the loops; None where
    trying does not tell."""
    pattern, names = _sums(operand), free_vars(guard)
    if pattern is None or facts.program.symbolic or not names <= set(facts.extents):
        return None
    on = {x for x, fused in assignment.axes.items() if names & set(fused)}
    axes = [x for part in _parts(operand) if on & set(part) for x in part]
    points = _points(facts, assignment, tile, axes, pattern, alike=False)
    if points is None:
        return None
    others = [y for y in names if y not in points.values]  # the same at both points
    if points.count * prod(facts.extents[y] for y in others) > 4 * MOST_POINTS:
        return None
    grid = np.meshgrid(*(np.arange(facts.extents[y]) + facts.ranges[y][0] for y in others), indexing="ij")
    env: dict[str, Any] = {y: of.ravel()[None, :] for y, of in zip(others, grid, strict=True)}
    env |= {y: of[:, None] for y, of in points.values.items() if y in names}
    holds = np.broadcast_to(evaluate(guard, env), (points.count, grid[0].size if others else 1))
    return not len(_differing(points.keys, holds))


@dataclass(frozen=True)
class _Points:
    """`keys`: tile and coordinates of each point; `values`: of each program axis there."""

    count: int
    keys: Any
    values: dict[str, Any]


def _points(
    facts: StageFacts,
    assignment: Assignment,
    tile: Tile,
    axes: Iterable[str],
    pattern: Sequence[Affine],
    alike: bool,
) -> _Points | None:
    """All points of some axes of the instruction. `alike`: all tiles are, of an axis that holds one program axis."""
    axes = list(axes)
    counts = [prod(facts.extents[y] for y in assignment.axes[x]) for x in axes]
    if alike:
        few = [len(assignment.axes[x]) < 2 for x in axes]
        counts = [min(n, tile.extents[x]) if one else n for n, x, one in zip(counts, axes, few, strict=True)]
    count = prod(counts)
    if count > MOST_POINTS:
        return None
    keys: list[Any] = []
    cells: list[Any] = [0] * len(pattern)
    values: dict[str, Any] = {}
    for x, number in zip(axes, np.meshgrid(*map(np.arange, counts), indexing="ij"), strict=True):
        keys.append(number // tile.extents[x])
        cells = [c + part.coefficient(x) * (number % tile.extents[x]) for c, part in zip(cells, pattern, strict=True)]
        for y in reversed(assignment.axes[x]):
            values[y] = (number % facts.extents[y] + facts.ranges[y][0]).ravel()
            number = number // facts.extents[y]
    return _Points(count, _joined([*keys, *cells], count), values)


def _parts(operand: Read) -> list[list[str]]:
    """The axes that share a coordinate, in groups that share none. What is a coordinate by itself is in no group."""
    alone = {p.name for p in operand.index if isinstance(p, Var)}
    found: list[set[str]] = []
    for part in operand.index:
        names = set(index_axes((part,))) - alone
        touched = [f for f in found if f & names]
        found = [f for f in found if not f & names]
        found += [names.union(*touched)] if names else []
    return [sorted(f) for f in found]


def _both_run(facts: StageFacts, fixed: Sequence[Mapping[str, int]]) -> bool:
    """Whether two points are found that the loops run, with these values of some axes, and the same of the others."""

    def found(left: tuple[Axis, ...], points: list[dict[str, int]]) -> bool:
        if not left:
            return True
        axis = left[0]
        low = max(evaluate(axis.lower, p) for p in points)
        high = min(evaluate(axis.upper, p) for p in points) - 1
        if axis.name in fixed[0]:
            own = [f[axis.name] for f in fixed]
            if not all(
                evaluate(axis.lower, p) <= v < evaluate(axis.upper, p) for p, v in zip(points, own, strict=True)
            ):
                return False
            return found(left[1:], [{**p, axis.name: v} for p, v in zip(points, own, strict=True)])
        few = dict.fromkeys(v for v in (low, high, (low + high) // 2) if low <= v <= high)
        return any(found(left[1:], [{**p, axis.name: v} for p in points]) for v in few)

    return found(facts.stage.axes, [{}, {}])


def _sums(read: Read) -> list[Affine] | None:
    found = []
    for part in read.index:
        form = affine(part) if isinstance(part, Int) else None
        if form is None:
            return None
        found.append(form)
    return found


def _joined(columns: Sequence[Any], points: int) -> Any:
    """One row a point."""
    return np.stack([np.broadcast_to(np.asarray(c).ravel(), points) for c in (*columns, 0)], axis=1)


def _differing(keys: Any, values: Any) -> Any:
    """Pairs of rows with equal keys and other values."""
    _, place = np.unique(keys, axis=0, return_inverse=True)
    place = place.ravel()
    first = np.full(place.max() + 1, -1)
    first[place[::-1]] = np.arange(len(place))[::-1]
    other = np.flatnonzero((values != values[first[place]]).any(axis=1))
    return np.stack([first[place[other]], other], axis=1)
