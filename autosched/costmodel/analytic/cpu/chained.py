"""What a nest of a chain moves between caches: the nest of one tile of rows, as often as there are tiles.

From one tile to the next a cache keeps what all parts of the chain touch of a tile, where it holds that; and what is
handed on in a tile never leaves a cache that does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np
import numpy.typing as npt

from autosched.costmodel.analytic.cpu.caches import capacities, moving, seconds_of
from autosched.costmodel.analytic.cpu.tlb import page_bytes
from autosched.costmodel.analytic.cpu.traffic import resident, traffic
from autosched.tiling.plans.cached_on_nest import of_nest
from autosched.tiling.plans.chain import Chain
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.plan import Plan, TensorPart
from autosched.tiling.space.memoize_columns import memoize_columns
from autosched.tiling.steps import tiled_axes
from autosched.tiling.steps.cpu.chain import PLACE, ROWS, TILE, rows_axis

Columns = Mapping[str, npt.NDArray[np.int64]]
Column = npt.NDArray[np.float64]


def moved_in_chain(part: TensorPart, plan: Plan, values: Columns, share: Column) -> dict[str, Column]:
    """Seconds per row of the terms of `caches.LEVELS`, as `caches.moved_seconds` has them of a nest by itself."""
    name = part.names("clock traffic in chain")
    moved = memoize_columns(values, name, lambda v: _bytes(part, plan, v))
    return seconds_of(moved, plan.target, share)


def _bytes(part: TensorPart, plan: Plan, v: Columns) -> list[Column]:
    """Bytes that come into each level of cache, the first one left out as `caches` has it."""
    chain, target = plan.chain, plan.target
    assert chain is not None
    sizes = capacities(target)
    rows, place = v[chain.names(ROWS.name)], v[chain.names(PLACE.name)]
    axis = rows_axis(part.nest, chain)
    columns = moving(part.nest, part.names, v)
    result = [np.zeros(len(rows)) for _ in sizes]
    for size in np.unique(rows).tolist():
        at = np.flatnonzero(rows == size)
        some = {k: c[at] for k, c in columns.items()}
        if axis in tiled_axes(part.nest):
            some[part.names.tiles(axis)] = -(-size // some[part.names.register(axis)])
        tiles = -(-chain.extent // size)
        inside = traffic(of_rows(part.nest, axis.name, size), part.names, some, sizes, page_bytes(target))
        for total, capacity, each in zip(result, sizes, inside, strict=True):
            anew = np.where(
                place[at] == TILE, _anew(part, plan, size, True, capacity), _anew(part, plan, size, False, capacity)
            )
            total[at] = np.maximum(each * tiles, anew)
    return result


def _anew(part: TensorPart, plan: Plan, rows: int, tile: bool, capacity: float) -> float:
    """Bytes that come into a cache at least: of what each tile of `rows` reads again whatever the cache does not keep
    from tile to tile, and of what each row has of its own whatever it does not keep from call to call."""
    chain = plan.chain
    assert chain is not None
    handed = {h.tensor for h in chain.handed} if tile else set[str]()
    every = {name: of for p in plan.chained_parts for name, of in touched(p, chain).items()}
    tiles = -(-chain.extent // rows)
    of_tile = sum(size / tiles if own else size for size, own in every.values())
    of_all = sum(size / tiles if name in handed else size for name, (size, _) in every.items())
    lost_tile, lost_all = (1.0 - float(resident(n, capacity)) for n in (of_tile, of_all))
    total = 0.0
    for name, (size, own) in touched(part, chain).items():
        if not own:
            total += size * tiles * lost_tile
        elif name in handed:
            total += size * lost_tile
        else:
            total += size * lost_all
    return total


def touched(part: TensorPart, chain: Chain) -> dict[str, tuple[float, bool]]:
    """The tensors that a part reads and writes, each with its bytes and whether rows of the chain have their own."""
    program, nest = part.nest.mapping.program, part.nest
    axis = rows_axis(nest, chain)
    names = {nest.mapping.operands[o.name].tensor: axis in nest.operand_axes(o.name) for o in nest.intrinsic.inputs}
    if part.keep:
        names[nest.stage.assign.tensor] = True
    names |= {f.stage.assign.tensor: True for f in part.epilogue}
    tensors = {n: program.tensors[n] for n in names}
    return {n: (float(prod(t.extents) * t.dtype.bytes), names[n]) for n, t in tensors.items()}


@of_nest
def of_rows(nest: Nest, axis: str, rows: int) -> Nest:
    """The nest with so many rows along an axis."""

    def cut(a: NestAxis) -> NestAxis:
        (name, low, _), *_ = a.members
        return replace(a, extent=rows, members=((name, low, rows),))

    return replace(nest, axes=tuple(cut(a) if a.name == axis else a for a in nest.axes))
