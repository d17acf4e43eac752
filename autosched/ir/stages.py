"""Stages of a program, and which parameters' entry values matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from autosched.ir.nodes import Assign, Axis, Guard, Loop, Stage, Statement, Tensor
from autosched.ir.value import Condition, Index, Logical, Read, Value, is_value, reads
from autosched.ir.variables import index_vars
from autosched.ir.written_first import ElementAccess, written_first
from autosched.logic import Const, Int, Var, affine, evaluate

_COUNTED_POINTS = 2**20
"""Largest nest whose written elements are counted one by one to see that it fills a tensor."""


@dataclass(frozen=True)
class _StagePlace:
    """An assignment with its loops and guards; `path` numbers the statements from the root down to it."""

    assign: Assign
    axes: tuple[Axis, ...]
    guards: tuple[Condition, ...]
    path: tuple[int, ...]


def _places(
    body: tuple[Statement, ...],
    axes: tuple[Axis, ...] = (),
    guards: tuple[Condition, ...] = (),
    path: tuple[int, ...] = (),
) -> Iterator[_StagePlace]:
    for k, node in enumerate(body):
        match node:
            case Loop(axis, inner):
                yield from _places(inner, (*axes, axis), guards, (*path, k))
            case Guard(condition, inner):
                yield from _places(inner, axes, (*guards, *conjuncts_of(condition)), (*path, k))
            case Assign():
                yield _StagePlace(node, axes, guards, (*path, k))


def conjuncts_of(condition: Condition) -> tuple[Condition, ...]:
    """An `and` of formulas over axes and of data, taken apart: the formulas say where anything may be touched."""
    if isinstance(condition, Logical) and condition.op == "and":
        return tuple(c for part in condition.parts for c in conjuncts_of(part))
    return (condition,)


def condition_reads(conditions: tuple[Condition, ...]) -> tuple[Read, ...]:
    """All tensor reads in data-dependent conditions."""
    return tuple(r for c in conditions if is_value(c) for r in reads(c))


def _stage_reads(place: _StagePlace) -> tuple[Read, ...]:
    subscripts = tuple(r for i in place.assign.index if not isinstance(i, Int) for r in reads(i))
    return (*condition_reads(place.guards), *subscripts, *reads(place.assign.value))


def stages_of(body: tuple[Statement, ...]) -> tuple[Stage, ...]:
    """All stages of a program's body in textual order. An initialisation is merged into the stage that it starts:

    C[i] = 0                    one stage C: axes i p, `+=`, init 0
    for p in range(k):
        C[i] += A[i, p]
    """
    places = list(_places(body))
    merged: dict[int, Value] = {}
    absorbed: set[int] = set()
    for k, place in enumerate(places):
        update = _initialised(places, k)
        if update is not None:
            merged[update] = place.assign.value
            absorbed.add(k)
    counts: dict[str, int] = {}
    found = []
    for k, place in enumerate(places):
        if k in absorbed:
            continue
        tensor = place.assign.tensor
        counts[tensor] = counts.get(tensor, 0) + 1
        name = tensor if counts[tensor] == 1 else f"{tensor}.{counts[tensor]}"
        found.append(Stage(name, place.axes, place.guards, place.assign, merged.get(k)))
    return tuple(found)


def _initialised(places: list[_StagePlace], k: int) -> int | None:
    """The update that the plain assignment at `k` is the initial value of, if there is one."""
    init = places[k]
    target = init.assign
    if target.op != "=" or init.guards or any(r.tensor == target.tensor for r in _stage_reads(init)):
        return None
    if {a.name for a in init.axes} - index_vars(target.index):
        return None  # an outer loop repeats the whole reduction; its init is a statement of its own
    between: set[str] = set()
    for j in range(k + 1, len(places)):
        other = places[j]
        if other.path[: len(init.path) - 1] != init.path[:-1]:
            return None
        if other.assign.tensor == target.tensor:
            # A loop of its own: what a guard alone surrounds happens once or not at all, and starts nothing.
            inside = len(other.axes) > len(init.axes) and other.axes[: len(init.axes)] == init.axes
            update = other.assign.op != "=" and other.assign.index == target.index
            reads_it = any(r.tensor == target.tensor for r in _stage_reads(other))
            moved = between & {r.tensor for r in _stage_reads(init)}
            starts = inside and update and not reads_it and not moved
            return j if starts and not _updated_otherwise(places, j, len(init.axes)) else None
        if any(r.tensor == target.tensor for r in _stage_reads(other)):
            return None
        between.add(other.assign.tensor)
    return None


def _updated_otherwise(places: list[_StagePlace], k: int, depth: int) -> bool:
    """Whether another kind of update of what the one at `k` updates is inside its loop number `depth`: what comes
    before that loop starts both."""
    this = places[k]
    around = this.axes[: depth + 1]
    same = (p for p in places[k + 1 :] if p.axes[: depth + 1] == around)
    return any(p.assign.tensor == this.assign.tensor and p.assign.op != this.assign.op for p in same)


def live_in(
    body: tuple[Statement, ...], tensors: Mapping[str, Tensor], symbolic: Mapping[str, tuple[int, int]]
) -> frozenset[str]:
    """Tensors of those whose entry values matter: the ones that are read before they are wholly written.

    A written tensor is an output where its first mention is a plain assignment, without guards, that fills it whole,
    and no later read can meet an element before that assignment reached it; and where z3 proves that each element is
    written before it is read, in parts (`written_first`). Anything else is inout.
    """
    places = list(_places(body))
    mentioned: dict[str, list[_StagePlace]] = {}
    for place in places:
        for name in {place.assign.tensor, *(r.tensor for r in _stage_reads(place))}:
            mentioned.setdefault(name, []).append(place)
    live = set()
    for name, tensor in tensors.items():
        mentions = mentioned.get(name, [])
        if not any(p.assign.tensor == name for p in mentions):
            live.add(name)  # only read (or not mentioned at all)
        elif not _written_first(tensor, mentions) and not _proved(tensor, symbolic, mentions):
            live.add(name)
    return frozenset(live)


def _written_first(tensor: Tensor, mentions: list[_StagePlace]) -> bool:
    name, first = tensor.name, mentions[0]
    if (
        first.assign.tensor != name
        or first.assign.op != "="
        or first.guards
        or any(r.tensor == name for r in _stage_reads(first))
    ):
        return False
    if not _fills(tensor, first):
        return False
    for other in mentions[1:]:
        shared = {a.name for a, b in zip(first.axes, other.axes, strict=False) if a == b}
        touched = [r.index for r in _stage_reads(other) if r.tensor == name]
        if other.assign.tensor == name and other.assign.op != "=":
            touched.append(other.assign.index)
        for index in touched:
            for mine, theirs in zip(first.assign.index, index, strict=True):
                # Where a loop is shared, only the element written in this very iteration is known to be there.
                if index_vars((mine,)) & shared and mine != theirs:
                    return False
    return True


def _proved(tensor: Tensor, symbolic: Mapping[str, tuple[int, int]], mentions: list[_StagePlace]) -> bool:
    """Whether z3 proves that its elements are written, in parts, before they are read."""
    name = tensor.name
    writes: list[ElementAccess] = []
    uses: list[ElementAccess] = []
    for p in mentions:
        if p.assign.tensor == name:
            target = ElementAccess(p.axes, p.guards, p.path, p.assign.index)
            (writes if p.assign.op == "=" else uses).append(target)
        uses += [ElementAccess(p.axes, p.guards, p.path, r.index) for r in _stage_reads(p) if r.tensor == name]
    return written_first(tensor.shape, symbolic, writes, uses)


def _fills(tensor: Tensor, place: _StagePlace) -> bool:
    """Whether the assignment writes every element of its tensor."""
    full = True
    ranges = {a.name: a for a in place.axes}
    used: set[str] = set()
    for part, size in zip(place.assign.index, tensor.shape, strict=True):
        if isinstance(part, Var) and part.name in ranges and part.name not in used:
            used.add(part.name)
            axis = ranges[part.name]
            full = full and axis.lower == Const(0) and axis.upper == size
        elif (digits := _digits(part, size, ranges)) is not None and not digits & used:
            used |= digits
        else:
            full = False
    if full:
        others = [a for a in place.axes if a.name not in used]
        return all(isinstance(a.lower, Const) and isinstance(a.upper, Const) and a.extent > 0 for a in others)
    return _fills_by_count(place, tensor.shape)


def _digits(part: Index, size: Int, ranges: dict[str, Axis]) -> frozenset[str] | None:
    """The axes that a subscript counts with, digits of a number that takes every value below `size`; None where it
    takes fewer, or others. (`g * 16 + o`, `g < 4`, `o < 16`: every value below 64.)"""
    form = affine(part) if isinstance(part, Int) else None
    if form is None or form.constant or not isinstance(size, Const):
        return None
    counted = 1
    for name, step in sorted(form.coefficients.items(), key=lambda term: term[1]):
        axis = ranges.get(name)
        if axis is None or axis.lower != Const(0) or not isinstance(axis.upper, Const) or step != counted:
            return None
        counted *= axis.extent
    return frozenset(form.coefficients) if counted == size.value else None


def _fills_by_count(place: _StagePlace, shape: tuple[Int, ...]) -> bool:
    """Mark the written elements one by one; only for constant boxes of moderate size."""
    constant = all(isinstance(a.lower, Const) and isinstance(a.upper, Const) for a in place.axes)
    if (
        not constant
        or not all(isinstance(s, Const) for s in shape)
        or not all(isinstance(p, Int) for p in place.assign.index)
    ):
        return False
    extents = tuple(a.extent for a in place.axes)
    dims = tuple(s.value for s in shape if isinstance(s, Const))
    if max(prod(extents), prod(dims)) > _COUNTED_POINTS:
        return False
    points = np.indices(extents, dtype=np.int64)
    env = {a.name: points[d] + int(evaluate(a.lower, {})) for d, a in enumerate(place.axes)}
    index = [np.broadcast_to(evaluate(p, env), extents) for p in place.assign.index]  # type: ignore[arg-type]
    if any(((i < 0) | (i >= n)).any() for i, n in zip(index, dims, strict=True)):
        return False
    seen = np.zeros(dims, bool)
    seen[tuple(index)] = True
    return bool(seen.all())
