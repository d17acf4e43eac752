"""What a body keeps in the fragments of the warps that share its rows: its tensors become registers of each warp.

    S[i, j] = acc[warp, ir, jr, e]                          S_held[warp, ir, jr, e] = …
    a_reg[ir, e] = P[warp * 16 + e // 16, ku * 16 + e % 16]  a_reg[ir, e] = P_held[warp, ir, ku * 2 + e % 16 // 8, …]

Which lane has what is for a printer to find out: the plan has proved that each has what it reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from autosched.codegen.lower.common.context import Context
from autosched.codegen.lower.common.positions import LANE
from autosched.codegen.passes.substitute import bind
from autosched.codegen.tree.kernel import WORKERS, Assign, For, KernelError, Lane, Stmt, bodies, with_bodies
from autosched.ir.value import Index, Read, Value, map_value, walk
from autosched.logic import Const, Int, Var, evaluate, free_vars
from autosched.logic.walk import substitute_int
from autosched.tiling.plans.warp_rows import Spread, WarpRows

PIECE = Var("piece")
TRIED = (0, 3, 17)
"""Values of the variables around, at which a lane's own element is looked for."""


@dataclass(frozen=True)
class HeldTensor:
    """A tensor of the body in registers of so many workers (warps or warpgroups)."""

    rows: WarpRows
    spread: Spread
    workers: int
    buffer: str

    @staticmethod
    def declare(rows: WarpRows, spread: Spread, workers: int, ctx: Context) -> HeldTensor:
        tensor = spread.tensor
        shape = rows.shape(spread, workers)
        name = f"{tensor.name}_held"
        made = ctx.declare(name, tensor.dtype, shape, "register", fragment=rows.fragment)
        return HeldTensor(rows, spread, workers, made.name)

    def at(self, worker: Int, row_tile: Int, column_tile: Int, number: Int) -> Read:
        """The element of this number in the fragment of a worker's tile."""
        tiles = (row_tile,) if self.spread.columns is None else (row_tile, column_tile)
        return Read(self.buffer, (worker, *tiles, number), self.spread.tensor.dtype)

    def of(self, index: tuple[Int, ...], worker: Int, lane: Lane, pieces: int = 1) -> Read:
        """An element of the tensor; a loop over so many `pieces` is around. Of a row's number every lane with elements
        of the row has one of its own."""
        tall, wide = self.rows.row_unit, self.rows.column_unit
        row = index[self.spread.rows]
        column = Const(0) if self.spread.columns is None else index[self.spread.columns]
        tiles = row // tall % self.rows.tiles(self.workers), column // wide
        if self.spread.columns is None and lane.width != self.rows.fragment.elements:
            column = Var(lane.var)  # whose lane has the row is the same in all columns of a piece
        if self._own(row, column, lane, pieces):  # lanes of one tile
            first: Mapping[str, Int] = {lane.var: Const(0)}
            return self.at(worker, substitute_int(tiles[0], first), substitute_int(tiles[1], first), Var(lane.var))
        return self.at(worker, *tiles, self.rows.number(row % tall, column % wide))

    def _own(self, row: Int, column: Int, lane: Lane, pieces: int) -> bool:
        """Whether lane e of an assignment is at element e of the fragment; without columns, in its row."""
        if lane.width != self.rows.fragment.elements:
            return False
        element = np.arange(lane.width)
        mine = [np.asarray(evaluate(c, {LANE: element})) for c in self.rows.coordinates(Var(LANE))]
        asked = [(row % self.rows.row_unit, mine[0])]
        if self.spread.columns is not None:
            asked.append((column % self.rows.column_unit, mine[1]))
        for at, own in asked:
            others = free_vars(at) - {lane.var}
            for value in TRIED:
                around = dict.fromkeys(others, value) | {str(PIECE): value % pieces}
                if (np.asarray(evaluate(at, around | {lane.var: element})) != own).any():
                    return False
        return True


def in_registers(body: tuple[Stmt, ...], held: Mapping[str, HeldTensor], worker: str = "") -> tuple[Stmt, ...]:
    """The statements of a body with these tensors in registers; loops whose variables number registers are unrolled."""

    def visit(stmt: Stmt) -> Stmt:
        match stmt:
            case For(kind=kind):
                once = {stmt.var: stmt.lower} if kind not in WORKERS and stmt.lower + 1 == stmt.upper else {}
                body = bind(stmt.body, once) if once else stmt.body
                inside = in_registers(body, held, stmt.var if kind in WORKERS else worker)
                unrolled = kind == "serial" and stmt.var in _numbering(inside, held)
                return replace(stmt, body=inside, kind="unrolled" if unrolled else kind)
            case Assign():
                return _by_pieces(stmt, held, worker)
            case _:
                return with_bodies(stmt, lambda inner: in_registers(inner, held, worker)) or stmt

    return tuple(map(visit, body))


def _by_pieces(stmt: Assign, held: Mapping[str, HeldTensor], worker: str) -> Stmt:
    """An assignment to what is held: of accumulators that are several pieces wide piece by piece."""
    if stmt.buffer not in held or stmt.lane is None:
        return _assigned(stmt, held, worker)
    piece, lane = held[stmt.buffer].rows.fragment, stmt.lane
    pieces = lane.width // piece.elements
    if pieces * piece.elements != lane.width or pieces == 1:
        return _assigned(stmt, held, worker)
    element, wide = Var(lane.var), piece.shape[1]
    moved = element // wide * (wide * pieces) + PIECE * wide + element % wide
    (body,) = bind((stmt,), {lane.var: moved})
    assert isinstance(body, Assign)
    here = _assigned(replace(body, lane=Lane(lane.var, piece.elements)), held, worker, pieces)
    return For(str(PIECE), Const(0), Const(pieces), (here,), "unrolled")


def _assigned(stmt: Assign, held: Mapping[str, HeldTensor], worker: str, pieces: int = 1) -> Assign:
    touched = {stmt.buffer, *(n.tensor for n in walk(stmt.value) if isinstance(n, Read))} & held.keys()
    if not touched:
        return stmt
    lane = stmt.lane
    if lane is None or not worker:
        raise KernelError(f"{', '.join(touched)} in registers, and no worker's lanes take it")

    def read(value: Value) -> Value:
        if not isinstance(value, Read) or value.tensor not in held:
            return value
        return held[value.tensor].of(tuple(i for i in value.index if isinstance(i, Int)), Var(worker), lane, pieces)

    stmt = replace(stmt, value=map_value(stmt.value, read))
    if stmt.buffer not in held:
        return stmt
    place = held[stmt.buffer].of(stmt.index, Var(worker), lane, pieces)
    return replace(stmt, buffer=place.tensor, index=tuple(i for i in place.index if isinstance(i, Int)))


def _numbering(body: tuple[Stmt, ...], held: Mapping[str, HeldTensor]) -> frozenset[str]:
    """Variables in subscripts of the registers."""
    names = {h.buffer for h in held.values()}
    found: set[str] = set()
    for stmt in body:
        if isinstance(stmt, Assign):
            indices: list[tuple[Index, ...]] = [stmt.index] if stmt.buffer in names else []
            indices += [n.index for n in walk(stmt.value) if isinstance(n, Read) and n.tensor in names]
            found |= {v for index in indices for i in index if isinstance(i, Int) for v in free_vars(i)}
        for inner in bodies(stmt):
            found |= _numbering(inner, held)
    return frozenset(found)
