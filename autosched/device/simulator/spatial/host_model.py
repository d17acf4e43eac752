"""A statement that the array has no part in: stages by rows, and loops as written.

Operations cost what the target states of them, on the unit that has a rate (`tiling.plans.units`), else on the host,
one element at a time; where the host computes, or only moves, it also loads and stores each element that memory holds.
What moves goes over the bus to main memory. The slowest of the three decides. On a chip without a host commands carry
the numbers that are stored here; its plans have nothing else for it (`tiling.planner.without_host`).
"""

from __future__ import annotations

from math import ceil

from autosched.device.simulator.engine import TICKS, Recorder, Simulated, Use, simulate
from autosched.device.simulator.spatial.requests import SERVERS, Amounts, Resource
from autosched.device.simulator.walk.facts import Facts
from autosched.machine.target import Target
from autosched.tiling.plans.units import AcceleratorUnits


def play_host(
    found: Facts, target: Target, units: AcceleratorUnits, record: Recorder | None = None
) -> tuple[Simulated, Amounts]:
    """Its events, and what it asks of each unit."""
    asked = Amounts()
    for work in found.works:
        asked.compute(work, units, target)
    scalar = target.rates.get("scalar", 1.0)
    rates = {False: target.rates.get("load", scalar), True: target.rates.get("store", scalar)}
    alone = target.host and (asked.host > 0 or not asked.vector)
    for touch in found.touches:
        elements = touch.runs * (touch.lane.width if touch.lane else 1)
        asked.loaded += 0.0 if touch.write else elements * touch.bytes
        asked.stored += elements * touch.bytes if touch.write else 0.0
        asked.host += elements / rates[touch.write] if alone else 0.0
    main = target.memories[-1]
    bus = (asked.loaded + asked.stored) * target.clock_hz / (main.bandwidth_bytes_per_s or target.clock_hz)
    cycles = (Resource.BUS, bus), (Resource.VECTOR, asked.vector), (Resource.HOST, asked.host)
    uses = tuple((int(server), ceil(amount * TICKS)) for server, amount in cycles if amount)
    first = ceil((main.latency_s or 0.0) * target.clock_hz * TICKS)
    moved = asked.loaded + asked.stored
    return simulate([(Use(uses, first, name="host", amount=moved),)], len(SERVERS), record=record), asked
