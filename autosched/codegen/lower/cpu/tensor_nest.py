"""Lowering of a tensor part: loops around a register tile, in the order that the schedule asks for.

From outside in: the thread loop; rows that are not tiled; tiles of the outer tiled row; block loops in the decided
order; the two tile loops; then one register tile (`register_tile`). The last tile of an axis that does not divide is a
variant of its own, so that whole tiles carry no checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from autosched.codegen.lower.common.context import Context, identifier
from autosched.codegen.lower.common.matrix_rows import ROW
from autosched.codegen.lower.common.operands.computed_source import computed_first, computed_source
from autosched.codegen.lower.common.operands.copied_part import ALL, part_of
from autosched.codegen.lower.common.operands.panel_scope import Around
from autosched.codegen.lower.common.operands.sources import OperandSource, source
from autosched.codegen.lower.common.positions import Position
from autosched.codegen.lower.common.register_tile import DepthRange, RegisterTile, where_it_holds
from autosched.codegen.lower.common.row_epilogue import waiting
from autosched.codegen.lower.common.sums import sums
from autosched.codegen.lower.common.tile_registers import declared
from autosched.codegen.lower.cpu.matrix_tile import MatrixTile, configured
from autosched.codegen.lower.cpu.overlapped import AxisRange, Overlapped
from autosched.codegen.passes.substitute import bind
from autosched.codegen.tree.kernel import Assign, For, If, Stmt
from autosched.logic import TRUE, Bool, Const, Int, IntLike, Var, all_of, maximum, minimum, to_int
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.plan import TensorPart
from autosched.tiling.steps import BLOCK, LOAD, ORDERS, blocked_axes, tiled_axes
from autosched.tiling.steps.cpu.loop_order import INNER, ORDER
from autosched.tiling.steps.cpu.outer_tile_order import LINES, WITHIN, line_axis
from autosched.tiling.steps.cpu.parallel import SPLIT, THREADS, split_axes
from autosched.tiling.steps.cpu.skip_guarded import untouched

Places = dict[str, Position]
Body = Callable[[Places, dict[str, int]], tuple[Stmt, ...]]


def lower_tensor(part: TensorPart, ctx: Context) -> tuple[Stmt, ...]:
    """The statements of the timed call for one tensor part, filling of its panels included."""
    threads = THREADS.of(part.names, ctx.values)
    fills, nest = begin_nest(part, ctx, threads, thread_ranges(part, ctx, threads))
    return (*fills, *nest.threads(threads))


def begin_nest(
    part: TensorPart, ctx: Context, threads: int, ranges: dict[str, AxisRange]
) -> tuple[tuple[Stmt, ...], NestLowering]:
    """What is filled before the nest, and the nest over these ranges; `threads` run it, each for a part of them."""
    sources: dict[str, OperandSource] = {}
    fills: list[Stmt] = []
    around = Around(part.nest, part.names, ctx.values, {n: (r.lower, r.upper) for n, r in ranges.items()})
    inside: dict[str, tuple[Stmt, ...]] = {}
    for operand in (o.name for o in part.nest.intrinsic.inputs):
        if ctx.values[part.names.pack(operand)] == LOAD:
            sources[operand] = computed_source(part, operand, ctx)
        elif ctx.values[part.names.pack(operand)] == BLOCK:
            place = around.place(operand).name
            sources[operand], fill = source(part, operand, ctx, around.piece(operand, threads))
            inside[place] = (*inside.get(place, ()), *fill)
        else:
            held = part_of(part.nest, operand, part.names, ctx.values, threads)
            sources[operand], fill = source(part, operand, ctx, copied_part=held)
            if held is ALL:
                fills += _shared(fill, threads, ctx)
            else:
                inside[held.place] = (*inside.get(held.place, ()), *fill)
    if part.nest.intrinsic.matrices is None:
        micro = declared(part, sources, ctx, sums=sums(part, ctx, threads), waiting=waiting(part, ctx, threads))
    else:
        micro = MatrixTile.of(part, sources, ctx, threads)
    return tuple(fills), NestLowering(part, ctx, micro, ranges, inside)


def whole_ranges(part: TensorPart, ctx: Context) -> dict[str, AxisRange]:
    """Each spatial axis from end to end."""
    ranges: dict[str, AxisRange] = {}
    for axis in part.nest.spatial:
        register = ctx.values[part.names.register(axis)] if axis in tiled_axes(part.nest) else 1
        ranges[axis.name] = AxisRange(Const(0), Const(-(-axis.units // register)))
    return ranges


def thread_ranges(part: TensorPart, ctx: Context, threads: int) -> dict[str, AxisRange]:
    """What a thread does of each spatial axis: all, but for the one that threads share."""
    nest, names = part.nest, part.names
    ranges = whole_ranges(part, ctx)
    if threads > 1:
        axis = split_axes(nest)[SPLIT.of(names, ctx.values)]
        n, t = ranges[axis.name].upper, Var("thread")
        ranges[axis.name] = AxisRange(t * n // threads, (t + 1) * n // threads)
    return ranges


def _shared(fill: tuple[Stmt, ...], threads: int, ctx: Context) -> tuple[Stmt, ...]:
    """A fill's outermost loop is shared out among the threads: its iterations write different elements. Where registers
    are filled in front of it, all of it is one thread's."""
    if threads == 1 or any(ctx.buffers[s.buffer].scope == "register" for s in _unlooped(fill)):
        return fill
    return tuple(replace(s, kind="parallel") if isinstance(s, For) and s.var != ROW else s for s in fill)


def _unlooped(body: tuple[Stmt, ...]) -> Iterator[Assign]:
    """The assignments that stand in unrolled loops alone."""
    for stmt in body:
        if isinstance(stmt, Assign):
            yield stmt
        elif isinstance(stmt, For) and stmt.kind == "unrolled":
            yield from _unlooped(stmt.body)


class NestLowering:
    """The loops of one nest. Each method adds one kind of loop and calls the next with what it has fixed."""

    def __init__(
        self,
        part: TensorPart,
        ctx: Context,
        micro: RegisterTile,
        ranges: dict[str, AxisRange],
        inside: Mapping[str, tuple[Stmt, ...]],
    ) -> None:
        """`inside` holds what runs first in each iteration of an axis's loop around the tiles."""
        self.nest, self.names, self.values, self.micro = part.nest, part.names, ctx.values, micro
        self.part, self.ctx = part, ctx
        self.tiled = tiled_axes(self.nest)
        self.lanes, self.rows, self.depth = blocked_axes(self.nest)
        self.register = {a.name: ctx.values[self.names.register(a)] for a in self.tiled}
        self.ranges, self.inside = ranges, inside
        self.within = line_axis(self.nest) if LINES.of(self.names, self.values) == WITHIN else None

    def count(self, axis: NestAxis) -> int:
        """Register tiles along a tiled axis, units along any other."""
        return -(-axis.units // self.register.get(axis.name, 1))

    def threads(self, threads: int) -> tuple[Stmt, ...]:
        body = configured(self.part, self.outside(), self.ctx.buffers)
        if threads == 1:
            return body
        axis = split_axes(self.nest)[SPLIT.of(self.names, self.values)]
        return (For("thread", Const(0), Const(threads), body, "parallel", note=f"threads share {axis.name}"),)

    def outside(self) -> tuple[Stmt, ...]:
        """Rows that are not tiled, in program order, then tiles of tiled axes without blocks."""
        blocked = {a.name for a in (self.lanes, self.rows) if a}
        plain = [a for a in self.nest.rows if a not in self.tiled]
        whole = [a for a in self.tiled if a.name not in blocked and a is not self.within]

        def rows(k: int, at: Places) -> tuple[Stmt, ...]:
            if k == len(plain):
                return tiles(0, at, {})
            axis = plain[k]
            var = identifier(axis.name)
            r = self.ranges[axis.name]
            body = rows(k + 1, at | {axis.name: Position(None, Var(var))})
            return _loop(var, r.lower, r.upper, self.begun(axis, body))

        def tiles(k: int, at: Places, counts: dict[str, int]) -> tuple[Stmt, ...]:
            if k == len(whole):
                return self.blocks(at, counts)
            axis = whole[k]
            return self.tile_loop(
                axis, self.ranges[axis.name], at, counts, lambda a, c: self.begun(axis, tiles(k + 1, a, c))
            )

        return rows(0, {})

    def begun(self, axis: NestAxis, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The body of the axis's loop, after what fills the panels of its blocks."""
        return (*self.inside.get(axis.name, ()), *body)

    def blocks(self, at: Places, counts: dict[str, int]) -> tuple[Stmt, ...]:
        """Block loops in the decided order; a single block has no loop."""
        axes = (self.lanes, self.rows, self.depth)
        order = ORDERS[ORDER.of(self.names, self.values)]
        present = [axis for axis in (axes[k] for k in order) if axis is not None]
        ranges = {a.name: self.ranges[a.name] for a in (self.lanes, self.rows) if a}

        def loop(k: int, ranges: dict[str, AxisRange], depth: DepthRange | None) -> tuple[Stmt, ...]:
            if k == len(present):
                return self.tiles(ranges, depth, at, counts)
            axis = present[k]
            block = self.values[self.names.block(axis)]
            total = axis.units if axis is self.depth else self.count(axis)
            var = f"{identifier(axis.name)}b"
            if axis is self.depth:
                if block == 0 or block >= total:
                    return loop(k + 1, ranges, DepthRange(Const(0), Const(total), True, True))
                start = Var(var)
                stop = minimum(start + block, total)
                inner = loop(k + 1, ranges, DepthRange(start, stop, start.eq(0), (start + block) >= total))
                return _loop(var, 0, total, self.begun(axis, inner), block, f"cache block of {axis.name}")
            if block == 0 or block >= total:
                return loop(k + 1, ranges, depth)
            r = ranges[axis.name]
            here = AxisRange(Var(var), minimum(Var(var) + block, r.upper))
            inner = loop(k + 1, ranges | {axis.name: here}, depth)
            return _loop(var, r.lower, r.upper, self.begun(axis, inner), block, f"cache block of {axis.name}")

        return loop(0, ranges, None)

    def tiles(
        self, ranges: dict[str, AxisRange], depth: DepthRange | None, at: Places, counts: dict[str, int]
    ) -> tuple[Stmt, ...]:
        """The tile loops of the two blocked axes, behind those of lines within a block, then the register tile."""
        pair = [self.lanes, self.rows] if INNER.of(self.names, self.values) == 0 else [self.rows, self.lanes]
        axes = [a for a in (self.within, *pair) if a is not None]
        ranges = {**self.ranges, **ranges}
        micro = self.micro
        if depth is None or not isinstance(micro, MatrixTile) or not micro.overlaps(depth):
            return self.tile_loops(axes, ranges, depth, at, counts)
        beside = Overlapped(self, micro, axes, ranges, replace(depth, last=True)).loops(at, counts)
        if depth.last is True:
            return beside
        earlier = bind(self.tile_loops(axes, ranges, replace(depth, last=False), at, counts), {})
        last = depth.last if isinstance(depth.last, Bool) else TRUE
        return (If(~last, earlier), If(last, beside))

    def tile_loops(
        self,
        axes: Sequence[NestAxis],
        ranges: Mapping[str, AxisRange],
        depth: DepthRange | None,
        at: Places,
        counts: dict[str, int],
    ) -> tuple[Stmt, ...]:
        """Tile loops of these axes, one register tile after the other."""
        apart = None if depth is None else computed_first(self.micro.sources, depth.lower)
        first = others = self.micro
        if apart is not None:
            first, others = (replace(self.micro, sources=s) for s in apart)

        def loop(k: int, at: Places, counts: dict[str, int]) -> tuple[Stmt, ...]:
            if k == len(axes):
                return first.emit(at, counts, depth)
            here = ranges[axes[k].name]
            if k + 1 < len(axes) or apart is None:
                return self.tile_loop(axes[k], here, at, counts, lambda a, c: loop(k + 1, a, c))
            behind, left = AxisRange(here.lower, here.lower + 1), AxisRange(here.lower + 1, here.upper)
            return (
                *self.tile_loop(axes[k], behind, at, counts, lambda a, c: first.emit(a, c, depth)),
                *self.tile_loop(axes[k], left, at, counts, lambda a, c: others.emit(a, c, depth)),
            )

        return loop(0, at, counts)

    def tile_loop(
        self, axis: NestAxis, r: AxisRange, at: Places, counts: dict[str, int], body: Body
    ) -> tuple[Stmt, ...]:
        """Whole tiles in a loop, then the variant for what is left of the axis."""
        size = self.register[axis.name]
        full = axis.full_units // size
        rest = axis.units - full * size
        var = Var(f"{identifier(axis.name)}t")
        unit = Var(f"{identifier(axis.name)}r")

        def place(tile: Int, n: int, partial: bool, inside: bool = False) -> tuple[Stmt, ...]:
            return body(at | {axis.name: Position(tile, tile * size + unit, partial, inside)}, counts | {axis.name: n})

        stmts: list[Stmt] = []
        if full:
            upper = minimum(r.upper, full) if rest else r.upper
            if axis is self.micro.skips:  # what is skipped is decided tile by tile; where nothing is, tiles are alike
                for alike, tiles in groupby(range(full), lambda tile: untouched(self.nest, axis, tile * size, size)):
                    run = list(tiles)
                    if alike and len(run) > 1:
                        inside = place(var, size, False, inside=True)
                        stmts += _loop(var.name, maximum(r.lower, run[0]), minimum(upper, run[-1] + 1), inside)
                        continue
                    for tile in run:
                        there = bind(place(Const(tile), size, False), {var.name: Const(tile)})  # fills speak of it too
                        stmts += where_it_holds(all_of(r.lower <= tile, upper > tile), there)
            else:
                stmts += _loop(var.name, r.lower, upper, place(var, size, False))
        if rest:
            last = bind(place(Const(full), rest, axis.extent % axis.unit != 0), {var.name: Const(full)})
            stmts += where_it_holds(all_of(r.lower <= full, r.upper > full), last)
        return tuple(stmts)


def _loop(
    var: str, lower: IntLike, upper: IntLike, body: tuple[Stmt, ...], step: int = 1, note: str = ""
) -> tuple[Stmt, ...]:
    """A serial loop; one that provably runs once is its body."""
    low, high = to_int(lower), to_int(upper)
    if isinstance(low, Const) and isinstance(high, Const):
        if high.value <= low.value:
            return ()
        if high.value - low.value <= step:
            return bind(body, {var: low})
    return (For(var, low, high, body, "serial", step, note),)
