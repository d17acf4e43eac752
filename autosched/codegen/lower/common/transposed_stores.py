"""Stores of a register tile whose rows lie side by side in memory and whose lanes do not: transposed in registers.

What a fused stage reads in the order of memory (a residual) waits until the rest is in that order too: lanes compute
what does not read it, that is turned, and the stage goes on with pieces of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from autosched.codegen.analysis.access import classify
from autosched.codegen.lower.common.context import Context, identifier
from autosched.codegen.lower.common.invariant import Split, split
from autosched.codegen.lower.common.positions import LANE
from autosched.codegen.passes.register_transpose import element, exchanged, riffles
from autosched.codegen.tree.kernel import Assign, If, Lane, Stmt
from autosched.codegen.tree.rename import place
from autosched.ir.dtypes import DType
from autosched.ir.value import Read, Value, is_plain, reads
from autosched.ir.variables import value_vars
from autosched.logic import FALSE, TRUE, Bool, Const, Int, Var, all_of, conjuncts, free_vars
from autosched.logic.walk import substitute_bool, substitute_int
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.steps.cpu.register_transpose import MOST_ROWS, chunks, transposed_row


def store_transposer(nest: Nest, ctx: Context) -> StoreTransposer | None:
    """What turns the stores of a nest; None where there is nothing to turn."""
    row = transposed_row(nest)
    return None if row is None else StoreTransposer(ctx, row, nest.intrinsic.accumulator.elements)


class StoreTransposer:
    """Turns the stores of one part; `row` is the axis whose rows are neighbours in memory, `lanes` the elements of a
    register."""

    def __init__(self, ctx: Context, row: NestAxis, lanes: int) -> None:
        self.ctx, self.row, self.lanes = ctx, row, lanes
        self.variable = f"{identifier(row.name)}r"
        self._registers: dict[tuple[DType, int, int], str] = {}

    def stores(self, store: Stmt, counts: Mapping[str, int]) -> tuple[Stmt, ...]:
        """The stores of all rows of the tile (those of a group's last, lonely row lane by lane); () where a statement
        stores no lanes that lie apart, or no rows that lie side by side."""
        rows = counts[self.row.name]
        if rows < 2 or not isinstance(store, Assign) or not self._turns(store):
            return ()
        found: list[Stmt] = []
        for first, count, size in chunks(rows, self.lanes):
            found += self._chunk(store, first, count, size) if size > 1 else [self._one(store, first)]
        return tuple(found)

    def _turns(self, store: Assign) -> bool:
        buffer = self.ctx.buffers[store.buffer]
        return buffer.scope != "register" and self._across(store.buffer, store.index)

    def _across(self, name: str, index: tuple[Int, ...]) -> bool:
        """Whether lanes lie apart in memory and rows side by side."""
        shape = self.ctx.buffers[name].shape
        first = tuple(substitute_int(i, {LANE: Const(0)}) for i in index)
        lanes = classify(index, shape, Lane(LANE, self.lanes))
        rows = classify(first, shape, Lane(self.variable, self.lanes))
        return lanes.kind in ("strided", "elements") and rows.kind == "contiguous"

    def _split(self, value: Value) -> Split:
        """The parts that lanes compute, before rows and lanes change places; after that, what reads memory that lies
        like the result, and what is the same for all lanes or all rows."""
        found = split(value, lambda v: not any(is_plain(r.index) and self._across(r.tensor, r.index) for r in reads(v)))
        parts = tuple(p for p in found.parts if {LANE, self.variable} <= value_vars(p))
        left = replace(found, parts=parts).with_parts(_holes(parts))
        if any(r.tensor in self.ctx.buffers and self._register(r) for r in reads(left)):
            return Split((value,), value)
        return replace(found, parts=parts)

    def _chunk(self, store: Assign, first: int, count: int, size: int) -> list[Stmt]:
        """Rows that fill the chunk up are the last row again: they are not stored."""
        cut = self._split(store.value)
        stmts: list[Stmt] = []
        parts: list[list[Read]] = []
        for number, part in enumerate(cut.parts):
            sources = [self._held(replace(store, value=part), first, min(n, count - 1), n, number) for n in range(size)]
            stmts += [s for _, computed in sources[:count] for s in computed]
            lane = Lane(LANE, self.lanes)
            buffers = self._buffer(part.dtype, number, 1), self._buffer(part.dtype, number, 2)
            held = [read for read, _ in sources]
            turned, registers = exchanged(riffles(size, self.lanes), held, lane, buffers)
            stmts += turned
            parts.append(registers)
        left = replace(store, value=cut.with_parts(_holes(cut.parts)))
        return stmts + [s for e in range(self.lanes) for s in self._leave(left, parts, e, first, count, size)]

    def _leave(
        self, store: Assign, parts: list[list[Read]], e: int, first: int, count: int, size: int
    ) -> tuple[Stmt, ...]:
        """What lane `e` holds of all rows; the store's value has holes for the parts."""
        number, offset = divmod(e * size, self.lanes)
        pieces = [element(registers[number], offset + Var(LANE)) for registers in parts]
        filled = dict(zip(_holes(pieces), pieces, strict=True))
        here: dict[str, Int] = {LANE: Const(e), self.variable: first + Var(LANE)}
        value = place(store.value, here, lambda r: filled.get(r, r))
        index = tuple(substitute_int(i, here) for i in store.index)
        valid = conjuncts(substitute_bool(store.valid, here))
        once: Bool = all_of(*(p for p in valid if LANE not in free_vars(p)))
        each = [p for p in valid if LANE in free_vars(p)] + ([Var(LANE) < count] if count < size else [])
        stored = Assign(store.buffer, index, value, Lane(LANE, size), all_of(*each))
        if once == FALSE:
            return ()
        return (stored,) if once == TRUE else (If(once, (stored,)),)

    def _held(self, store: Assign, first: int, n: int, number: int, part: int) -> tuple[Read, tuple[Stmt, ...]]:
        """A register with row `first + n`, and what computes it where it is not in one."""
        one = self._one(store, first + n)
        if isinstance(one.value, Read) and self._register(one.value) and one.value.index[-1] == Var(LANE):
            return one.value, ()
        buffer = self._buffer(store.value.dtype, part, 0)
        index = (Const(n), Var(LANE))
        stmts = (Assign(buffer, index, one.value, one.lane, one.valid),) if n == number else ()
        return Read(buffer, index, store.value.dtype), stmts

    def _register(self, read: Read) -> bool:
        return self.ctx.buffers[read.tensor].scope == "register"

    def _one(self, store: Assign, row: int) -> Assign:
        here: dict[str, Int] = {self.variable: Const(row)}
        return replace(
            store,
            index=tuple(substitute_int(i, here) for i in store.index),
            value=place(store.value, here),
            valid=substitute_bool(store.valid, here),
        )

    def _buffer(self, dtype: DType, part: int, number: int) -> str:
        key = dtype, part, number
        if key not in self._registers:
            shape = (min(MOST_ROWS, self.lanes), self.lanes)
            self._registers[key] = self.ctx.declare("turned", dtype, shape, "register").name
        return self._registers[key]


def _holes(parts: Sequence[Value]) -> tuple[Read, ...]:
    """What stands for parts until they are in order: no buffer has such a name."""
    return tuple(Read(f"part {n}", (), part.dtype) for n, part in enumerate(parts))
