"""How many bytes accesses of a kernel touch while some of their loops run and others stand still.

The same accesses are asked for from each loop inwards and for caches of several sizes: what depends on an address, or
on a path alone, is found once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from autosched.codegen.tree.kernel import Buffer
from autosched.device.simulator.walk.facts import Level, Touch
from autosched.logic import Affine, Const, Int, bounds_of, form_or_bounds, free_vars

Range = tuple[int, int]
Ranges = Mapping[str, Range]
Reach = Callable[[Ranges], int]
"""How many values a subscript takes."""


class Way:
    """Loops around an access in the order in which they matter; `numbers` are theirs."""

    def __init__(self, levels: Sequence[Level]) -> None:
        self.levels = tuple(levels)
        self.numbers = tuple(p.number for p in self.levels)
        # As they are nested: bounds name loops further out.
        nested = sorted(enumerate(self.levels), key=lambda pair: pair[1].number)
        self.nested = [(at, p.var, (p.value, p.value), _values(p)) for at, p in nested]

    def ranges(self, depth: int, fixed: Ranges) -> dict[str, Range]:
        """Inclusive ranges of all loop variables: points outside `depth`, all values inside, or what `fixed` says."""
        found: dict[str, Range] = {}
        for at, var, point, values in self.nested:
            if var in fixed:
                found[var] = fixed[var]
            elif at < depth:
                found[var] = point
            else:
                found[var] = values(found)
        return found


class TouchFootprints:
    """Bytes that touches cover, in lines of `line` bytes."""

    def __init__(self, buffers: dict[str, Buffer], line: int) -> None:
        self.line = line
        self.elements = {name: (b.dtype.bits / 8, b.elements * b.dtype.bits / 8 + line) for name, b in buffers.items()}
        self.buffers = buffers
        self._known: dict[object, float] = {}
        self._all: dict[object, list[float]] = {}
        self._reaches: dict[int, list[tuple[int, Reach]]] = {}

    def most(self, buffer: str) -> float:
        """Bytes of the whole buffer."""
        return self.elements[buffer][1]

    def of(self, touch: Touch, way: Way, depth: int, fixed: Ranges | None = None) -> float:
        """Bytes that one run of the loops from `depth` on touches, loops outside standing still at a typical place;
        `fixed` gives ranges to some variables in their place."""
        key = touch.place, way.numbers[depth:], tuple(fixed.items()) if fixed else ()
        if key not in self._known:
            self._known[key] = self._bytes(touch, way.ranges(depth, fixed or {}))
        return self._known[key]

    def all(self, touch: Touch, way: Way) -> list[float]:
        """`of` for each depth, 0 and that of all loops included."""
        key = touch.place, way.numbers
        if key not in self._all:
            self._all[key] = [self.of(touch, way, depth) for depth in range(len(way.levels) + 1)]
        return self._all[key]

    def _bytes(self, touch: Touch, ranges: dict[str, Range]) -> float:
        shape = self.buffers[touch.buffer].shape
        size, most = self.elements[touch.buffer]
        if touch.lane is not None:
            ranges[touch.lane.var] = 0, touch.lane.width - 1
        if touch.place not in self._reaches:
            parts = zip(shape, touch.index, strict=True)
            self._reaches[touch.place] = [(extent, _reach(part)) for extent, part in parts]
        total = size
        reach = 1
        for extent, of in self._reaches[touch.place]:
            reach = min(extent, of(ranges))
            total *= reach
        if shape and reach < shape[-1]:  # rows in part: whole lines are moved
            row = reach * size
            total *= -(-row // self.line) * self.line / row
        return float(min(total, most))


def _values(level: Level) -> Callable[[Ranges], Range]:
    lower, upper = level.lower, level.upper
    if isinstance(lower, Const) and isinstance(upper, Const):
        whole = lower.value, max(lower.value, upper.value - 1)
        return lambda ranges: whole
    least, most = bounds_of(lower), bounds_of(upper)

    def span(ranges: Ranges) -> Range:
        low, high = least(ranges)[0], most(ranges)[1] - 1
        return low, max(low, high)

    return span


def _reach(part: Int) -> Reach:
    form = form_or_bounds(part)
    if isinstance(form, Affine):
        terms = tuple((name, abs(c)) for name, c in form.coefficients.items())
        return lambda ranges: 1 + sum([c * (ranges[n][1] - ranges[n][0]) for n, c in terms])
    bounds, names = form, tuple(free_vars(part))
    known: dict[tuple[Range, ...], int] = {}

    def reach(ranges: Ranges) -> int:
        key = tuple([ranges[n] for n in names])
        if key not in known:
            low, high = bounds(ranges)
            known[key] = high - low + 1
        return known[key]

    return reach
