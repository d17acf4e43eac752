"""Register tiles whose registers hold matrices: sums stay in them while the reduction runs, and meet memory as a whole.

A sum that begins with zero, or that is all of a tile of the tensor that it belongs to, moves at once. Otherwise it goes
through a matrix of memory that each thread has, row by row: what is fused behind, ends of axes and other initial values
are then as for any vector of a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import prod

from autosched.codegen.analysis.matrix_moves import apart_in_memory, held_in, rows_by_number, touches
from autosched.codegen.lower.common.context import Context, identifier
from autosched.codegen.lower.common.fused_stages import epilogue, fused_start
from autosched.codegen.lower.common.matrix_rows import ROW, row_lanes
from autosched.codegen.lower.common.operands.sources import OperandSource
from autosched.codegen.lower.common.positions import LANE, Position
from autosched.codegen.lower.common.register_tile import DepthRange, RegisterTile
from autosched.codegen.lower.common.tile_places import Places
from autosched.codegen.lower.common.tile_registers import fields_of
from autosched.codegen.passes.substitute import bind
from autosched.codegen.tree.kernel import Assign, Buffer, Configure, For, If, Lane, Stmt
from autosched.codegen.tree.rename import place, place_index
from autosched.ir.dtypes import DType
from autosched.ir.value import Literal, Read, Select, Value
from autosched.logic import FALSE, TRUE, Bool, Const, Int, Var
from autosched.tiling.plans.plan import TensorPart
from autosched.tiling.steps import APART, tiled_axes
from autosched.tiling.steps.common.layout import filled, rows_held
from autosched.tiling.steps.cpu.edges import EDGES

LEAST_UNITS = 4
"""Of the depth in a visit, for stages behind it to be computed beside the next visit's products. With one unit
(requantised bytes, 128x3072x64) kernels took 1.00 to 1.08 times as long, with four (256x512x256) 0.88 to 0.93."""


@dataclass(frozen=True, eq=False)
class MatrixTile(RegisterTile):
    """Emits register tiles of one part on an instruction with registers of its own. Between a register and elements of
    the tensor, `thread` has a matrix of `rows` in the buffer `between`, or one for each unit of the tile, at `units`;
    `there`: where the tensor itself holds it. `waiting_room`: where a tile's sums wait for the next tile's products,
    beside which the stages behind them are computed."""

    between: str = ""
    waiting_room: str = ""
    units: tuple[Int, ...] = ()
    thread: Int = field(default_factory=lambda: Const(0))
    rows: int = 1
    there: tuple[Int, ...] | None = None

    @staticmethod
    def of(part: TensorPart, sources: Mapping[str, OperandSource], ctx: Context, threads: int) -> MatrixTile:
        """Its registers are declared; `threads` is how many share the part."""
        nest, matrices = part.nest, part.nest.intrinsic.matrices
        assert matrices is not None
        taken = 0

        def declare(name: str, dtype: DType, shape: tuple[int, ...], scope: str) -> str:
            nonlocal taken
            made = ctx.declare(name, dtype, shape, "matrix")
            ctx.buffers[made.name] = replace(made, matrices=matrices, first=taken)
            taken += made.elements // shape[-1]
            return made.name

        all_fit = _registers_of_all(part, ctx) <= matrices.count
        fields = fields_of(part, sources, ctx, declare, hold_all=all_fit)
        acc = nest.intrinsic.accumulator
        rows, width = rows_held(nest, acc.name), filled(nest, acc.name)
        between = ctx.declare("sums", acc.dtype, (threads, rows, width), "workspace").name
        thread: Int = Var("thread") if threads > 1 else Const(0)
        room = ""
        if part.epilogue:
            units = [ctx.values[part.names.register(a)] for a in tiled_axes(nest)]
            shape = (threads, *units, rows, width)
            room = ctx.declare(f"{nest.stage.assign.tensor}_tile", acc.dtype, shape, "workspace").name
        return MatrixTile(**fields, between=between, waiting_room=room, thread=thread, rows=rows)

    @property
    def whole_lane(self) -> Lane:
        """All elements of an accumulator."""
        return Lane(LANE, self.accumulator.elements)

    @property
    def row_lane(self) -> Lane:
        """Those of one of its rows."""
        return Lane(LANE, filled(self.nest, self.accumulator.name))

    # -- where things are ------------------------------------------------------------------------------------------

    def lane_coordinates(self) -> dict[str, Int]:
        """The intrinsic's axes at element `e` of row `er` of an accumulator."""
        return row_lanes(self.nest, self.accumulator.name)

    def acc_read(self) -> Read:
        """The element of the accumulator that lies in memory just now."""
        return Read(self.between, (self.thread, *self.units, Var(ROW), Var(LANE)), self.accumulator.dtype)

    def lane(self, count: int) -> Lane | None:
        """Of a row, which is what `output` speaks of."""
        return self.row_lane

    def _matrix(self) -> tuple[Int, ...]:
        """The subscripts of all elements of the accumulator in memory, in the order of the register."""
        width = self.row_lane.width
        return self.thread, *self.units, Var(LANE) // width, Var(LANE) % width

    def _register(self) -> tuple[Int, ...]:
        return (*self.acc_index(), Var(LANE))

    def _in_tensor(self, at: Places) -> tuple[Int, ...] | None:
        """The subscripts of all elements of the accumulator in the tensor itself, where that holds it as a matrix."""
        axes, valid = self.output(at, super().lane_coordinates())
        if valid != TRUE:
            return None
        target = self.nest.stage.assign
        memory, register = self.ctx.tensor(target.tensor), self.ctx.buffers[self.acc]
        index = place_index(target.index, axes)
        return None if apart_in_memory(index, memory, register, self.whole_lane) is None else index

    def prefetch_out(self, at: Places, counts: dict[str, int]) -> tuple[Stmt, ...]:
        """Ask for each row of the output."""
        asked = super().prefetch_out(at, counts)
        return (For(ROW, Const(0), Const(self.rows), asked),) if asked else ()

    # -- start ------------------------------------------------------------------------------------------------------

    def started(
        self, at: Places, counts: dict[str, int], first: Bool, taken: Callable[[Value], Value], only: Bool = TRUE
    ) -> tuple[Stmt, ...]:
        assert only == TRUE, "no nest of matrices drops sums"
        stage, dtype = self.nest.stage, self.accumulator.dtype
        axes, valid = self.output(at)
        there = self._in_tensor(at)
        tensor = stage.assign.tensor
        self.ctx.tensor(tensor)

        def all_tiles(*body: Stmt) -> tuple[Stmt, ...]:
            return self.over(self.tiled, counts, body)

        def through(value: Value) -> tuple[Stmt, ...]:
            """Row by row into memory, from there into the register."""
            zero = Literal(0.0 if dtype.is_float else 0, dtype)
            each = value if valid == TRUE else Select(valid, value, zero, dtype)
            row = Assign(self.between, (self.thread, Var(ROW), Var(LANE)), each, self.row_lane)
            rows = For(ROW, Const(0), Const(self.rows), (row,))
            moved = Assign(self.acc, self._register(), Read(self.between, self._matrix(), dtype), self.whole_lane)
            return all_tiles(rows, moved)

        def stored() -> tuple[Stmt, ...]:
            if there is None:
                return through(Read(tensor, place_index(stage.assign.index, axes), dtype))
            return all_tiles(Assign(self.acc, self._register(), Read(tensor, there, dtype), self.whole_lane))

        if self.part.start is not None:
            init = fused_start(self.part.start, axes, self.ctx)
        elif stage.init is None:
            return stored()
        else:
            init = place(stage.init, axes)
        if isinstance(init, Literal) and init.value == 0 and not str(init.value).startswith("-"):
            initial = all_tiles(Assign(self.acc, self._register(), init, self.whole_lane))
        else:
            initial = through(init)
        if first == TRUE:
            return initial
        return (If(first, initial), If(~first, stored()))

    def load(self, operand: str, at: Places) -> tuple[Stmt, ...]:
        n = self.intrinsic.operands[operand].elements
        value, valid = self.sources[operand].load(at, Var(LANE))
        index = (*self.register_index(self.held(operand)), Var(LANE))
        return (Assign(self.registers[operand], index, value, Lane(LANE, n), valid),)

    # -- finish -----------------------------------------------------------------------------------------------------

    def finish(self, at: Places, counts: dict[str, int], last: Bool) -> tuple[Stmt, ...]:
        return RegisterTile.finish(replace(self, there=self._in_tensor(at)), at, counts, last)

    def stores(self, counts: dict[str, int], stores: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        dtype = self.accumulator.dtype
        held = Read(self.acc, self._register(), dtype)
        if self.there is not None and len(stores) == 1 and _moves(stores[0], self.acc_read()):
            tensor = self.nest.stage.assign.tensor
            return self.over(self.tiled, counts, (Assign(tensor, self.there, held, self.whole_lane),))
        moved = Assign(self.between, self._matrix(), held, self.whole_lane)
        rows = For(ROW, Const(0), Const(self.rows), stores)
        return self.over(self.tiled, counts, (moved, rows))

    # -- beside the next tile's products ----------------------------------------------------------------------------

    @property
    def waits(self) -> MatrixTile:
        """This tile with its sums in the waiting room."""
        return replace(self, between=self.waiting_room, units=self.acc_index())

    def overlaps(self, depth: DepthRange | None) -> bool:
        """Whether stages behind the sums are computed beside the next tile's products: there are such stages, and
        nothing but the depth is summed over, without guards, in visits of some length."""
        nest, axis = self.nest, self.nest.depth
        if not self.part.epilogue or depth is None or axis is None or axis is not self.cut:
            return False
        if any(a.units > 1 for a in nest.reduction if a is not axis) or self.skips or self.left or self.window:
            return False
        if min(self.ctx.values[self.names.block(axis)] or axis.units, axis.units) < LEAST_UNITS:
            return False
        plain = nest.accumulate_mask == TRUE and self.next is None and self.transposer is None
        plain = plain and self.unroll == 1 and self.group <= 1
        return plain and EDGES.of(self.names, self.ctx.values) != APART and (depth.whole or not axis.extent % axis.unit)

    def beside(
        self, at: Places, counts: dict[str, int], depth: DepthRange, other: tuple[Stmt, ...]
    ) -> tuple[Stmt, ...]:
        """A whole tile whose sums end in the waiting room. Its products are shared out among the rows of an
        accumulator, unit by unit of the depth; behind those of row `er` comes `other`, which finishes that row of
        another tile."""
        axis = self.nest.depth
        assert axis is not None
        at = at | {a.name: Position(None, Const(0)) for a in self.nest.reduction}
        var, row = f"{identifier(axis.name)}u", Var(ROW)
        units = depth.upper - depth.lower
        lower, upper = (depth.lower + r * units // self.rows for r in (row, row + 1))
        steps = For(var, lower, upper, self.unrolled_steps(at, counts, axis, var, depth.lower))
        first = depth.first if isinstance(depth.first, Bool) else (TRUE if depth.first else FALSE)
        rows = For(ROW, Const(0), Const(self.rows), (steps, *other), note="beside these, rows of the tile before")
        waits = self.waits
        held = Read(self.acc, self._register(), self.accumulator.dtype)
        moved = Assign(waits.between, waits._matrix(), held, self.whole_lane)
        return (
            *self.prefetch_out(at, counts),
            *self.start(at, counts, first),
            rows,
            *self.over(self.tiled, counts, (moved,)),
        )

    def finished_row(self, at: Places, counts: dict[str, int]) -> tuple[Stmt, ...]:
        """What follows the sums in row `er` of each unit of a tile that waits."""
        waits = self.waits
        axes, valid = waits.output(at | {a.name: Position(None, Const(0)) for a in self.nest.reduction})
        target, register, lane = self.nest.stage.assign, waits.acc_read(), self.row_lane
        behind: list[Stmt] = []
        for stage in self.part.epilogue:
            behind += epilogue(stage, target, register, axes, lane, valid, self.ctx)
        if self.part.keep:
            behind.append(Assign(target.tensor, place_index(target.index, axes), register, lane, valid))
        return tuple(s for stmt in behind for s in self.over(self.tiled, counts, (stmt,)))


def _registers_of_all(part: TensorPart, ctx: Context) -> int:
    """Registers for all units of every operand: where there are as many, none waits for another's."""
    total = 0
    for o in part.nest.intrinsic.operands.values():
        mine = (a for a in tiled_axes(part.nest) if o.written or a in part.nest.operand_axes(o.name))
        total += prod(ctx.values[part.names.register(a)] for a in mine)
    return total


def _moves(stmt: Stmt, value: Value) -> bool:
    """Whether a statement stores just this value, everywhere."""
    return isinstance(stmt, Assign) and stmt.value == value and stmt.valid == TRUE


def configured(part: TensorPart, body: tuple[Stmt, ...], buffers: Mapping[str, Buffer]) -> tuple[Stmt, ...]:
    """What a thread does, between configuring the registers and releasing them; register numbers are then constants."""
    matrices = part.nest.intrinsic.matrices
    if matrices is None:
        return body
    numbered = _numbered(body, buffers)
    matrices = matrices.with_rows({n: rows for b in held_in(numbered, buffers) for n, rows in rows_by_number(b)})
    return (Configure(matrices, on=True), *numbered, Configure(matrices, on=False))


def _numbered(body: tuple[Stmt, ...], buffers: Mapping[str, Buffer]) -> tuple[Stmt, ...]:
    """Loops that are unrolled are written out where registers in them hold matrices: instructions name those by number,
    and compilers of C unroll too late for that."""
    found: list[Stmt] = []
    for stmt in body:
        match stmt:
            case For(kind="unrolled", lower=Const(low), upper=Const(high)) if touches(stmt.body, buffers):
                inner = _numbered(stmt.body, buffers)
                for value in range(low, high, stmt.step):
                    found += bind(inner, {stmt.var: Const(value)})
            case For() | If():
                found.append(replace(stmt, body=_numbered(stmt.body, buffers)))
            case _:
                found.append(stmt)
    return tuple(found)
