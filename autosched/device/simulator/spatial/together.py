"""Statements of an accelerator that follow each other, played as one: its queues go on from statement to statement.

    C = A B;  D = relu(C);  F = G H        G's and H's copies run below the array's work on C and D

Each queue (load, execute, store, and preload for states) takes its commands in the order of the program, a statement
after the other. Beyond that a statement's queue waits where it has to: for all of an earlier statement that writes what
the queue reads, or reads what it writes, in memory or in a scratchpad; and for all that is older than what the
scratchpads hold together. Statements are tied as a whole: a block of the one is not followed into a block of the other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from autosched.codegen.tree.kernel import Kernel
from autosched.device.simulator.engine import (
    MOST_EVENTS,
    Code,
    Give,
    Recorder,
    Repeat,
    Simulated,
    Take,
    Use,
    simulate,
)
from autosched.device.simulator.spatial.requests import SERVERS, Resource
from autosched.device.simulator.walk.facts import Facts
from autosched.machine.target import Target

QUEUES = ("load", "execute", "store", "preload")
FENCES = {
    "load": (Resource.BUS, Resource.COPIES_IN),
    "execute": (Resource.ARRAY, Resource.VECTOR, Resource.SCRATCH, Resource.ACCUMULATORS),
    "store": (Resource.BUS, Resource.COPIES_OUT, Resource.VECTOR, Resource.HOST),
    "preload": (Resource.LOADS, Resource.SCRATCH),
}
"""Units that a queue's last command waits for, so that all before it is done."""


@dataclass(frozen=True)
class Queued:
    """One statement: code of each of `QUEUES`, and the buffers that each reads and writes (memory and scratchpads)."""

    codes: tuple[tuple[Code, ...], ...]
    reads: dict[str, set[str]]
    writes: dict[str, set[str]]


@dataclass(frozen=True)
class Together:
    """What was played; `ends` are ticks after which each statement and all before it are done, `busy` those of each
    server for each statement."""

    outcome: Simulated
    ends: tuple[int, ...]
    busy: tuple[tuple[int, ...], ...]


def play_together(
    statements: Sequence[Queued],
    tokens: Sequence[int],
    oldest: Sequence[int],
    record: Recorder | None = None,
    most: int = MOST_EVENTS,
) -> Together:
    """Play them beside each other. `tokens` are the semaphores that their codes have. `oldest`: of each, the first
    statement that may still be under way when it begins. Actor `4 n + q` is queue `q` of statement `n`."""
    values = list(tokens)
    takes: dict[tuple[int, str], list[int]] = defaultdict(list)
    starts: dict[tuple[int, str], list[int]] = defaultdict(list)  # raised once all commands are given
    dones: dict[tuple[int, str], list[int]] = defaultdict(list)  # raised once all are done

    def tie(after: tuple[int, str], before: tuple[int, str], raised: dict[tuple[int, str], list[int]]) -> None:
        raised[before].append(len(values))
        takes[after].append(len(values))
        values.append(0)

    for n in range(1, len(statements)):
        for queue in QUEUES:
            tie((n, queue), (n - 1, queue), starts)
        for queue in QUEUES:
            tied = {oldest[n] - 1} if oldest[n] else set[int]()
            tied |= {m for m in range(oldest[n], n) if conflict(statements[m], statements[n], queue)}
            for m, other in product(sorted(tied), QUEUES):
                tie((n, queue), (m, other), dones)
    programs: list[tuple[Code, ...]] = []
    for n, statement in enumerate(statements):
        for place, queue in enumerate(QUEUES):
            uses = tuple((int(server), 0) for server in FENCES[queue])
            fence = Use(uses, name=queue, gives=tuple(dones[n, queue]))
            waits, given = (Take(t) for t in takes[n, queue]), (Give(t) for t in starts[n, queue])
            programs.append((*waits, *statement.codes[place], *given, fence))
    outcome = simulate(programs, len(SERVERS), values, record, most)
    ends: list[int] = []
    for n in range(len(statements)):
        ends.append(max([*ends[-1:], *outcome.ends[len(QUEUES) * n : len(QUEUES) * (n + 1)]]))
    ends[-1] = outcome.end
    busy = tuple(_busy([c for code in s.codes for c in code]) for s in statements)
    return Together(outcome, tuple(ends), busy)


def conflict(first: Queued, second: Queued, queue: str) -> bool:
    """Whether a statement must be done before a queue of a later one begins: what it writes is read or written there,
    or what it reads is written."""
    read, written = (set[str]().union(*found.values()) for found in (first.reads, first.writes))
    touched = second.reads[queue] | second.writes[queue]
    return bool(written & touched or read & second.writes[queue])


def oldest_beside(kernel: Kernel, parts: Sequence[Facts], target: Target) -> list[int]:
    """Of each statement the first that may be under way beside it: all scratchpad buffers that are in use from there on
    fit their memories. A buffer is in use from the first statement that touches it to the last."""
    memories = [m for m in target.memories if m.holds]
    places = ("shared", "inputs"), ("accumulator", "accumulators")
    scopes = [[scope for scope, what in places if what in m.holds] for m in memories]
    spans: dict[str, tuple[int, int]] = {}
    for n, found in enumerate(parts):
        for name in found.buffers:
            spans[name] = spans.get(name, (n, n))[0], n

    def fits(first: int, last: int) -> bool:
        used = [kernel.buffers[b] for b, (low, high) in spans.items() if low <= last and high >= first]
        sizes = (sum(b.elements * b.dtype.bits // 8 for b in used if b.scope in held) for held in scopes)
        return all(size <= memory.bytes for size, memory in zip(sizes, memories, strict=True))

    found_first: list[int] = []
    for n in range(len(parts)):
        first = found_first[-1] if found_first else 0
        while first < n and not fits(first, n):
            first += 1
        found_first.append(first)
    return found_first


def _busy(code: Sequence[Code]) -> tuple[int, ...]:
    """Ticks of each server that code asks for."""
    found = [0] * len(SERVERS)
    for command in code:
        if isinstance(command, Use):
            for server, ticks in command.uses:
                found[server] += ticks
        elif isinstance(command, Repeat):
            for server, ticks in enumerate(_busy(command.body)):
                found[server] += command.trips * ticks
    return tuple(found)
