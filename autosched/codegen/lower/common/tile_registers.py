"""The registers of a register tile: declared once, and shared by all its variants."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from autosched.codegen.lower.common.context import Context
from autosched.codegen.lower.common.guarded_steps import Parts
from autosched.codegen.lower.common.operands.sources import OperandSource
from autosched.codegen.lower.common.prefetches import next_block
from autosched.codegen.lower.common.register_tile import RegisterTile
from autosched.codegen.lower.common.sums import Sums
from autosched.codegen.lower.common.tile_places import held_axes
from autosched.codegen.lower.common.transposed_stores import store_transposer
from autosched.ir.dtypes import DType
from autosched.logic import Int, evaluate
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.plan import TensorPart
from autosched.tiling.steps import EACH, tiled_axes, window
from autosched.tiling.steps.cpu.shared_loads import LOADS
from autosched.tiling.steps.cpu.skip_guarded import SKIP, skipping_row
from autosched.tiling.steps.cpu.unroll import UNROLL

Declare = Callable[[str, DType, tuple[int, ...], str], str]
"""Makes a buffer for a register tile, of a name, an element type, a shape and a scope; returns its name."""


def declared(
    part: TensorPart,
    sources: Mapping[str, OperandSource],
    ctx: Context,
    tiled: tuple[NestAxis, ...] | None = None,
    owner: tuple[Int, int] | None = None,
    scope: str = "register",
    sums: Sums | None = None,
    waiting: Sums | None = None,
) -> RegisterTile:
    """The register tile of a part. `owner` is a worker and how many there are, `scope` is where accumulators are;
    `sums` and `waiting` are where they wait (`RegisterTile`)."""

    def declare(name: str, dtype: DType, shape: tuple[int, ...], scope: str) -> str:
        return ctx.declare(name, dtype, shape, scope, name if scope == "state" else None).name

    return RegisterTile(**fields_of(part, sources, ctx, declare, tiled, owner, scope, sums), waiting=waiting)


def fields_of(
    part: TensorPart,
    sources: Mapping[str, OperandSource],
    ctx: Context,
    declare: Declare,
    tiled: tuple[NestAxis, ...] | None = None,
    owner: tuple[Int, int] | None = None,
    scope: str = "register",
    sums: Sums | None = None,
    hold_all: bool = False,
) -> dict[str, Any]:
    """What every register tile holds; buffers are made by `declare`."""
    nest, names = part.nest, part.names
    tiled = tiled_axes(nest) if tiled is None else tiled
    acc, factors = nest.intrinsic.accumulator, [ctx.values[names.register(a)] for a in tiled]
    owners = () if owner is None else (owner[1],)
    accumulators = declare("acc", acc.dtype, (*owners, *factors, acc.elements), scope)
    loads = LOADS.of(names, ctx.values)
    shared = window(nest, loads) if loads != EACH else None
    registers: dict[str, str] = {}
    for o in nest.intrinsic.inputs:
        held = held_axes(nest, o.name, tiled, hold_all)
        shape = [f for a, f in zip(tiled, factors, strict=True) if a in held]
        if shared is not None:
            shape = [int(evaluate(shared.live(nest, o.name, names), ctx.values))]
        name, where = (o.state, "state") if o.state else (f"{o.name}_reg", "register")
        registers[o.name] = declare(name, o.dtype, (*shape, o.elements), where)
    left: Parts = nest.stepped_sums if owner is None else ()
    return {
        "part": part,
        "sources": sources,
        "ctx": ctx,
        "tiled": tiled,
        "acc": accumulators,
        "registers": registers,
        "owner": () if owner is None else (owner[0],),
        "sums": sums,
        "hold_all": hold_all,
        "window": shared,
        "kept_sums": declare("kept", acc.dtype, (1, acc.elements), "register") if left else "",
        "left": left,
        "unroll": UNROLL.of(names, ctx.values),
        "skips": skipping_row(nest) if SKIP.of(names, ctx.values) else None,
        "next": next_block(nest, names, ctx.values),
        "transposer": None if owner else store_transposer(nest, ctx),
    }
