"""The space of a spatial accelerator: what its scratchpads hold, for how long, and in which order blocks are visited.

An accelerator computes intrinsic tiles out of memories that the program fills (`Memory.holds`). The output's two tiled
axes and the reduction are cut into blocks of tiles; the loops over blocks are nested in some `order`. Each input is
`resident` inside the first so many loops: it is copied where that loop begins another trip, and what is copied is all
that the loops further in ask of it; accumulators stay until the last loop over the reduction ends. Two `slots` for what
is resident let the next copy run while the array computes on the last.
"""

from __future__ import annotations

from itertools import pairwise

from autosched.logic import FALSE, TRUE, Bool, Const, Int, Var, all_of, any_of, ceil_div
from autosched.logic.expr import where
from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.step import Decision, Rule, Step
from autosched.tiling.steps.spatial.loops import (
    ORDER,
    kept_level,
    resident_name,
    slots_name,
    spatial_loops,
    spatial_orders,
    trips_name,
)
from autosched.tiling.steps.spatial.states import loads_name, loads_of

TILES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
SLOTS = (1, 2)


def is_spatial(target: Target) -> bool:
    """Whether the target has memories that the program fills."""
    return any(m.holds for m in target.memories)


def spatial_steps(nest: Nest, target: Target, names: StepNames) -> list[Step]:
    """The steps of a nest on a spatial accelerator, in order."""
    return [blocks(nest, names), loop_orders(nest, names), residency(nest, target, names)]


def blocks(nest: Nest, names: StepNames) -> Step:
    """`block_x`: intrinsic tiles of a block along each axis. Derived: `trips_x`, the number of its blocks."""
    decisions: list[Decision] = []
    derived: dict[str, Int] = {}
    for axis in spatial_loops(nest):
        whole = (axis.units,) if axis.units not in TILES and axis.units < 2 * TILES[-1] else ()
        sizes = tuple(sorted((*(t for t in TILES if t <= axis.units), *whole)))
        decisions.append(Decision(names.block(axis), sizes))
        derived[trips_name(names, axis)] = ceil_div(axis.units, Var(names.block(axis)))
    return Step("blocks", tuple(decisions), (), derived)


def loop_orders(nest: Nest, names: StepNames) -> Step:
    """`order`: how loops over blocks are nested. Loops of one trip come last, in the axes' own order."""
    orders = spatial_orders(nest)
    labels = tuple(" ".join(a.name for a in order) for order in orders)
    order, loops = Var(names(ORDER.name)), spatial_loops(nest)
    sorted_out: list[Bool] = []
    for k, nested in enumerate(orders):
        for outer, inner in pairwise(nested):
            once, after = (Var(trips_name(names, a)).eq(1) for a in (outer, inner))
            last = after if loops.index(outer) < loops.index(inner) else FALSE
            sorted_out.append(order.eq(k).implies(once.implies(last)))
    rule = Rule(order.name, all_of(*sorted_out), "order {" + order.name + "} does not end with its loops of one trip")
    return Step("loop order", (Decision(order.name, tuple(range(len(orders))), labels),), (rule,) if sorted_out else ())


def residency(nest: Nest, target: Target, names: StepNames) -> Step:
    """`resident_a`, `slots_a` of each input, `slots_c` of accumulators; rules that memories hold them. Derived: bytes
    of each, and `loads_b`: how often the state that holds an input is loaded (`states`)."""
    decisions: list[Decision] = []
    rules: list[Rule] = []
    derived: dict[str, Int] = {}
    inert: dict[str, Bool] = {}
    orders, count = spatial_orders(nest), len(spatial_loops(nest))
    order = Var(names(ORDER.name))
    for o in nest.intrinsic.inputs:
        resident, slots = Var(resident_name(names, o.name)), Var(slots_name(names, o.name))
        labels = ("all loops", *("1 loop inside" if n == 1 else f"{n} loops inside" for n in range(1, count + 1)))
        decisions += [Decision(resident.name, tuple(range(count + 1)), labels), Decision(slots.name, SLOTS)]
        inert[slots.name] = resident.eq(0)
        moved = all_of(*(_moves(nest, o.name, order.eq(k), resident, nested, names) for k, nested in enumerate(orders)))
        sentence = f"{o.name} is copied inside a loop that does not move it ({{{resident.name}}})"
        rules.append(Rule(resident.name, moved, sentence))
        size = o.elements * o.dtype.bits // 8
        derived[names(f"bytes_{o.name}")] = resident_tiles(nest, o.name, names) * slots * size
    acc = nest.intrinsic.accumulator
    slots = Var(slots_name(names, acc.name))
    decisions.append(Decision(slots.name, SLOTS))
    once = []  # one set of accumulators for all: nothing is ever stored while another is computed
    for k, nested in enumerate(orders):
        level = kept_level(nest, nested)
        once.append(order.eq(k) & (Var(trips_name(names, nested[level - 1])).eq(1) if level else TRUE))
    inert[slots.name] = any_of(*once)
    derived[names(f"bytes_{acc.name}")] = kept_tiles(nest, names) * slots * (acc.elements * acc.dtype.bits // 8)
    for memory in (m for m in target.memories if m.holds):
        held = [o.name for o in nest.intrinsic.inputs] if "inputs" in memory.holds else []
        held += [acc.name] if "accumulators" in memory.holds else []
        total = names(f"bytes_in_{memory.name}")
        derived[total] = _sum([Var(names(f"bytes_{o}")) for o in held])
        rules.append(Rule(total, Var(total) <= memory.bytes, f"{{{total}}} bytes in {memory.name} > {memory.bytes:,}"))
    derived |= {loads_name(names, o.name): loads_of(nest, o.name, names) for o in nest.intrinsic.held}
    return Step("residency", tuple(decisions), tuple(rules), derived, inert)


def _sum(parts: list[Var]) -> Int:
    total: Int = Const(0)
    for part in parts:
        total = total + part
    return total


def _moves(nest: Nest, operand: str, here: Bool, level: Var, nested: tuple[NestAxis, ...], names: StepNames) -> Bool:
    """In this order, the loop that the operand is copied in moves it, and runs more than once."""
    own = nest.operand_axes(operand)
    allowed = [level.eq(0)]
    for k, axis in enumerate(nested):
        if axis in own:
            allowed.append(level.eq(k + 1) & (Var(trips_name(names, axis)) > 1))
    return here.implies(any_of(*allowed))


def resident_tiles(nest: Nest, operand: str, names: StepNames) -> Int:
    """Intrinsic tiles of an input that are resident at once, for one slot."""
    level, order = Var(resident_name(names, operand)), Var(names(ORDER.name))
    total: Int = Const(1)
    for axis in nest.operand_axes(operand):
        if axis in spatial_loops(nest):
            inside = any_of(*(order.eq(k) & (level > o.index(axis)) for k, o in enumerate(spatial_orders(nest))))
            total = total * where(inside, Var(names.block(axis)), axis.units)
        elif axis.reduction:
            total = total * axis.units
    return total


def kept_tiles(nest: Nest, names: StepNames) -> Int:
    """Accumulators that are kept at once, for one slot."""
    order, orders = Var(names(ORDER.name)), spatial_orders(nest)
    total: Int = Const(1)
    for axis in spatial_loops(nest):
        if axis is not nest.depth:
            inside = any_of(*(order.eq(k) for k, o in enumerate(orders) if o.index(axis) < kept_level(nest, o)))
            total = total * where(inside, Var(names.block(axis)), axis.units)
    return total
