"""The chain: how many rows of the shared axis its parts take at a time, where they hand over, and who takes which rows.

A tile of rows has no other blocks of rows inside it. What the chain itself computes is read where it lies, and what is
packed in the call is packed before the chain begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from autosched.logic import Var, ceil_div
from autosched.tiling.plans.chain import Chain
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.step_names import StepNames, blocked_axes, tiled_axes
from autosched.tiling.step import Decision, Handle, Rule, Step
from autosched.tiling.steps.cpu.columns import COLUMNS
from autosched.tiling.steps.cpu.copy_granularity import WHOLE, copy_of
from autosched.tiling.steps.cpu.pack import DIRECT, PANEL
from autosched.tiling.steps.cpu.parallel import THREADS
from autosched.tiling.steps.cpu.prefetch import NO, PREFETCH

ROWS = Handle("rows")
PLACE = Handle("place")
CHAIN_THREADS = Handle("threads")
TILE, MEMORY = 0, 1
SIZES = (12, 24, 48, 96, 192, 8, 16, 32, 64, 128, 256)
"""Rows of a tile: multiples of many heights of register tiles."""


def rows_axis(nest: Nest, chain: Chain) -> NestAxis:
    """The nest's axis that the chain shares."""
    return nest.by_name[chain.axes[nest.stage.name]]


def tile_sizes(extent: int) -> tuple[int, ...]:
    """Rows of a tile that are offered: there is more than one tile."""
    return tuple(n for n in SIZES if n < extent)


def chain_step(chain: Chain, nests: Sequence[tuple[Nest, StepNames]], threads: int) -> Step:
    """`rows` of a tile, a multiple of each register tile's; `place`, where what is handed on lies: a `tile` of each
    thread's own, or `memory`, the whole tensor; `threads`, which share the tiles. Derived: `tiles`, how many."""
    names = chain.names
    rows, count = Var(names(ROWS.name)), Var(names(CHAIN_THREADS.name))
    tiles = names("tiles")
    rules = []
    for nest, own in nests:
        axis = rows_axis(nest, chain)
        if axis in tiled_axes(nest):
            height = Var(own.register(axis))
            even = (rows % height).eq(0)
            sentence = f"a tile of {{{rows.name}}} rows is not a multiple of {{{height.name}}}"
            rules.append(Rule(f"{names(ROWS.name)} {nest.stage.name}", even, sentence))
    rules.append(Rule(count.name, count <= Var(tiles), "more threads than tiles of the chain"))
    places = (TILE, MEMORY) if chain.handed else (MEMORY,)
    return Step(
        "chain",
        (
            Decision(rows.name, tile_sizes(chain.extent)),
            Decision(names(PLACE.name), places, tuple(("tile", "memory")[p] for p in places)),
            Decision(count.name, tuple(range(1, threads + 1))),
        ),
        tuple(rules),
        {tiles: ceil_div(chain.extent, rows)},
    )


def held_in_chain(steps: Sequence[Step], nest: Nest, names: StepNames, chain: Chain) -> list[Step]:
    """A member's steps, with what a chain decides for it at its neutral value, and without packing inside the chain.
    Its threads are the chain's, which share out tiles of rows."""
    axis = rows_axis(nest, chain)
    domains: dict[str, tuple[int, ...]] = {names(PREFETCH.name): (NO,)}
    if axis in blocked_axes(nest):
        domains[names.block(axis)] = (0,)
    for o in nest.intrinsic.inputs:
        domains[names.pack(o.name)] = packs(nest, o.name, chain)
        domains[names(copy_of(o.name).name)] = (WHOLE,)

    def held(decision: Decision) -> Decision:
        allowed = domains.get(decision.name, decision.domain)
        kept = [k for k, v in enumerate(decision.domain) if v in allowed]
        labels = tuple(decision.labels[k] for k in kept) if decision.labels else ()
        return replace(decision, domain=tuple(decision.domain[k] for k in kept), labels=labels)

    threads = names(THREADS.name)
    count, shares = Var(chain.names(CHAIN_THREADS.name)), Var(chain.names("tiles"))
    shared = Step("threads of the chain", (), (), {threads: count, names("shares"): shares})
    rest = [replace(s, decisions=tuple(held(d) for d in s.decisions if d.name != threads)) for s in steps]
    return [shared, *rest]


def packs(nest: Nest, operand: str, chain: Chain) -> tuple[int, ...]:
    """How a member of the chain may read an operand."""
    tensor = nest.mapping.operands[operand].tensor
    return (DIRECT,) if tensor in chain.written else (DIRECT, PANEL, COLUMNS)


