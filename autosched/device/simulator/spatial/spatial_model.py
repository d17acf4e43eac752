"""Seconds of a kernel on a spatial accelerator: copies, the array and stores as queues that run beside each other.

Three actors, as the controllers of a decoupled access-execute machine (Gemmini, DAC 2021): one loads scratchpads, one
feeds the array, one stores results. Each takes its own commands in the order of the program. Data ties them together:
the array waits until a block has landed, a copy waits until the slot it fills is no longer read, a store waits for its
accumulators. With two slots a copy runs ahead of the array by one block. Copies share one bus to main memory, and take
the cycles of the instruction that the chip describes for them, whichever is longer; the array takes its issues' cycles
or the scratchpads' bandwidth. What follows on each element of a result is computed on the way out, by the unit
that the target states a rate of, else by the host (`tiling.plans.units`). Loops and commands cost nothing; statements
that never touch a scratchpad run on the host (`host_model`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from autosched.codegen.tree.kernel import Kernel
from autosched.device.simulator.engine import (
    MOST_EVENTS,
    TICKS,
    Recorder,
    Simulated,
    TooManyEventsError,
    simulate,
)
from autosched.device.simulator.estimate import Estimate, StatementTime
from autosched.device.simulator.gpu.gpu_launch import RefusedError
from autosched.device.simulator.spatial.host_model import play_host
from autosched.device.simulator.spatial.requests import SERVERS, Amounts
from autosched.device.simulator.spatial.statement_queues import StatementQueues, memory_of
from autosched.device.simulator.spatial.together import Queued, oldest_beside, play_together
from autosched.device.simulator.walk.facts import Facts
from autosched.device.simulator.walk.script import script
from autosched.machine.target import Target
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tiling.plans.units import NO_UNITS, AcceleratorUnits

START_SECONDS = 1e-6  # the host's way to the first of commands that follow each other, where a target does not say


@dataclass(frozen=True)
class SpatialRun:
    outcome: Simulated
    totals: Amounts


def spatial_estimate(
    kernel: Kernel, parts: list[Facts], target: Target, units: AcceleratorUnits = NO_UNITS
) -> Estimate:
    """RefusedError where a scratchpad is too small. What the host computes in between starts the accelerator anew."""
    moved: list[dict[str, float]] = []
    totals: dict[str, float] = defaultdict(float)
    tick = 1.0 / TICKS / target.clock_hz
    statements: list[StatementTime] = []
    for run in runs(kernel, parts, target, units):
        played = play_run(kernel, run, target, units)
        totals["start"] += run.start
        totals["total"] += played.outcome.end * tick + run.start
        before = 0
        for found, end, busy, amounts in zip(run.parts, played.ends, played.busy, played.amounts, strict=True):
            moved.append(_moved(amounts, target, on_array(kernel, found)))
            busy_s = {name: ticks * tick for name, ticks in zip(SERVERS, busy, strict=True) if ticks}
            for name, seconds_of in busy_s.items():
                totals[name] += seconds_of
            _count(statements, kernel, found, units, (end - before) * tick, busy_s)
            before = end
    seconds = {k: v for k, v in totals.items() if v or k in ALWAYS}
    return Estimate(seconds, tuple(moved), tuple(statements))


def finished_by(found: Facts, units: AcceleratorUnits) -> list[Intrinsic]:
    """The instructions that finish what a statement writes."""
    written = dict.fromkeys(t.buffer for t in found.touches if t.write)
    return [units.finishing[name] for name in written if name in units.finishing]


def _count(
    statements: list[StatementTime],
    kernel: Kernel,
    found: Facts,
    units: AcceleratorUnits,
    seconds: float,
    busy: dict[str, float],
) -> None:
    """Add a top-level statement to what is behind it, or to the first of loops that write nothing to memory yet."""
    if not statements or statements[-1].writes:
        statements.append(StatementTime())
    here = statements[-1]
    written = (t.buffer for t in found.touches if t.write and t.buffer not in units.passing)
    to_memory = (name for name in written if kernel.buffers[name].scope in OUTSIDE)
    here.writes = tuple(dict.fromkeys(to_memory))
    issued = [i.intrinsic.name for i in found.issues]
    issued += [i.name for i in finished_by(found, units)]
    here.instructions = tuple(dict.fromkeys((*here.instructions, *issued)))
    here.seconds += seconds
    for name, own in busy.items():
        here.units[name] = here.units.get(name, 0.0) + own


OUTSIDE = ("global", "workspace")
"""Where buffers are that are in memory."""
ALWAYS = ("bus", "array", "scratchpad", "accumulators", "start", "total")
"""Units that every answer names; others where they do anything."""


def starts(
    kernel: Kernel, parts: Sequence[Facts], target: Target, units: AcceleratorUnits = NO_UNITS
) -> list[float]:
    """Seconds before each statement: the host starts the accelerator where it did not work on the one before. A chip
    without a host starts once. What instructions ask to be configured is set where it is not so yet."""
    first = START_SECONDS if target.start_s is None else target.start_s
    own = [not target.host or on_array(kernel, found) for found in parts]
    now: dict[str, object] = {}
    found = []
    for part, mine, before in zip(parts, own, [False, *own], strict=False):
        used = [*(i.intrinsic for i in part.issues), *finished_by(part, units)]
        setting = units.configuring(target, used, now) / target.clock_hz
        found.append((first if mine and not before else 0.0) + setting)
    return found


@dataclass(frozen=True)
class StatementRun:
    """Statements that may run beside each other, and seconds before the first."""

    parts: tuple[Facts, ...]
    start: float


def runs(
    kernel: Kernel, parts: Sequence[Facts], target: Target, units: AcceleratorUnits = NO_UNITS
) -> list[StatementRun]:
    """The statements in order: those of the accelerator that follow each other are one run, unless something is set in
    between that they compute with; each of the host's is a run of its own."""
    found: list[StatementRun] = []
    for part, start in zip(parts, starts(kernel, parts, target, units), strict=True):
        last = found[-1] if found else None
        beside = last is not None and on_array(kernel, part) and on_array(kernel, last.parts[-1])
        if last is not None and beside and (not start or not any(p.issues for p in last.parts)):
            found[-1] = StatementRun((*last.parts, part), last.start + start)
        else:
            found.append(StatementRun((part,), start))
    return found


@dataclass(frozen=True)
class PlayedRun:
    """What was played; of each statement the tick when it and all before it are done, ticks of each server, and what it
    asks of each unit."""

    outcome: Simulated
    ends: tuple[int, ...]
    busy: tuple[tuple[int, ...], ...]
    amounts: tuple[Amounts, ...]


def queued_statements(
    kernel: Kernel, run: StatementRun, target: Target, units: AcceleratorUnits
) -> tuple[list[Queued], list[int], tuple[Amounts, ...]]:
    """The statements of a run for their queues, the first values of their semaphores, and what each asks of units."""
    tokens: list[int] = []
    for found in run.parts:
        _check_sizes(kernel, found, target)
    made = [StatementQueues(kernel, found, target, units, tokens) for found in run.parts]
    return [m.queued() for m in made], tokens, tuple(m.totals for m in made)


def play_run(
    kernel: Kernel,
    run: StatementRun,
    target: Target,
    units: AcceleratorUnits = NO_UNITS,
    record: Recorder | None = None,
    most: int = MOST_EVENTS,
) -> PlayedRun:
    """The events of statements that run beside each other; one after the other where these are more than `most`."""
    if len(run.parts) > 1:
        queued, tokens, asked = queued_statements(kernel, run, target, units)
        oldest = oldest_beside(kernel, run.parts, target)
        try:
            both = play_together(queued, tokens, oldest, record, most)
            return PlayedRun(both.outcome, both.ends, both.busy, asked)
        except TooManyEventsError:
            alone = [play_run(kernel, StatementRun((found,), 0.0), target, units) for found in run.parts]
            ends = tuple(accumulate(p.outcome.end for p in alone))
            busy = tuple(map(sum, zip(*(p.outcome.busy for p in alone), strict=True)))
            events, skipped = (sum(getattr(p.outcome, n) for p in alone) for n in ("events", "skipped"))
            outcome = Simulated(ends[-1], (ends[-1],), busy, events, skipped + 1)
            amounts = tuple(a for p in alone for a in p.amounts)
            return PlayedRun(outcome, ends, tuple(p.outcome.busy for p in alone), amounts)
    (found,) = run.parts
    if on_array(kernel, found):
        one = play_spatial(kernel, found, target, units, record)
    else:
        one = SpatialRun(*play_host(found, target, units, record))
    return PlayedRun(one.outcome, (one.outcome.end,), (one.outcome.busy,), (one.totals,))


def _moved(a: Amounts, target: Target, scratch: bool) -> dict[str, float]:
    pads = {what: memory_of(target, what) for what in ("inputs", "accumulators")}
    sizes: dict[str, float] = defaultdict(float)
    for what, size in (("inputs", a.scratch + a.loaded), ("accumulators", 2 * a.accumulated + a.stored)):
        if (pad := pads[what]) is not None and scratch:
            sizes[pad.name] += size
    sizes[target.memories[-1].name] += a.loaded + a.stored
    return dict(sizes)


def on_array(kernel: Kernel, found: Facts) -> bool:
    """Whether a statement is the accelerator's; the host runs others."""
    return any(kernel.buffers[name].scope in ("shared", "accumulator") for name in found.buffers)


def play_spatial(
    kernel: Kernel, found: Facts, target: Target, units: AcceleratorUnits = NO_UNITS, record: Recorder | None = None
) -> SpatialRun:
    """The events of one statement on the accelerator: a nest, or copies before it and stores after it."""
    _check_sizes(kernel, found, target)
    made = StatementQueues(kernel, found, target, units)
    programs = made.programs(script(found))
    return SpatialRun(simulate(programs, len(SERVERS), made.tokens, record), made.totals)


def _check_sizes(kernel: Kernel, found: Facts, target: Target) -> None:
    for memory in (m for m in target.memories if m.holds):
        scopes = [s for s, what in (("shared", "inputs"), ("accumulator", "accumulators")) if what in memory.holds]
        held = [b for n, b in kernel.buffers.items() if b.scope in scopes and n in found.buffers]
        used = sum(b.elements * b.dtype.bits // 8 for b in held)
        if used > memory.bytes:
            raise RefusedError(f"{used:,} bytes in {memory.name}; the target has {memory.bytes:,}")
