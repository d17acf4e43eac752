"""What an accelerator's units are asked for: their names, and amounts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from autosched.device.simulator.walk.facts import Work
from autosched.machine.target import Target
from autosched.tiling.plans.units import AcceleratorUnits


class Resource(IntEnum):
    """Units that one thing at a time keeps busy."""

    BUS = 0
    ARRAY = 1
    SCRATCH = 2
    ACCUMULATORS = 3
    COPIES_IN = 4
    COPIES_OUT = 5
    VECTOR = 6
    HOST = 7
    LOADS = 8


SERVERS = ("bus", "array", "scratchpad", "accumulators", "copies in", "copies out", "vector", "host", "loads")


@dataclass
class Amounts:
    """Of all executions together: bytes copied in, bytes stored, bytes that the array reads of scratchpads, and writes
    to accumulators (reads of them pass beside), cycles of copies, of the array, of loads of its states, of the unit
    that computes element by element, and of the host; the array's operations."""

    loaded: float = 0.0
    stored: float = 0.0
    scratch: float = 0.0
    accumulated: float = 0.0
    copies: float = 0.0
    array: float = 0.0
    states: float = 0.0
    vector: float = 0.0
    host: float = 0.0
    operations: float = 0.0

    def add(self, other: Amounts) -> None:
        """Both together."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def compute(self, work: Work, units: AcceleratorUnits, target: Target) -> None:
        """The operations of some arithmetic, each by the unit that has them."""
        if work.into in units.finishing:
            return  # counted where that is written
        for function, dtype, count in work.kinds:
            unit, cycles = units.price(target, function, dtype)
            setattr(self, unit, getattr(self, unit) + work.runs * work.width * count * cycles)
