"""What repeats exactly is skipped: the state of a simulation, and the proof that it came back.

All times are integers, so that the state taken relative to now (where each actor stands and when it is ready, when each
server is free, what each semaphore holds and who waits) either is exactly what it was before or is not. Loop counters
are not part of it. If it came back, then everything in between happens again the same way as long as no loop ends: each
actor advanced one of its loops by some trips (or waited all the time), and all of them may advance by as many such
periods as the shortest of these loops still has. Whatever is left runs event by event.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class State:
    """`queue` is a heap of (ready tick, actor), and of semaphores that will be raised, as -1 - their number; `at` is
    where each actor stands in its code, `counters` its loops'; `waiting` are the actors behind each semaphore."""

    queue: list[tuple[int, int]]
    at: list[int]
    counters: list[list[int]]
    free: list[int]
    busy: list[int]
    tokens: list[int]
    waiting: list[list[int]]

    @staticmethod
    def start(loops: Sequence[int], servers: int, semaphores: Sequence[int]) -> State:
        """Everybody ready at tick 0; `loops` is how deep each actor's are nested."""
        queue = [(0, actor) for actor in range(len(loops))]
        counters = [[0] * n for n in loops]
        idle: list[list[int]] = [[] for _ in semaphores]
        return State(queue, [0] * len(loops), counters, [0] * servers, [0] * servers, list(semaphores), idle)

    def relative(self, now: int, actor: int, met: Mapping[int, Sequence[int]]) -> tuple[object, ...]:
        """The state as seen from `now`, while `actor` runs; a server that has been free for long is free."""
        return (
            actor,
            tuple(self.at),
            tuple(sorted([(t - now, a) for t, a in self.queue])),
            tuple([f - now if f > now else 0 for f in self.free]),
            tuple(self.tokens),
            tuple([tuple(w) for w in self.waiting]),
            tuple([(g, tuple(w)) for g, w in met.items() if w]),
        )


@dataclass(frozen=True, slots=True)
class _SeenState:
    now: int
    counters: list[list[int]]
    busy: list[int]


class History:
    """States at which the leading actor began another trip. `trips` gives, for each actor and place in its code, the
    trips of the loops around; `skipped` is how many ticks were jumped over."""

    def __init__(self, trips: Sequence[Sequence[tuple[int, ...]]]) -> None:
        self.trips = trips
        self.seen: dict[tuple[object, ...], _SeenState] = {}
        self.skipped = 0

    def skip(self, now: int, actor: int, state: State, met: Mapping[int, Sequence[int]]) -> int:
        """Advance the state by as many whole periods as are proved to repeat; answer their ticks (0: none)."""
        key = state.relative(now, actor, met)
        before = self.seen.get(key)
        self.seen[key] = _SeenState(now, [list(c) for c in state.counters], list(state.busy))
        if before is None:
            return 0
        moved = self._moved(before, state)
        periods = min((left for _, _, _, left in moved), default=0)
        if periods < 1:
            return 0
        for who, depth, delta, _ in moved:
            state.counters[who][depth] += periods * delta
        jump = periods * (now - before.now)
        state.queue = [(t + jump, a) for t, a in state.queue]
        heapq.heapify(state.queue)
        state.free = [f + jump for f in state.free]
        state.busy = [b + periods * (b - old) for b, old in zip(state.busy, before.busy, strict=True)]
        self.seen[key] = _SeenState(now + jump, [list(c) for c in state.counters], list(state.busy))
        self.skipped += jump
        return jump

    def _moved(self, before: _SeenState, state: State) -> list[tuple[int, int, int, int]]:
        """(actor, depth of its loop, trips of it in a period, periods that still fit) for each that moved; [] where one
        of them did not stay within one loop."""
        moved = []
        for who, (old, new) in enumerate(zip(before.counters, state.counters, strict=True)):
            if old == new:
                continue
            changed = [(d, n - o) for d, (o, n) in enumerate(zip(old, new, strict=True)) if n != o]
            (depth, delta), *others = changed
            around = self.trips[who][state.at[who]]
            if others or delta < 0 or depth >= len(around):
                return []
            moved.append((who, depth, delta, (around[depth] - 1 - new[depth]) // delta))
        return moved
