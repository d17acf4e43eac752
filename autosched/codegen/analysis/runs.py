"""The offsets that lanes access, grouped into vector loads: runs of neighbours, windows over a stride."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class VectorRun:
    """Neighbouring elements of one vector load: the lanes `lanes[p]` take the element at `offset + p`."""

    offset: int
    lanes: tuple[tuple[int, ...], ...]

    def progression(self) -> tuple[int, int] | None:
        """(first lane, step) where every element goes to one lane, in even steps."""
        if any(len(x) != 1 for x in self.lanes):
            return None
        flat = [x[0] for x in self.lanes]
        steps = {b - a for a, b in pairwise(flat)} or {0}
        return (flat[0], steps.pop()) if len(steps) == 1 else None


def runs(offsets: tuple[int, ...]) -> list[VectorRun]:
    """The accessed offsets as maximal runs of neighbours."""
    takers: dict[int, list[int]] = {}
    for e, o in enumerate(offsets):
        takers.setdefault(o, []).append(e)
    result: list[list[int]] = []
    for o in sorted(takers):
        if result and result[-1][-1] == o - 1:
            result[-1].append(o)
        else:
            result.append([o])
    return [VectorRun(r[0], tuple(tuple(takers[o]) for o in r)) for r in result]


def overlapping(run: VectorRun) -> tuple[VectorRun, ...]:
    """The run as vectors of a power of two elements: itself, or two that overlap. (Of 34 bytes LLVM makes a load of 32,
    one of 2, and moves between register files.)

    >>> [(r.offset, len(r.lanes)) for r in overlapping(VectorRun(0, ((),) * 34))]
    [(0, 32), (2, 32)]
    """
    n = len(run.lanes)
    size = 1 << (n.bit_length() - 1)
    if n == size:
        return (run,)
    rest = ((),) * (2 * size - n) + run.lanes[size:]
    return VectorRun(run.offset, run.lanes[:size]), VectorRun(run.offset + n - size, rest)


def windows(offsets: tuple[int, ...]) -> list[VectorRun]:
    """Whole vectors over the span of strided offsets, the last one ending where the span does. They also load what lies
    between the elements, which is safe since both ends are. Empty where the span is no longer than a vector, or longer
    than four.

    >>> [r.offset for r in windows((0, 2, 4, 6))]
    [0, 3]
    """
    n, reach = len(offsets), max(offsets) + 1
    if min(offsets) < 0 or not n < reach <= 4 * n:
        return []
    starts = [*range(0, reach - n, n), reach - n]
    takers: list[list[list[int]]] = [[[] for _ in range(n)] for _ in starts]
    for e, o in enumerate(offsets):
        k = next(k for k, start in enumerate(starts) if start <= o < start + n)
        takers[k][o - starts[k]].append(e)
    return [VectorRun(s, tuple(tuple(t) for t in lanes)) for s, lanes in zip(starts, takers, strict=True)]
