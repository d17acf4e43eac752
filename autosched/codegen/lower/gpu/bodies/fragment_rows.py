"""Lowering of row stages in the fragments of the warps that share rows: each lane computes its own elements.

    for warp, rowf, columnf:  S_held[warp, rowf, columnf, e] …    element by element
    M_acc[…, e] = max(M_acc[…, e], S_held[…, columnf, e])         a row: over a lane's own tiles,
    M_other[…, e] = M_acc[…, e xor 4]                             then over the lanes that share it
    M_acc[…, e] = max(M_acc[…, e], M_other[…, e])

A number of each row is held by all lanes with elements of that row: a fragment whose columns are all alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from autosched.codegen.lower.common.context import Context
from autosched.codegen.lower.common.positions import LANE
from autosched.codegen.lower.gpu.bodies.fragment_values import HeldTensor
from autosched.codegen.lower.scalar.reduction import identity
from autosched.codegen.lower.scalar.shape import guard_formula
from autosched.codegen.tree.kernel import Assign, For, Lane, Stmt
from autosched.codegen.tree.rename import place, place_index
from autosched.codegen.tree.update import (
    accumulated,
    chosen,
    combine,
    contracted_arguments,
    left_by,
    positive_factor,
    write,
)
from autosched.ir.formula import apply_formulas
from autosched.ir.nodes import Stage
from autosched.ir.value import Arith, Literal, Read, Value
from autosched.logic import TRUE, Bool, Const, Int, Var, all_of
from autosched.tiling.plans.float_policy import FloatPolicy
from autosched.tiling.plans.plan import ScalarPart, WarpCooperativePart
from autosched.tiling.plans.warp_rows import FragmentStage, WarpRows, policy_of, stages_of

ROW, COLUMN = Var("rowf"), Var("columnf")
"""Loops over a worker's fragments along rows and along columns."""


class FragmentRows:
    """The row stages of one body in one row of its space."""

    def __init__(self, rows: WarpRows, workers: int, held: Mapping[str, HeldTensor], ctx: Context) -> None:
        self.rows, self.workers, self.held, self.ctx = rows, workers, held, ctx
        self.tiles = rows.tiles(workers)
        self.worker = Var(rows.scope)
        tall, wide = rows.coordinates(Var(LANE))
        self.inner = wide
        self.row = (self.worker * self.tiles + ROW) * rows.row_unit + tall
        self.column = COLUMN * rows.column_unit + wide
        self.lane = Lane(LANE, rows.fragment.elements)

    def lower(self, part: ScalarPart | WarpCooperativePart) -> tuple[Stmt, ...]:
        """The stages of a part, each a phase of the workers: through memory they pass values behind a barrier alone."""
        policy = policy_of(part)
        assert policy is not None
        return tuple(self._by_workers(self._stage(stage, policy)) for stage in stages_of(part))

    def taken(self, names: Sequence[str], known: Mapping[str, Literal]) -> tuple[Stmt, ...]:
        """Registers get what these tensors hold in memory, or the number that is `known` of all elements."""
        body: list[Stmt] = []
        for name in names:
            register, memory, columns = self._places(name)
            if name in known:
                body += self._over([write(register, known[name], self.lane)], columns)
                continue
            body += self._over([write(register, memory, self.lane, self._inside(columns))], columns)
        return (self._by_workers(body),) if body else ()

    def left(self, names: Sequence[str]) -> tuple[Stmt, ...]:
        """Memory gets what registers hold of these tensors."""
        body: list[Stmt] = []
        for name in names:
            register, memory, columns = self._places(name)
            body += self._over([write(memory, register, self.lane, self._storing(columns))], columns)
        return (self._by_workers(body),) if body else ()

    def _places(self, name: str) -> tuple[Read, Read, int | None]:
        """A lane's element of a held tensor in its register and in memory, and how many columns there are."""
        held = self.held[name]
        spread, tensor = held.spread, held.spread.tensor
        index: list[Int] = [Const(0)] * len(tensor.extents)
        index[spread.rows] = self.row
        if spread.columns is not None:
            index[spread.columns] = self.column
        columns = None if spread.columns is None else tensor.extents[spread.columns]
        return held.at(self.worker, ROW, COLUMN, Var(LANE)), Read(name, tuple(index), tensor.dtype), columns

    # -- one stage -----------------------------------------------------------------------------------------------------

    def _stage(self, stage: Stage, policy: FloatPolicy) -> list[Stmt]:
        row = self.rows.stages[stage.name]
        at: dict[str, Int] = {a.name: a.lower for a in stage.axes} | {row.rows: self.row}
        axis = row.column_axis
        if axis is not None:
            at[axis.name] = self.column
        for read in stage.reads:
            if read.tensor not in self.held:
                self.ctx.tensor(read.tensor)
        there = guard_formula(stage, at)
        wide = axis.extent if axis is not None else None
        if row.reduces:
            return self._reduced(row, at, there, policy)
        value = apply_formulas(left_by(stage), policy.formulas)
        inexact = {f.name for f in policy.formulas.values() if f.argument_ulp}
        value = place(contracted_arguments(value, inexact), at, self._read)
        return self._over(self._stored(stage, at, value, there, wide), wide)

    def _reduced(self, row: FragmentStage, at: dict[str, Int], there: Bool, policy: FloatPolicy) -> list[Stmt]:
        """A row's sum: of a lane's own elements, then of the lanes that share the row."""
        stage, axis, dtype = row.stage, row.column_axis, row.stage.assign.value.dtype
        assert axis is not None
        op = "+=" if stage.assign.op == "-=" else stage.assign.op
        shape = (self.workers, self.tiles, self.rows.fragment.elements)

        def declared(what: str) -> Read:
            name = f"{stage.assign.tensor}_{what}"
            own = self.ctx.declare(name, dtype, shape, "register", fragment=self.rows.fragment)
            return Read(own.name, (self.worker, ROW, Var(LANE)), dtype)

        acc, other = declared("acc"), declared("other")
        valid = all_of(there, self._inside(axis.extent))
        term, factor = positive_factor(op, stage.assign.value)
        term = apply_formulas(term, policy.formulas)
        new = accumulated(op, acc, place(term, at, self._read), policy.reassociate)
        body: list[Stmt] = [write(acc, Literal(identity(op, dtype), dtype), self.lane)]
        body += self._over_columns([write(acc, chosen(valid, new, acc), self.lane)], axis.extent)
        body += self._over_lanes(acc, other, op)
        if factor is not None:
            body.append(write(acc, apply_formulas(Arith("*", acc, factor, dtype), policy.formulas), self.lane))
        start = stage.init if stage.init is not None else stage.target
        same = isinstance(start, Literal) and start.value == identity(op, dtype) and stage.assign.op == op
        result = acc if same else combine(stage.assign.op, place(start, at, self._read), acc)
        return self._over_rows([*body, *self._stored(stage, at, result, TRUE, None)])

    def _over_lanes(self, total: Read, other: Read, op: str) -> list[Stmt]:
        """All elements of a row get what they hold together: each takes its partner's, first those of its own lane,
        which are alike from then on, so that one of them is asked for of another lane."""
        stmts: list[Stmt] = []
        tall, wide = self.rows.coordinates(Var(LANE))
        distances = [1 << k for k in range(self.rows.column_unit.bit_length() - 1)]
        inside = [d for d in distances if self.rows.same_lane(d)]
        first = wide
        for distance in (*inside, *(d for d in distances if d not in inside)):
            partner = first // (2 * distance) * (2 * distance) + (first + distance) % (2 * distance)
            there = Read(total.tensor, (*total.index[:-1], self.rows.number(tall, partner)), total.dtype)
            stmts += [write(other, there, self.lane), write(total, combine(op, total, other), self.lane)]
            if distance in inside:
                first = first // (2 * distance) * (2 * distance) + first % distance
        return stmts

    def _stored(self, stage: Stage, at: dict[str, Int], value: Value, there: Bool, wide: int | None) -> list[Stmt]:
        """A value where the stage's element is: in registers (zero outside of the tensor), or in memory, where one lane
        of a row stores its number."""
        name = stage.assign.tensor
        held = self.held.get(name)
        if held is not None:
            target = held.at(self.worker, ROW, COLUMN, Var(LANE))
            other = Literal(0, target.dtype) if self._begins(stage) else target
            return [write(target, chosen(there, value, other), self.lane, self._inside(wide))]
        self.ctx.tensor(name)
        valid = all_of(self._storing(wide), there)
        return [Assign(name, place_index(stage.assign.index, at), value, self.lane, valid)]

    def _begins(self, stage: Stage) -> bool:
        """Whether a stage is the first of an iteration to write its tensor, which no earlier iteration has written: an
        element that its guard leaves out has no value."""
        name = stage.assign.tensor
        writers = [s for s in self.rows.loops.member.program.stages if s.assign.tensor == name]
        return name not in self.rows.carried and writers[0].name == stage.name

    def _read(self, read: Read) -> Value:
        held = self.held.get(read.tensor)
        return read if held is None else held.at(self.worker, ROW, COLUMN, Var(LANE))

    # -- where ---------------------------------------------------------------------------------------------------------

    def _inside(self, columns: int | None) -> Bool:
        """Whether a lane's element is one of a tensor's with so many columns (None: one number a row)."""
        found: list[Bool] = []
        if self.rows.extent % self.rows.row_unit:
            found.append(self.row < self.rows.extent)
        if columns is not None and columns % self.rows.column_unit:
            found.append(self.column < columns)
        return all_of(*found)

    def _storing(self, columns: int | None) -> Bool:
        """Whether a lane stores its element: of a row's number one lane does."""
        return all_of(self._inside(columns), *([self.inner.eq(0)] if columns is None else []))

    def _over(self, body: Sequence[Stmt], columns: int | None) -> list[Stmt]:
        return self._over_rows(body if columns is None else self._over_columns(body, columns))

    def _over_rows(self, body: Sequence[Stmt]) -> list[Stmt]:
        return [For(str(ROW), Const(0), Const(self.tiles), tuple(body), "unrolled")]

    def _over_columns(self, body: Sequence[Stmt], columns: int) -> list[Stmt]:
        return [For(str(COLUMN), Const(0), Const(-(-columns // self.rows.column_unit)), tuple(body), "unrolled")]

    def _by_workers(self, body: Sequence[Stmt]) -> Stmt:
        return For(str(self.worker), Const(0), Const(self.workers), tuple(body), self.rows.scope)
