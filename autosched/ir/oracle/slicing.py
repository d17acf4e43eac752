"""A part of a program: the iterations that a box of a tensor depends on, through all statements, and nothing else.

Each tensor gets one box of elements, such that every iteration that writes an element of a box reads elements of boxes
alone. Boxes grow from what is wanted until that holds. Running all iterations that write into boxes, in the program's
order, then gives these elements their values: by induction, each of these iterations finds what it would have found.
Bounds come from intervals, so that a box may be larger than needed, never smaller.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import TypeAlias

from autosched.ir.nodes import Assign, Axis, Guard, Loop, Statement
from autosched.ir.oracle.nests import LoopNest, Serial, Unit, plan
from autosched.ir.program import Program
from autosched.ir.value import Condition, Index, Read, Value, is_value, map_value, reads
from autosched.logic import Bool, Const, Int, affine, interval
from autosched.logic.expr import all_of, compare, maximum, minimum

Box: TypeAlias = tuple[tuple[int, int], ...]
"""The first element and the count, in each dimension."""
Ranges: TypeAlias = Mapping[str, tuple[int, int]]
PASSES = 3
"""Passes over the program after which a dimension that still grows is taken whole (a scan grows by one each time)."""


@dataclass(frozen=True)
class Slice:
    """`units` compute the elements of `boxes` (by tensor; read ones included). Subscripts count from a box's first
    element, so that an array need hold no more than its box. `origin` gives each assignment, by `id`, that of the
    program which it is. `counts` are the nests in order, each with how often serial loops around it run it, and the
    iterations of one such run."""

    boxes: dict[str, Box]
    units: tuple[Unit, ...]
    origin: dict[int, Assign]
    counts: tuple[tuple[LoopNest, int, int], ...]

    @property
    def points(self) -> int:
        """Iterations of all nests."""
        return sum(runs * inner for _, runs, inner in self.counts)


def slice_of(program: Program, wanted: Mapping[str, Box], units: tuple[Unit, ...] | None = None) -> Slice:
    """What computes the wanted boxes of a program without symbolic sizes. `units` are `ir.oracle.nests.plan`'s of its
    body, if they are known."""
    units = plan(program.body) if units is None else units
    shapes = {name: tensor.extents for name, tensor in program.tensors.items()}
    closure = _Closure(shapes, units)
    closure.grow(wanted)
    made = _Rebuilt(closure)
    kept = tuple(u for unit in units if (u := made.unit(unit, {})) is not None)
    boxes = {name: tuple((low, high - low) for low, high in box) for name, box in closure.boxes.items()}
    return Slice(boxes, kept, made.origin, tuple(made.counts))


def narrowed(
    program: Program, wanted: Mapping[str, Box], units: tuple[Unit, ...] | None = None
) -> tuple[Statement, ...]:
    """The program's statements in their order, loops cut to what the wanted boxes depend on; arguments as `slice_of`
    takes them. Elements outside of the boxes may have any value afterwards."""
    closure = _Closure(
        {name: tensor.extents for name, tensor in program.tensors.items()},
        plan(program.body) if units is None else units,
    )
    closure.grow(wanted)
    return _narrowed(closure, program.body, {}, ())


def _narrowed(
    closure: _Closure, body: tuple[Statement, ...], known: Ranges, outer: tuple[Axis | Condition, ...]
) -> tuple[Statement, ...]:
    """Of statements inside the loops and guards `outer` (as they are written), whose axes have `known` ranges."""
    kept: list[Statement] = []
    for node in body:
        match node:
            case Loop(axis, inside):
                levels = (*outer, axis)
                found = [closure.ranges((*levels, *inner), assign) for inner, assign in _assignments(inside)]
                ends = [ranges[axis.name] for ranges in found if ranges is not None]
                if ends:
                    hull = min(low for low, _ in ends), max(high for _, high in ends)
                    cut = _cut(axis, hull, known)
                    kept.append(Loop(cut, _narrowed(closure, inside, {**known, axis.name: hull}, levels)))
            case Guard(condition, inside):
                if within := _narrowed(closure, inside, known, (*outer, condition)):
                    kept.append(Guard(condition, within))
            case Assign():
                if closure.ranges(outer, node) is not None:
                    kept.append(node)
    return tuple(kept)


def _assignments(
    body: tuple[Statement, ...], levels: tuple[Axis | Condition, ...] = ()
) -> Iterator[tuple[tuple[Axis | Condition, ...], Assign]]:
    """The assignments in statements, each with the loops and guards around it there."""
    for node in body:
        match node:
            case Loop(axis, inside):
                yield from _assignments(inside, (*levels, axis))
            case Guard(condition, inside):
                yield from _assignments(inside, (*levels, condition))
            case Assign():
                yield levels, node


def parts_of(node: Value | Condition | Index) -> Iterator[Read]:
    """Every element that a value, a condition or a subscript reads."""
    if is_value(node):
        yield from reads(node)


@dataclass
class _Closure:
    """`boxes`: of each tensor, by dimension, the first element and the one behind the last."""

    shapes: Mapping[str, tuple[int, ...]]
    units: tuple[Unit, ...]
    boxes: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    changed: bool = False
    number: int = 0

    def __post_init__(self) -> None:
        self._whole = {  # dimensions that data address where they are written
            (n.assign.tensor, d)
            for unit in self.units
            for n, _ in _nests(unit)
            for d, part in enumerate(n.assign.index)
            if not isinstance(part, Int)
        }

    def grow(self, wanted: Mapping[str, Box]) -> None:
        for name, box in wanted.items():
            self._add(name, [(low, low + count) for low, count in box])
        self.changed = True
        while self.changed:
            self.changed = False
            self.number += 1
            for unit in reversed(self.units):
                self._visit(unit)

    def _visit(self, unit: Unit) -> None:
        hull: dict[str, tuple[int, int]] = {}
        around: list[Condition] = []
        for nest, outer in reversed(list(_nests(unit))):
            ranges = self.ranges((*outer, *nest.levels), nest.assign)
            if ranges is None:
                continue
            for node in (nest.assign.value, *nest.conditions, *nest.assign.index):
                self._read(node, ranges)
            for level in outer:
                if isinstance(level, Axis):
                    low, high = ranges[level.name]
                    before = hull.get(level.name, (low, high))
                    hull[level.name] = min(low, before[0]), max(high, before[1])
                else:
                    around.append(level)
        for test in around:  # looked at once for all that is inside
            self._read(test, hull)

    def ranges(self, levels: tuple[Axis | Condition, ...], assign: Assign) -> dict[str, tuple[int, int]] | None:
        """Inclusive bounds of the axes over the iterations that write into the box; None where there are none."""
        box = self.boxes.get(assign.tensor)
        if box is None:
            return None
        axes = [level for level in levels if isinstance(level, Axis)]
        found: dict[str, tuple[int, int]] = {}
        for axis in axes:
            found[axis.name] = _bounds(axis, found)
        forms = [(affine(p) if isinstance(p, Int) else None, b) for p, b in zip(assign.index, box, strict=True)]
        for _ in range(2):
            for form, (low, high) in forms:
                for name in form.coefficients if form is not None else ():
                    assert form is not None
                    found[name] = _solved(form.coefficients, form.constant, name, found, low, high - 1)
            known: dict[str, tuple[int, int]] = {}
            for axis in axes:
                least, most = _bounds(axis, known)
                low, high = found[axis.name]
                known[axis.name] = max(least, low), min(most, high)
            found = known
        return None if any(high < low for low, high in found.values()) else found

    def _read(self, node: Value | Condition | Index, ranges: Ranges) -> None:
        for read in parts_of(node):
            box = []
            for part, extent in zip(read.index, self.shapes[read.tensor], strict=True):
                low, high = interval(part, ranges) if isinstance(part, Int) else (0, extent - 1)
                first = min(max(0, low), extent - 1)  # what lies outside does not count, but is looked for somewhere
                box.append((first, max(first, min(extent - 1, high)) + 1))
            self._add(read.tensor, box)

    def _add(self, name: str, box: list[tuple[int, int]]) -> None:
        old = self.boxes.get(name)
        new = []
        for d, (low, high) in enumerate(box):
            whole = (0, self.shapes[name][d])
            if old is not None:
                low, high = min(low, old[d][0]), max(high, old[d][1])
            grows = old is not None and (low, high) != old[d]
            new.append(whole if (name, d) in self._whole or (grows and self.number > PASSES) else (low, high))
        if new != old:
            self.boxes[name] = new
            self.changed = True


class _Rebuilt:
    """The units, with axes cut to what the boxes need and guards where cutting leaves more."""

    def __init__(self, closure: _Closure) -> None:
        self.closure = closure
        self.origin: dict[int, Assign] = {}
        self.counts: list[tuple[LoopNest, int, int]] = []

    def unit(self, unit: Unit, known: Ranges, outer: tuple[Axis | Condition, ...] = ()) -> Unit | None:
        if isinstance(unit, LoopNest):
            return self.nest(unit, known, outer)
        level = unit.level
        inner = dict(known)
        if isinstance(level, Axis):
            hull: tuple[int, int] | None = None
            for nest, between in _nests(unit):
                ranges = self.closure.ranges((*outer, *between, *nest.levels), nest.assign)
                if ranges is not None:
                    low, high = ranges[level.name]
                    hull = (low, high) if hull is None else (min(low, hull[0]), max(high, hull[1]))
            if hull is None:
                return None
            inner[level.name] = hull
            level = _cut(level, hull, known)
        else:
            level = self.condition(level)
        # What lies outside keeps its bounds, not the cut ones: `ranges` finds these again.
        parts = (self.unit(u, inner, (*outer, unit.level)) for u in unit.body)
        body = tuple(u for u in parts if u is not None)
        return Serial(level, body) if body else None

    def nest(self, nest: LoopNest, known: Ranges, outer: tuple[Axis | Condition, ...]) -> LoopNest | None:
        ranges = self.closure.ranges((*outer, *nest.levels), nest.assign)
        if ranges is None:
            return None
        held = {**ranges, **known}  # serial loops around may run further
        around = dict(known)
        axes: list[Axis | Condition] = []
        for axis in nest.axes:
            axes.append(_cut(axis, ranges[axis.name], around))
            around[axis.name] = held[axis.name]
        box = self.closure.boxes[nest.assign.tensor]
        guards: list[Bool] = []
        for part, (low, high) in zip(nest.assign.index, box, strict=True):
            if isinstance(part, Int):
                least, most = interval(part, held)
                guards += [compare("<=", low, part)] if least < low else []
                guards += [compare("<", part, high)] if most >= high else []
        levels = (*axes, *([all_of(*guards)] if guards else []), *map(self.condition, nest.conditions))
        old = nest.assign
        index = tuple(part if isinstance(part, Int) else self.value(part) for part in old.index)
        assign = replace(old, index=self._shifted(old.tensor, index), value=self.value(old.value))
        self.origin[id(assign)] = old
        cut = replace(nest, levels=levels, assign=assign)
        runs = prod(known[a.name][1] - known[a.name][0] + 1 for a in outer if isinstance(a, Axis))
        self.counts.append((cut, runs, prod(held[a.name][1] - held[a.name][0] + 1 for a in nest.axes)))
        return cut

    def condition(self, test: Condition) -> Condition:
        return test if isinstance(test, Bool) else self.value(test)

    def value(self, value: Value) -> Value:
        def shifted(node: Value) -> Value:
            if not isinstance(node, Read):
                return node
            index = self._shifted(node.tensor, node.index)
            return node if index is node.index else Read(node.tensor, index, node.dtype)

        return map_value(value, on_value=shifted)

    def _shifted(self, tensor: str, index: tuple[Index, ...]) -> tuple[Index, ...]:
        box = self.closure.boxes.get(tensor)
        if box is None or not any(low for low, _ in box):
            return index
        return tuple(
            part - low if isinstance(part, Int) else part  # dimensions that data address are whole
            for part, (low, _) in zip(index, box, strict=True)
        )


def _nests(
    unit: Unit, outer: tuple[Axis | Condition, ...] = ()
) -> Iterator[tuple[LoopNest, tuple[Axis | Condition, ...]]]:
    """The nests of a unit, in order, each with the serial levels around it."""
    if isinstance(unit, LoopNest):
        yield unit, outer
        return
    for inner in unit.body:
        yield from _nests(inner, (*outer, unit.level))


def _bounds(axis: Axis, known: Ranges) -> tuple[int, int]:
    return interval(axis.lower, known)[0], interval(axis.upper, known)[1] - 1


def _cut(axis: Axis, ranges: tuple[int, int], known: Ranges) -> Axis:
    """The axis within `ranges` (inclusive); bounds that other axes decide on are kept beside them."""
    least, most = interval(axis.lower, known), interval(axis.upper, known)
    low, high = ranges[0], ranges[1] + 1
    lower = Const(low) if least[1] <= low else maximum(axis.lower, low)
    upper = Const(high) if most[0] >= high else minimum(axis.upper, high)
    return Axis(axis.name, lower, upper)


def _solved(
    coefficients: Mapping[str, int], constant: int, name: str, ranges: Ranges, low: int, high: int
) -> tuple[int, int]:
    """The part of an axis' range at which an affine subscript can lie in low..high, the others being anywhere."""
    least = most = constant
    for other, c in coefficients.items():
        if other != name:
            ends = c * ranges[other][0], c * ranges[other][1]
            least, most = least + min(ends), most + max(ends)
    c = coefficients[name]
    first, last = low - most, high - least  # first <= c * x <= last
    if c < 0:
        c, first, last = -c, -last, -first
    return max(ranges[name][0], -(-first // c)), min(ranges[name][1], last // c)
