"""The event engine: actors that run small programs and take turns at servers, in whole ticks.

An actor (a warp, a thread, a queue of an accelerator) runs its code one instruction after another. `Use` asks servers
(a pipe, a port, a bus) for some ticks each: every server serves requests in the order in which they are made, and the
actor goes on once the slowest is done and the latency is over. Barriers and semaphores hold actors up. Nothing is
random, and ties go to the actor that was listed first.

Steady states are skipped where they are proved to repeat (`steady`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from autosched.device.simulator.steady import History, State
from autosched.errors import AutoschedError

TICKS = 64
"""Ticks of one cycle."""
MOST_EVENTS = 300_000
"""A kernel that takes more events than this, all jumps taken, is given up on: about a second of work."""


@dataclass(frozen=True, slots=True)
class Use:
    """`uses`: (server, ticks), served side by side; the actor goes on `latency` ticks after the last of them, and no
    sooner than `least` ticks after it asked. Without `wait` it goes on after `least` ticks, as behind a queue. `gives`
    are semaphores that are raised when all is done, latency included. `name` is for traces, `amount` what the request
    moves or computes in all (bytes, operations)."""

    uses: tuple[tuple[int, int], ...]
    latency: int = 0
    least: int = 0
    wait: bool = True
    name: str = ""
    amount: float = 0.0
    gives: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Repeat:
    trips: int
    body: tuple[Code, ...]


@dataclass(frozen=True, slots=True)
class Meet:
    """A barrier of `count` actors; all go on `latency` ticks after the last has come."""

    group: int
    count: int
    latency: int = 0


@dataclass(frozen=True, slots=True)
class Take:
    """Wait until the semaphore is above 0, and lower it by one."""

    semaphore: int


@dataclass(frozen=True, slots=True)
class Give:
    """Raise the semaphore by one, and let the first that waits for it go on."""

    semaphore: int


Code: TypeAlias = Use | Repeat | Meet | Take | Give


@dataclass(frozen=True, slots=True)
class Seat:
    """Where an actor works, so that many run one code: its server `n` is `servers[n]` (as it is where there are none),
    its barriers and semaphores are numbered from these on."""

    servers: tuple[int, ...] = ()
    barriers: int = 0
    semaphores: int = 0


@dataclass(frozen=True, slots=True)
class ServiceSpan:
    """What a server did for an actor, from tick to tick; `amount` is that of its `Use`, on the first of its servers."""

    actor: int
    server: int
    start: int
    end: int
    name: str
    amount: float


Recorder: TypeAlias = Callable[[ServiceSpan], bool]
"""Takes a span; answers whether it wants more."""


class TooManyEventsError(AutoschedError):
    """A kernel that cannot be simulated in reasonable time."""


@dataclass(frozen=True)
class Simulated:
    """When everything was done, when each actor was, how long each server was busy (ticks), the events simulated and
    the ticks that were skipped as repetitions."""

    end: int
    ends: tuple[int, ...]
    busy: tuple[int, ...]
    events: int
    skipped: int


_USE, _LOOP, _END, _MEET, _TAKE, _GIVE, _DONE = range(7)


class _Step(NamedTuple):
    """An instruction of flat code. Loops: `a` is their depth, `b` where the body starts, `c` the trips."""

    kind: int
    a: int = 0
    b: int = 0
    c: int = 0
    use: Use | None = None
    trips: tuple[int, ...] = ()
    """Of the loops around it, outermost first."""


def simulate(
    programs: Sequence[tuple[Code, ...]],
    servers: int,
    semaphores: Sequence[int] = (),
    record: Recorder | None = None,
    most: int = MOST_EVENTS,
    seats: Sequence[Seat] = (),
) -> Simulated:
    """Run one actor for each program, all from tick 0; `semaphores` are their first values, `seats` say where each
    actor works (all in one place where there are none). As long as `record` wants spans nothing is skipped.

    TooManyEventsError past `most` events. Actors that wait for what never comes are a mistake of the caller's.
    """
    return _Execution(programs, servers, semaphores, record, most, seats).run()


class _Execution:
    def __init__(
        self,
        programs: Sequence[tuple[Code, ...]],
        servers: int,
        semaphores: Sequence[int],
        record: Recorder | None,
        most: int,
        seats: Sequence[Seat],
    ) -> None:
        flat = {key: _flat(program) for key, program in {id(p): p for p in programs}.items()}
        trips = {key: [step.trips for step in code] for key, code in flat.items()}
        self.codes = [flat[id(p)] for p in programs]
        own = tuple(range(servers))
        self.servers = [seat.servers or own for seat in seats] or [own] * len(programs)
        self.barriers = [seat.barriers for seat in seats] or [0] * len(programs)
        self.semaphores = [seat.semaphores for seat in seats] or [0] * len(programs)
        self.record = record
        loops = {key: max(map(len, around)) for key, around in trips.items()}
        self.state = State.start([loops[id(p)] for p in programs], servers, semaphores)
        self.history = History([trips[id(p)] for p in programs])
        self.met: dict[int, list[int]] = {}
        self.ends = [-1] * len(programs)
        self.leader = 0
        self.events = 0
        self.most = most

    def run(self) -> Simulated:
        state = self.state
        while state.queue:
            now, actor = heapq.heappop(state.queue)
            if actor < 0:
                self._give(now, -actor - 1)
            else:
                self._advance(now, actor)
        if min(self.ends, default=0) < 0:
            raise AssertionError("an actor waits for what never comes")
        end = max([*self.ends, *state.free], default=0)
        return Simulated(end, tuple(self.ends), tuple(state.busy), self.events, self.history.skipped)

    def _advance(self, now: int, actor: int) -> None:
        """Run one actor until it has to wait."""
        state, code = self.state, self.codes[actor]
        counters = state.counters[actor]
        at = state.at[actor]
        while True:
            kind, a, b, c, use, _ = code[at]
            if kind == _USE:
                state.at[actor] = at + 1
                self._use(now, actor, use)
                return
            if kind == _END:
                counters[a] += 1
                if counters[a] == c:
                    counters[a] = 0
                    at += 1
                    continue
                at = b
                if actor == self.leader and self.record is None:
                    state.at[actor] = at
                    now += self.history.skip(now, actor, state, self.met)
            elif kind == _LOOP:
                at += 1
            elif kind == _MEET:
                at += 1
                here = self.met.setdefault(self.barriers[actor] + a, [])
                here.append(actor)
                if len(here) < b:
                    state.at[actor] = at
                    return
                for other in here:
                    if other != actor:
                        heapq.heappush(state.queue, (now + c, other))
                here.clear()
                if c:
                    state.at[actor] = at
                    heapq.heappush(state.queue, (now + c, actor))
                    return
            elif kind == _TAKE:
                semaphore = self.semaphores[actor] + a
                if state.tokens[semaphore] == 0:
                    state.waiting[semaphore].append(actor)
                    state.at[actor] = at
                    return
                state.tokens[semaphore] -= 1
                at += 1
            elif kind == _GIVE:
                self._give(now, self.semaphores[actor] + a)
                at += 1
            else:
                state.at[actor] = at
                self.ends[actor] = now
                if actor == self.leader:  # those before it ended before
                    self.leader = next((a for a in range(actor + 1, len(self.ends)) if self.ends[a] < 0), 0)
                return

    def _give(self, now: int, semaphore: int) -> None:
        self.state.tokens[semaphore] += 1
        if self.state.waiting[semaphore]:
            heapq.heappush(self.state.queue, (now, self.state.waiting[semaphore].pop(0)))

    def _use(self, now: int, actor: int, use: Use | None) -> None:
        assert use is not None
        self.events += 1
        if self.events > self.most:
            raise TooManyEventsError(f"more than {self.most:,} events", hint="its steady state does not repeat")
        state, last, amount = self.state, now, use.amount
        free, busy, servers = state.free, state.busy, self.servers[actor]
        for which, ticks in use.uses:
            server = servers[which]
            start = free[server]
            if start < now:
                start = now
            end = start + ticks
            free[server] = end
            busy[server] += ticks
            if self.record is not None:
                if not self.record(ServiceSpan(actor, server, start, end, use.name, amount)):
                    self.record = None
                amount = 0.0
            if end > last:
                last = end
        done = max(last + use.latency, now + use.least)
        heapq.heappush(state.queue, (done if use.wait else now + use.least, actor))
        for semaphore in use.gives:
            heapq.heappush(state.queue, (done, -1 - self.semaphores[actor] - semaphore))


def _flat(program: tuple[Code, ...]) -> list[_Step]:
    steps: list[_Step] = []

    def emit(body: tuple[Code, ...], trips: tuple[int, ...]) -> None:
        for code in body:
            match code:
                case Use():
                    steps.append(_Step(_USE, use=code, trips=trips))
                case Repeat(n, inner) if n > 0:
                    start = len(steps) + 1
                    steps.append(_Step(_LOOP, trips=trips))
                    emit(inner, (*trips, n))
                    steps.append(_Step(_END, len(trips), start, n, trips=(*trips, n)))
                case Repeat():
                    pass
                case Meet(group, count, latency):
                    steps.append(_Step(_MEET, group, count, latency, trips=trips))
                case Take(semaphore):
                    steps.append(_Step(_TAKE, semaphore, trips=trips))
                case Give(semaphore):
                    steps.append(_Step(_GIVE, semaphore, trips=trips))

    emit(program, ())
    steps.append(_Step(_DONE))
    return steps
