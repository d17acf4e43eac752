"""How many bytes a kernel moves past a memory of some capacity: footprints of its loops against that capacity.

The outermost loop body whose data fits keeps it from one of its runs to the next, so its loop fetches no line twice;
loops outside fetch everything again, except where all of them from there on leave an address alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from autosched.codegen.kernel import Buffer
from autosched.device.simulator.walk import Level, Touch
from autosched.logic import Affine, Const, Int, affine, free_vars, interval

Ranges = dict[str, tuple[int, int]]


class Footprints:
    """Bytes that touches cover, in lines of `line` bytes."""

    def __init__(self, buffers: dict[str, Buffer], line: int) -> None:
        self.buffers, self.line = buffers, line
        self._known: dict[object, float] = {}
        self._forms: dict[int, list[Affine | None]] = {}

    def of(self, touch: Touch, path: Sequence[Level], depth: int, fixed: Ranges | None = None) -> float:
        """Bytes that one run of `path[depth:]` touches, loops outside standing still at a typical place; `fixed` gives
        ranges to some variables in their place."""
        key = touch.place, tuple(p.number for p in path[depth:]), tuple(fixed.items()) if fixed else ()
        if key not in self._known:
            self._known[key] = self._bytes(touch, ranges_of(path, depth, fixed or {}))
        return self._known[key]

    def _bytes(self, touch: Touch, ranges: Ranges) -> float:
        buffer = self.buffers[touch.buffer]
        if touch.lane is not None:
            ranges = ranges | {touch.lane.var: (0, touch.lane.width - 1)}
        size = buffer.dtype.bits / 8
        total = size
        reach = 1
        if touch.place not in self._forms:
            self._forms[touch.place] = [affine(part) for part in touch.index]
        for part, form, extent in zip(touch.index, self._forms[touch.place], buffer.shape, strict=True):
            reach = min(extent, _reach(part, form, ranges))
            total *= reach
        if buffer.shape and reach < buffer.shape[-1]:  # rows in part: whole lines are moved
            row = reach * size
            total *= -(-row // self.line) * self.line / row
        return float(min(total, buffer.elements * size + self.line))


def ranges_of(path: Sequence[Level], depth: int, fixed: Ranges) -> Ranges:
    """Inclusive ranges of all loop variables: points outside `depth`, all values inside."""
    ranges: Ranges = {}
    outside = {level.number for level in path[:depth]}
    for level in sorted(path, key=lambda p: p.number):  # as they are nested: bounds name loops further out
        if level.var in fixed:
            ranges[level.var] = fixed[level.var]
        elif level.number in outside:
            ranges[level.var] = level.value, level.value
        elif isinstance(level.lower, Const) and isinstance(level.upper, Const):
            ranges[level.var] = level.lower.value, max(level.lower.value, level.upper.value - 1)
        else:
            low, high = interval(level.lower, ranges)[0], interval(level.upper, ranges)[1] - 1
            ranges[level.var] = low, max(low, high)
    return ranges


def _reach(part: Int, form: Affine | None, ranges: Ranges) -> int:
    if form is None:
        low, high = interval(part, ranges)
        return high - low + 1
    return 1 + sum(abs(c) * (ranges[n][1] - ranges[n][0]) for n, c in form.coefficients.items())


def moved(
    touches: Sequence[Touch],
    prints: Footprints,
    capacity: float,
    order: Callable[[tuple[Level, ...]], tuple[Level, ...]] = lambda path: path,
    skip: int = 0,
) -> dict[int, float]:
    """Bytes that each touch (by its place in `touches`) moves in all past a memory of `capacity` bytes.

    `order` says in which order loops around a touch matter (concurrent workers are innermost); the first `skip` of them
    never share anything, as blocks on different cores.
    """
    paths = [order(t.path) for t in touches]
    bodies = _bodies(touches, paths, prints)
    result: dict[int, float] = {}
    seen: set[tuple[int, tuple[int, ...]]] = set()
    for n, (touch, path) in enumerate(zip(touches, paths, strict=True)):
        key = touch.place, tuple(p.number for p in path)
        if key in seen and not touch.write:
            result[n] = 0.0  # the same bytes as another access right beside it
            continue
        seen.add(key)
        depth = next(
            (d for d in range(skip, len(path) + 1) if bodies[tuple(p.number for p in path[:d])] <= capacity), len(path)
        )
        own = _moving(touch.index, path)
        # What one run of the body leaves behind the next one finds: together they touch no line twice.
        at = max(skip, depth - 1)
        runs = touch.runs if at == len(path) else _runs(path, at)
        used = prints.of(touch, path, at)
        while at > skip and path[depth - 1].var not in own and path[at - 1].var not in own:
            at -= 1
            runs /= max(1.0, path[at].trips)
        result[n] = used * max(1.0, runs)
    if touches and skip == 0 and bodies[()] <= capacity:  # nothing is fetched twice, whichever statements ask for it
        for name in {t.buffer for t in touches}:
            mine = [n for n, t in enumerate(touches) if t.buffer == name]
            most = prints.buffers[name].elements * prints.buffers[name].dtype.bits / 8 + prints.line
            total = sum(result[n] for n in mine)
            for n in mine:
                result[n] *= min(1.0, most / total) if total else 1.0
    return result


def _runs(path: Sequence[Level], depth: int) -> float:
    """How often the loop at `depth` is entered: the product of the trips around it."""
    total = 1.0
    for level in path[:depth]:
        total *= level.trips
    return total


def _bodies(
    touches: Sequence[Touch], paths: Sequence[tuple[Level, ...]], prints: Footprints
) -> dict[tuple[int, ...], float]:
    """For each loop body, given by the numbers of the loops around it: the bytes of all buffers it touches."""
    found: dict[tuple[int, ...], dict[str, dict[int, float]]] = {}
    for touch, path in zip(touches, paths, strict=True):
        numbers = tuple(p.number for p in path)
        for depth in range(len(path) + 1):
            of = found.setdefault(numbers[:depth], {}).setdefault(touch.buffer, {})
            of[touch.place] = max(of.get(touch.place, 0.0), prints.of(touch, path, depth))
    totals = {}
    for key, buffers in found.items():
        total = 0.0
        for name, parts in buffers.items():
            buffer = prints.buffers[name]
            total += min(sum(parts.values()), buffer.elements * buffer.dtype.bits / 8 + prints.line)
        totals[key] = total
    return totals


def _moving(index: tuple[Int, ...], path: Sequence[Level]) -> set[str]:
    """The loops that move an address: those it names, and those that move the bounds of such loops."""
    names: set[str] = set().union(*(free_vars(part) for part in index))
    for level in sorted(path, key=lambda p: -p.number):
        if level.var in names:
            names |= free_vars(level.lower) | free_vars(level.upper)
    return names
