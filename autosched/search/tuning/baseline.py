"""What the best kernel is compared with: the program's loops compiled as they are written, on one thread."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from autosched.device.protocol import Build, Device
from autosched.ir.program import Program
from autosched.ir.work import steps
from autosched.machine.target import Target
from autosched.search.tuning.deadline import briefly
from autosched.search.tuning.final import Interleaves, raced_by_device, round_of
from autosched.search.tuning.measuring import Measuring
from autosched.search.tuning.study import Best
from autosched.tiling.candidate import Candidate
from autosched.tiling.plans.literal import literal_plan

SLOWEST_RATE = 2e8
MOST_SECONDS = 1.0
"""A program whose naive loops could take longer than this, at SLOWEST_RATE operations a second, is not measured."""
CARD_RATE, CARD_SECONDS = 2e7, 0.2
"""The same on a GPU, of which they are one thread: most of a call it waits for memory, and a dozen calls are timed."""
NAME = "the loops as written"
BUILD_S = 2.0
"""What building them may take, where no candidate took longer."""
IN_TURN_S = 1.0
FEWEST, MOST = 3, 15
"""What the rounds take in which the loops and the best kernel take turns, and their number. Where the fewest would take
longer, the loops are measured alone."""


@dataclass(frozen=True)
class Baseline:
    """`time_s` is None where the naive loops failed or would have taken too long. `best_s` is the best kernel's time in
    the same rounds, None where the loops were measured alone: the machine may have been another then."""

    name: str
    time_s: float | None
    best_s: float | None = None


def measure_baseline(
    program: Program,
    target: Target,
    device: Device,
    candidate_s: float = 0.0,
    best: Best | None = None,
    build_s: float = BUILD_S,
) -> Baseline | None:
    """Time the naive loops on the device, in turn with the `best` kernel where the device interleaves; None where
    they would take too long, to run or, on the main thread, to build: longer than any candidate (`candidate_s` at most)
    and than `build_s`; and on a chip without a host, where nothing runs them."""
    if not target.host:
        return None
    on_gpu = target.backend.is_gpu and getattr(device, "name", "") == target.backend.device
    rate, most_s = (CARD_RATE, CARD_SECONDS) if on_gpu else (SLOWEST_RATE, MOST_SECONDS)
    if steps(program) / rate > most_s:
        return None
    built: Build | None = None
    with briefly(max(build_s, candidate_s)):
        built = device.build(Candidate(literal_plan(program, target), 0))
    if built is None:
        return None
    measured = Measuring(device, None, monotonic).measured(built, "final")
    if not measured.ok:
        return None
    alone = Baseline(NAME, measured.time_s)
    return alone if best is None else _in_turn(device, built, best, alone, max(build_s, candidate_s))


def _in_turn(device: Device, loops: Build, best: Best, alone: Baseline, build_s: float) -> Baseline:
    """The loops and the best measured in turn; `alone` where the device does not interleave, where that would take too
    long, and where one of them fails."""
    if not isinstance(device, Interleaves):
        return alone
    built: Build | None = None
    with briefly(build_s):
        built = device.build(best.candidate)
    rounds = min(MOST, int(IN_TURN_S / round_of([best.time_s, alone.time_s or 0.0])))
    if built is None or rounds < FEWEST:
        return alone
    ours, theirs = raced_by_device(device, [built, loops], rounds)
    return Baseline(NAME, theirs.time_s, ours.time_s) if ours.ok and theirs.ok else alone
