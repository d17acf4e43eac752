"""Panels of one cache block at a time: filled inside the block loops, by each thread for itself, so that what is packed
is used while a cache still holds it. The code is in `codegen/lower/common/operands/panel_scope.py`."""

from __future__ import annotations

from autosched.logic import Const, Int, Var, all_of, where
from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.step_names import StepNames, blocked_axes, tiled_axes
from autosched.tiling.step import Rule
from autosched.tiling.steps.common.layout import depth_stride, panel_elements, register_elements, vectorises
from autosched.tiling.steps.cpu.loop_order import ORDERS

BLOCK = 4
"""The value of `pack_x`, beside those of `steps.pack`."""
MOST_REFILLS = 2
"""Times that each element may be packed: once for every block of the axes outside that the operand does not have."""
CACHE_SHARE = 2
"""A block's panel may fill one part in so many of the second level of cache; a panel of everything that does is not cut
into blocks."""
DEFAULT_L2 = 1 << 20


def outer_axes(nest: Nest) -> tuple[NestAxis, ...]:
    """Axes whose loops are outside the block loops, outermost first: rows that are not tiled, tiled ones without
    blocks."""
    tiled, blocked = tiled_axes(nest), blocked_axes(nest)
    return (*(a for a in nest.rows if a not in tiled), *(a for a in tiled if a not in blocked))


def block_loops(nest: Nest, order: int) -> tuple[NestAxis, ...]:
    """Axes with a loop around the tiles of a block, outermost first."""
    axes = blocked_axes(nest)
    return (*outer_axes(nest), *(a for a in (axes[k] for k in ORDERS[order]) if a is not None))


def cache_bytes(target: Target) -> int:
    """Bytes of the second level of cache."""
    return next((m.bytes for m in target.memories if m.name == "L2"), DEFAULT_L2)


def room(target: Target) -> int:
    """Bytes that a panel of one block may take."""
    return cache_bytes(target) // CACHE_SHARE


def offers_blocks(nest: Nest, operand: str, target: Target) -> bool:
    """Whether a panel of everything is too large for the cache, there can be loops around a smaller one, and the tensor
    is not in the order of use as it is: single loads along a depth whose elements are neighbours."""
    axes = nest.operand_axes(operand)
    if nest.depth is not None and vectorises(nest, operand) and depth_stride(nest, operand) == nest.depth.unit:
        return False
    size = panel_elements(nest, operand) * nest.intrinsic.operands[operand].dtype.bytes
    return size > room(target) and any(a.units > 1 for a in (*outer_axes(nest), *blocked_axes(nest)) if a in axes)


def block_panel(nest: Nest, operand: str, target: Target, names: StepNames) -> tuple[Rule, dict[str, Int]]:
    """When `pack_x` may be `block`. Derived: `refills_x`, how often each element is packed, 0 where no loop is around
    the panel (it would be a panel of everything); `block_bytes_x`, the panel's size."""
    mine = nest.operand_axes(operand)
    outer, blocked = outer_axes(nest), [a for a in blocked_axes(nest) if a is not None]
    trips: dict[str, Int] = {a.name: Const(a.units) for a in outer}
    trips |= {a.name: Var(names.tiles(a)) for a in outer if a in tiled_axes(nest)}
    trips |= {a.name: Var(names(f"blocks_{a.name}")) for a in blocked}
    size: Int = Const(nest.intrinsic.operands[operand].dtype.bytes * register_elements(nest, operand))
    for a in mine:
        tile: Int = Var(names.register(a)) if a in tiled_axes(nest) else Const(1)
        if a in outer:
            size = size * tile
        elif a in blocked:
            whole: Int = Const(a.units) if a.reduction else Var(names.tiles(a))
            size = size * tile * where(Var(names.block(a)).eq(0), whole, Var(names.block(a)))
        else:
            size = size * a.units
    order, last = names.var("order"), len(ORDERS) - 1
    refills = _refills(nest, last, trips, mine)
    for k in reversed(range(last)):
        refills = where(order.eq(k), _refills(nest, k, trips, mine), refills)
    most = room(target)
    count, held = names.var(f"refills_{operand}"), names.var(f"block_bytes_{operand}")
    fits = all_of(count >= 1, count <= MOST_REFILLS, held <= most)
    rule = Rule(
        names(f"block_{operand}_panel"),
        Var(names.pack(operand)).eq(BLOCK).implies(fits),
        f"a panel of a block of {operand} is packed {{{count.name}}} times (1 to {MOST_REFILLS}) and takes "
        f"{{{held.name}}} bytes (at most {most})",
    )
    return rule, {count.name: refills, held.name: size}


def _refills(nest: Nest, order: int, trips: dict[str, Int], mine: tuple[NestAxis, ...]) -> Int:
    """The product of the trips of loops that the operand does not depend on, outside one that it does."""
    total: Int = Const(0)
    for axis in reversed(block_loops(nest, order)):
        n = trips[axis.name]
        total = where(n > 1, where(total.eq(0), 1, total), total) if axis in mine else total * n
    return total
