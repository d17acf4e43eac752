"""How many bytes a kernel moves past a memory of some capacity: footprints of its loops against that capacity.

The outermost loop body whose data fits keeps it from one of its runs to the next, so its loop fetches no line twice;
loops outside fetch everything again, except where all of them from there on leave an address alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from autosched.device.simulator.walk.facts import Level, Touch
from autosched.device.simulator.walk.footprints import TouchFootprints, Way
from autosched.logic import Int, free_vars

Order = Callable[[tuple[Level, ...]], Sequence[Level]]


class Reuse:
    """Of some accesses. `order` says in which order loops around one matter (concurrent workers are innermost); the
    first `skip` of them never share anything, as blocks on different cores."""

    def __init__(
        self, touches: Sequence[Touch], prints: TouchFootprints, order: Order = lambda path: path, skip: int = 0
    ) -> None:
        self.touches, self.prints, self.skip = touches, prints, skip
        known: dict[int, Way] = {}  # by the path's identity: accesses of one statement share theirs
        for touch in touches:
            if id(touch.path) not in known:
                known[id(touch.path)] = Way(order(touch.path))
        self.ways = [known[id(t.path)] for t in touches]
        self.bodies = _bodies(touches, self.ways, prints)
        self.own = [_moving(t.index, way.levels) for t, way in zip(touches, self.ways, strict=True)]

    def moved(self, capacity: float) -> dict[int, float]:
        """Bytes that each access (by its place in `touches`) moves in all past a memory of `capacity` bytes."""
        touches, prints, skip = self.touches, self.prints, self.skip
        result: dict[int, float] = {}
        seen: set[tuple[int, tuple[int, ...]]] = set()
        for n, (touch, way, own) in enumerate(zip(touches, self.ways, self.own, strict=True)):
            key, path = (touch.place, way.numbers), way.levels
            if key in seen and not touch.write:
                result[n] = 0.0  # the same bytes as another access right beside it
                continue
            seen.add(key)
            bodies = self.bodies[way.numbers]
            depth = next((d for d in range(skip, len(path) + 1) if bodies[d] <= capacity), len(path))
            # What one run of the body leaves behind the next one finds: together they touch no line twice.
            at = max(skip, depth - 1)
            runs = touch.runs if at == len(path) else _runs(path, at)
            used = prints.all(touch, way)[at]
            while at > skip and path[depth - 1].var not in own and path[at - 1].var not in own:
                at -= 1
                runs /= max(1.0, path[at].trips)
            result[n] = used * max(1.0, runs)
        if touches and skip == 0 and self.bodies[self.ways[0].numbers][0] <= capacity:
            self._once(result)
        return result

    def _once(self, result: dict[int, float]) -> None:
        """Nothing is fetched twice, whichever statements ask for it."""
        for name in {t.buffer for t in self.touches}:
            mine = [n for n, t in enumerate(self.touches) if t.buffer == name]
            total = sum(result[n] for n in mine)
            for n in mine:
                result[n] *= min(1.0, self.prints.most(name) / total) if total else 1.0


def _runs(path: Sequence[Level], depth: int) -> float:
    """How often the loop at `depth` is entered: the product of the trips around it."""
    total = 1.0
    for level in path[:depth]:
        total *= level.trips
    return total


def _bodies(
    touches: Sequence[Touch], ways: Sequence[Way], prints: TouchFootprints
) -> dict[tuple[int, ...], list[float]]:
    """For each way, by its numbers: the bytes of all buffers that the body of each of its loops touches, with all of
    the text as the first."""
    found: dict[tuple[int, ...], dict[str, dict[int, float]]] = {}
    for touch, way in zip(touches, ways, strict=True):
        for depth, size in enumerate(prints.all(touch, way)):
            of = found.setdefault(way.numbers[:depth], {}).setdefault(touch.buffer, {})
            of[touch.place] = max(of.get(touch.place, 0.0), size)
    totals = {}
    for key, buffers in found.items():
        total = 0.0
        for name, parts in buffers.items():
            total += min(sum(parts.values()), prints.most(name))
        totals[key] = total
    return {way.numbers: [totals[way.numbers[:d]] for d in range(len(way.levels) + 1)] for way in ways}


def _moving(index: tuple[Int, ...], path: Sequence[Level]) -> set[str]:
    """The loops that move an address: those it names, and those that move the bounds of such loops."""
    names: set[str] = set().union(*(free_vars(part) for part in index))
    for level in sorted(path, key=lambda p: -p.number):
        if level.var in names:
            names |= free_vars(level.lower) | free_vars(level.upper)
    return names
