"""Lowering of tile loops on a GPU: parallel loops become blocks of a grid, the others stay loops inside a block.

The body is lowered as the kernels that it would be by itself. Within a block their grids are loops, one tile after the
other, and their workers are the block's. What a grid leaves to single threads is shared out among the block's threads,
and what stays as written is the work of one:

    for b, i_tile: blocks of the grid
        for block in range(…):              was a grid of the body's
            for warp in range(4): …         phases of the block's workers, a barrier between those that hand on
        for j_block in range(4): …          tile loops inside
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from autosched.codegen.lower.common.context import Context, identifier
from autosched.codegen.lower.common.tile_loops import BufferPlace, LowerPart, choosing
from autosched.codegen.lower.gpu.bodies.calls_together import calls_together
from autosched.codegen.lower.gpu.bodies.constant_starts import constant_start, runs
from autosched.codegen.lower.gpu.bodies.fetched_ahead import AheadOfLoop, fetched_ahead
from autosched.codegen.lower.gpu.bodies.fragment_rows import FragmentRows
from autosched.codegen.lower.gpu.bodies.fragment_values import HeldTensor, in_registers
from autosched.codegen.lower.gpu.bodies.kept_fragments import flattened, kept_fragments
from autosched.codegen.lower.gpu.bodies.kept_slices import kept_slices
from autosched.codegen.lower.gpu.bodies.unmasked import unmasked_apart
from autosched.codegen.lower.gpu.bodies.used_part import Touched, touched, used_part
from autosched.codegen.lower.gpu.moved_boxes import MovedBoxes
from autosched.codegen.passes.substitute import bind
from autosched.codegen.tree.kernel import (
    WORKERS,
    BarrierArrive,
    BarrierWait,
    Buffer,
    Comment,
    For,
    If,
    KernelError,
    Stmt,
    statements,
)
from autosched.codegen.tree.uses import used_buffers
from autosched.ir.value import reads
from autosched.logic import Const, Int, Var, all_of
from autosched.logic.walk import substitute_int
from autosched.tiling.analysis.left_behind import left_behind
from autosched.tiling.plans.find_warp_rows import warp_rows
from autosched.tiling.plans.plan import Part, ScalarPart, TileLoop, TileLoopsPart, WarpCooperativePart
from autosched.tiling.plans.warp_rows import defined_first, stages_of
from autosched.tiling.steps.gpu.block_tile import SCOPE_WARPS
from autosched.tiling.steps.gpu.bodies.held_rows import AHEAD, BESIDE_LAST, LATER, MEETING, RESIDENT, ROWS, WITH_PRODUCT
from autosched.tiling.steps.gpu.bodies.only_nest import of_blocks, only_nest
from autosched.tiling.steps.gpu.bodies.tile_loops import MEMORY, SHARED, place_of
from autosched.tiling.steps.gpu.bodies.uneven_grid import LONGEST_FIRST, ORDER, uneven_grid
from autosched.tiling.steps.gpu.thread_registers import REGISTER_STEP

THREAD, LONE = "thread", "chain"
"""Loops: a block's threads, each as a worker of its own; the only block of a grid without parallel loops."""
GRID = ("block.x", "block.y", "block.z")


def lower_block_loops(part: TileLoopsPart, ctx: Context, lower_part: LowerPart) -> tuple[Stmt, ...]:
    """The loops around the body's statements: a grid, or loops inside the block of one."""
    inner = replace(ctx, program=part.member.program, buffers={}, prepare=[])
    for name in part.windows:
        inner.tensor(name)
    lowering = _BlockLoops(part, ctx, inner)
    body = tuple(s for p in part.member.parts for s in lowering.inside(p, lower_part))
    if inner.prepare:
        raise KernelError("the body of tile loops prepares data")
    return lowering.around(body)


class _BlockLoops:
    """What the loops of one part make of the statements inside."""

    def __init__(self, part: TileLoopsPart, ctx: Context, inner: Context) -> None:
        self.part, self.ctx = part, ctx
        names = [*(t.axis.name for t in part.loops), *(c.name for c in part.chosen)]
        self.at: dict[str, Int] = {name: Var(identifier(name)) for name in names}
        for read in (r for c in part.chosen for r in reads(c.value)):
            ctx.tensor(read.tensor)
        self.blocks = [t for t in part.loops if part.grid and of_blocks(t)]
        self.inner = inner
        self.held: dict[str, HeldTensor] = {}
        self.rows: FragmentRows | None = None
        warps = ROWS.of(part.names, ctx.values)
        if warps and (rows := warp_rows(part)) is not None:
            self.held = {n: HeldTensor.declare(rows, s, warps, inner) for n, s in rows.held.items()}
            self.rows = FragmentRows(rows, warps, self.held, inner)

    def inside(self, part: Part, lower_part: LowerPart) -> tuple[Stmt, ...]:
        """The statements of one part of the body."""
        held = self.rows
        if self.left_out(part):
            return ()
        if held is not None and isinstance(part, ScalarPart | WarpCooperativePart) and held.rows.computes(part):
            return held.lower(part)
        made = lower_part(part, self.inner)
        return made if isinstance(part, TileLoopsPart) else tuple(self.apart(s) for s in made)

    def left_out(self, part: Part) -> bool:
        """Whether all that a part does is to set rows to a number with which loops behind it begin in registers."""
        if not isinstance(part, ScalarPart | WarpCooperativePart):
            return False
        program, parts = self.inner.program, self.part.member.parts
        begun: set[str] = set()
        for loops in parts[parts.index(part) + 1 :]:
            if isinstance(loops, TileLoopsPart) and ROWS.of(loops.names, self.ctx.values) and runs(loops, program):
                rows = warp_rows(loops)
                found = (constant_start(loops, program, n) for n in (rows.carried if rows is not None else ()))
                begun |= {start[0].name for start in found if start is not None}
        return all(s.name in begun for s in stages_of(part))

    def apart(self, stmt: Stmt) -> Stmt:
        """A part's grid, whose blocks write nothing that another touches; memory of each block's own they would share,
        where they are computed one after the other."""
        own = {b.name for b in self.inner.buffers.values() if b.scope == "shared"}
        if not (isinstance(stmt, For) and stmt.kind.startswith("block.")) or used_buffers((stmt,)) & own:
            return stmt
        return replace(stmt, apart=True, body=tuple(self.apart(s) for s in stmt.body))

    def around(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """Independent loops may go outside of those that are not: they are all perfectly nested. What registers hold
        over all iterations comes from memory in front of the loops, and goes there behind them."""
        body = in_registers(body, self.held) if self.held else body
        before, after = self.carried()
        used = touched((*before, *body, *after))
        places = {n: self.place(b, used) for n, b in self.inner.buffers.items()}
        moved = MovedBoxes(places, self.at, self.inner.program.tensors, self.ctx.program.tensors)
        body = moved.of(body)
        inside = [t for t in self.part.loops if t not in self.blocks]
        before = moved.of(before)
        for number, loop in enumerate(reversed(inside)):
            lower, upper = (substitute_int(bound, self.at) for bound in (loop.axis.lower, loop.axis.upper))
            made = For(identifier(loop.axis.name), lower, upper, body)
            body = (made,)
            if self.rows is not None and number == 0 and len(inside) == 1:
                first, made, last = self.over_iterations(made)
                before, body = (*before, *first), (*unmasked_apart(made), *last)
        body = (*before, *body, *moved.of(after))
        if not self.part.grid:
            return body
        threads = block_threads(body, self.ctx.lanes)
        own, body = blocks_inside(body) if only_nest(self.part) is not None else ([], in_block(body, threads))
        body = choosing(self.part, self.at, body, {t.axis.name for t in self.blocks})
        return self.of_registers(self.in_grid(body, own), threads)

    def of_registers(self, grid: tuple[Stmt, ...], threads: int) -> tuple[Stmt, ...]:
        """The grid, whose threads may take as many registers as leave room for the blocks that a core is to hold."""
        blocks = max((v for n, v in self.ctx.values.items() if n.endswith("." + RESIDENT.name)), default=0)
        if not blocks:
            return grid
        of_thread = self.part.member.target.limits.get("registers_per_thread", 255)
        most = min(of_thread, self.ctx.registers // (blocks * threads)) // REGISTER_STEP * REGISTER_STEP
        return tuple(replace(s, registers=most) if isinstance(s, For) else s for s in grid)

    def in_grid(self, body: tuple[Stmt, ...], own: Sequence[For]) -> tuple[Stmt, ...]:
        """What a block does, in the loops over blocks; `own` are those of the body itself."""
        if not self.blocks:
            return (For(LONE, Const(0), Const(1), body, GRID[0]),)
        blocks, body = self.in_order(body)
        loops = [
            For(identifier(t.axis.name), Const(t.first), Const(t.last + 1), (), note=f"blocks of {t.axis.name}")
            for t in blocks
        ]
        loops += own
        merged = loops[: 1 - len(GRID)] if len(loops) > len(GRID) else []
        for kind, loop in zip(GRID, reversed(loops[len(merged) :]), strict=False):
            body = (replace(loop, body=body, kind=kind),)
        return self.merged(merged, body) if merged else body

    def in_order(self, body: tuple[Stmt, ...]) -> tuple[list[TileLoop], tuple[Stmt, ...]]:
        """The loops over blocks, the last of which goes on fastest, and what a block does: those that take the longest
        begin first if the row says so."""
        uneven = uneven_grid(self.part)
        if uneven is None or ORDER.of(self.part.names, self.ctx.values) != LONGEST_FIRST:
            return self.blocks, body
        loop, name = uneven.loop, identifier(uneven.loop.axis.name)
        if uneven.rises:
            body = bind(body, {name: (loop.first + loop.last) - Var(name)})
        return [loop, *(t for t in self.blocks if t is not loop)], body

    def over_iterations(self, loop: For) -> tuple[tuple[Stmt, ...], For, tuple[Stmt, ...]]:
        """What stands in front of a loop whose body holds rows in registers, the loop, and what stands behind it:
        fragments and slices that it does not change stay where they are, calls follow each other, and slices are
        fetched an iteration ahead, if the row says so."""
        kept, body = kept_fragments(flattened(loop.body), loop.var, self.ctx)
        slices, body = kept_slices(body, loop.var, self.ctx)
        body = calls_together(body, self.ctx)
        found = AheadOfLoop((), (), body)
        if ahead := AHEAD.of(self.part.names, self.ctx.values):
            late = MEETING.of(self.part.names, self.ctx.values) == LATER
            products, last = ahead in (WITH_PRODUCT, BESIDE_LAST), ahead == BESIDE_LAST
            found = fetched_ahead(body, loop, self.ctx, products, last, late)
        return (*found.begun, *slices, *kept, *found.issued), replace(loop, body=found.body), found.ended

    def carried(self) -> tuple[tuple[Stmt, ...], tuple[Stmt, ...]]:
        """What fills registers in front of the loops, and what leaves them behind. A tensor is not filled that nothing
        has written, nor one that each iteration writes before it reads it; the latter leaves where something else reads
        what is in it and there was an iteration."""
        if self.rows is None:
            return (), ()
        rows = self.rows.rows
        made = {n for n in rows.carried if defined_first(rows, n)}
        wanted = {n for n in rows.carried if n not in made or self.read_outside(self.part.windows[n].tensor)}
        here = runs(self.part, self.ctx.program)
        filled = {n for n in wanted - made if self.written_before(n)}
        starts = {n: constant_start(self.part, self.ctx.program, n) for n in filled} if here else {}
        known = {n: start[1] for n, start in starts.items() if start is not None}
        sure = wanted if here else wanted & filled
        left = self.rows.left(sorted(sure))
        if late := self.rows.left(sorted(wanted - sure)):  # nothing has them where there is no iteration
            bounds = ((substitute_int(b, self.at) for b in (t.axis.lower, t.axis.upper)) for t in self.part.loops)
            left = (*left, If(all_of(*(lower < upper for lower, upper in bounds)), late))
        return self.rows.taken(sorted(filled), known), left

    def written_before(self, name: str) -> bool:
        """Whether memory may hold a window's elements in front of the loops: what the body around keeps for itself has
        to be written there."""
        tensor, stages = self.part.windows[name].tensor, self.ctx.program.stages
        first = next(n for n, s in enumerate(stages) if s.name in self.part.stages)
        made = any(s.assign.tensor == tensor for s in stages[:first])
        return made or not self.ctx.program.tensors[tensor].intermediate

    def read_outside(self, tensor: str) -> bool:
        """Whether anything but these loops may read what they leave in a tensor."""
        program = self.ctx.program
        if not program.tensors[tensor].intermediate:
            return True
        known, key = self.part.cache, ("left behind", tensor)
        if key not in known:
            known[key] = left_behind(program, tensor, self.part.stages)
        return bool(known[key])

    def merged(self, loops: Sequence[For], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """More loops than a grid has dimensions, by one number."""
        number, below, places = Var(LONE), 1, dict[str, Int]()
        for loop in reversed(loops):
            assert isinstance(loop.lower, Const)
            assert isinstance(loop.upper, Const)
            count = loop.upper.value - loop.lower.value
            here: Int = number // below if below > 1 else number
            places[loop.var] = (here if loop is loops[0] else here % count) + loop.lower
            below *= count
        note = "blocks of " + ", ".join(loop.var for loop in loops)
        return (For(LONE, Const(0), Const(below), bind(body, places), GRID[-1], note=note),)

    def place(self, buffer: Buffer, touched_at: Touched) -> BufferPlace:
        """Where a buffer of the body lies in the kernel: what the body keeps for itself in shared memory, or in memory,
        each block's apart; of what registers hold inside, as much as the body still touches."""
        ctx, name = self.ctx, buffer.name
        if name in self.part.windows:
            window = self.part.windows[name]
            ctx.tensor(window.tensor)
            start = tuple(substitute_int(i, self.at) for i in window.start)
            return BufferPlace(window.tensor, window=replace(window, start=start))
        scope, owners, shape = buffer.scope, list[Int](), list[int]()
        tensor = buffer.origin or name
        if scope == "workspace" and not self.in_memory(tensor):
            scope = "shared"
        if scope == "workspace":
            for loop in self.blocks:
                owners.append(self.at[loop.axis.name] - loop.first)
                shape.append(loop.last - loop.first + 1)
        used = used_part(buffer, touched_at) if buffer.scope == "workspace" else buffer
        whole = (*shape, *used.shape)
        lanes = buffer.elements_per_thread
        new = ctx.declare(name, buffer.dtype, whole, scope, None, lanes, fragment=buffer.fragment)
        if scope == "workspace":  # its name may be another's in the body around
            ctx.buffers[new.name] = replace(new, origin=tensor)
        return BufferPlace(new.name, tuple(owners))

    def in_memory(self, name: str) -> bool:
        """Whether a row puts an intermediate into memory."""
        return self.chosen_place(name) == MEMORY

    def chosen_place(self, name: str) -> int:
        """Where a row puts an intermediate. The part that is the grid decides for all inside."""
        chosen = [v for n, v in self.ctx.values.items() if n.endswith("." + place_of(name).name)]
        return max(chosen, default=SHARED)


def block_threads(body: tuple[Stmt, ...], lanes: int) -> int:
    """Threads of the block: as many as its widest phase has."""
    most = lanes
    for stmt in statements(body):
        if isinstance(stmt, For) and stmt.kind in WORKERS:
            assert isinstance(stmt.upper, Const)
            most = max(
                most,
                stmt.upper.value * lanes * SCOPE_WARPS[stmt.kind] if stmt.kind in SCOPE_WARPS else stmt.upper.value,
            )
    return -(-most // lanes) * lanes


def blocks_inside(body: tuple[Stmt, ...]) -> tuple[list[For], tuple[Stmt, ...]]:
    """The loops over blocks of a body that is nothing else, the outermost first, and what each block does."""
    loops: list[For] = []
    while len(body) == 1 and isinstance(body[0], For) and body[0].kind.startswith("block."):
        loops.append(replace(body[0], body=(), apart=False))
        body = body[0].body
    return loops, body


def in_block(body: tuple[Stmt, ...], threads: int) -> tuple[Stmt, ...]:
    """Statements of grids as those of one block: see the module's docstring."""
    made: list[Stmt] = []
    for together, run in groupby(body, _of_workers):
        if together:
            made += [_in_turn(s, threads) for s in run]
            continue
        for shared, some in groupby(run, lambda s: isinstance(s, For) and s.kind.startswith("block.")):
            if shared:
                made += [_shared_out(s, threads) for s in some if isinstance(s, For)]
                continue
            alone = tuple(some)
            if any(not isinstance(s, Comment) for s in alone):
                made.append(For(THREAD, Const(0), Const(1), _serial(alone), THREAD))
    return tuple(made)


def _of_workers(stmt: Stmt) -> bool:
    """Whether the block's workers run a statement, or meet at it."""
    inside = statements((stmt,))
    return any(isinstance(s, BarrierArrive | BarrierWait) or (isinstance(s, For) and s.kind in WORKERS) for s in inside)


def _in_turn(stmt: Stmt, threads: int) -> Stmt:
    """A grid's loop as one that the block runs through."""
    match stmt:
        case For(kind=kind) if kind in WORKERS:
            return stmt
        case BarrierArrive() | BarrierWait():
            return stmt
        case For(kind=kind):
            kind = "serial" if kind.startswith("block.") else kind
            return replace(stmt, kind=kind, body=in_block(stmt.body, threads), registers=0)
        case If():
            return replace(stmt, body=in_block(stmt.body, threads))
        case _:
            raise KernelError(f"no block runs {type(stmt).__name__} in turn")


def _shared_out(loop: For, threads: int) -> Stmt:
    """A loop over single threads: each thread of the block takes every so many iterations."""
    body = replace(loop, lower=loop.lower + Var(THREAD) * loop.step, step=loop.step * threads, kind="serial")
    return For(THREAD, Const(0), Const(threads), (replace(body, body=_serial(loop.body)),), THREAD)


def _serial(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Statements of one thread, which runs all loops inside one after the other."""

    def visit(stmt: Stmt) -> Stmt:
        match stmt:
            case For(kind=kind):
                plain = "serial" if kind.startswith("block.") or kind == "parallel" else kind
                return replace(stmt, kind=plain, body=_serial(stmt.body))
            case If():
                return replace(stmt, body=_serial(stmt.body))
            case _:
                return stmt

    return tuple(map(visit, body))
