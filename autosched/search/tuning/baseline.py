"""What the best kernel is compared with: the program's loops compiled as they are written, on one thread."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from autosched.device.protocol import Device
from autosched.ir.program import Program
from autosched.ir.work import steps
from autosched.machine.target import Target
from autosched.search.tuning.deadline import briefly
from autosched.search.tuning.measuring import Measuring
from autosched.tiling.candidate import Candidate
from autosched.tiling.plans.plan import LiteralPart, Plan
from autosched.tiling.space.space import Space
from autosched.tiling.step import Decision, Step

SLOWEST_RATE = 2e8
MOST_SECONDS = 1.0
"""A program whose naive loops could take longer than this, at SLOWEST_RATE operations a second, is not measured."""
CARD_RATE, CARD_SECONDS = 2e7, 0.2
"""The same on a GPU, of which they are one thread: most of a call it waits for memory, and a dozen calls are timed."""
BUILD_S = 2.0
"""What building them may take, where no candidate took longer."""


@dataclass(frozen=True)
class Baseline:
    """`time_s` is None where the naive loops failed or would have taken too long."""

    name: str
    time_s: float | None


def literal_plan(program: Program, target: Target) -> Plan:
    """The program exactly as written, as a plan of one row."""
    names = tuple(s.name for s in program.stages)
    space = Space("as written", [Step("as written", (Decision("threads", (1,)),))])
    return Plan("as written", program, target, (LiteralPart(program.body, names),), space)


def measure_baseline(
    program: Program, target: Target, device: Device, candidate_s: float = 0.0, build_s: float = BUILD_S
) -> Baseline | None:
    """Time the naive loops on the device; None where they would take too long, to run or, on the main thread, to build:
    longer than any candidate (`candidate_s` at most) and than `build_s`."""
    on_gpu = target.backend.is_gpu and getattr(device, "name", "") == target.backend.device
    rate, most_s = (CARD_RATE, CARD_SECONDS) if on_gpu else (SLOWEST_RATE, MOST_SECONDS)
    if steps(program) / rate > most_s:
        return None
    built = None
    with briefly(max(build_s, candidate_s)):
        built = device.build(Candidate(literal_plan(program, target), 0))
    if built is None:
        return None
    measured = Measuring(device, None, monotonic).measured(built, "final")
    return Baseline("the loops as written", measured.time_s) if measured.ok else None
