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

TRIED = (0, 3, 17)
"""Values of the variables around, at which a lane's own element is looked for."""


@dataclass(frozen=True)
class HeldTensor:
    """A tensor of the body in registers of so many warps."""

    rows: WarpRows
    spread: Spread
    warps: int
    buffer: str

    @staticmethod
    def declare(rows: WarpRows, spread: Spread, warps: int, ctx: Context) -> HeldTensor:
        tensor = spread.tensor
        shape = rows.shape(spread, warps)
        name = f"{tensor.name}_held"
        made = ctx.declare(name, tensor.dtype, shape, "register", fragment_of=rows.intrinsic)
        return HeldTensor(rows, spread, warps, made.name)

    def at(self, warp: Int, row_tile: Int, column_tile: Int, number: Int) -> Read:
        """The element of this number in the fragment of a warp's tile."""
        tiles = (row_tile,) if self.spread.columns is None else (row_tile, column_tile)
        return Read(self.buffer, (warp, *tiles, number), self.spread.tensor.dtype)

    def of(self, index: tuple[Int, ...], warp: Int, lane: Lane) -> Read:
        """An element of the tensor. KernelError for a row's number where other lanes have the row."""
        tall, wide = self.rows.row_unit, self.rows.column_unit
        row = index[self.spread.rows]
        column = Const(0) if self.spread.columns is None else index[self.spread.columns]
        tiles = row // tall % self.rows.tiles(self.warps), column // wide
        own = self._own(row, column, lane)
        if self.spread.columns is None and not own:
            raise KernelError(f"{self.spread.tensor.name} is read where other lanes have its rows")
        if own:  # lanes of one tile
            tiles = tiles[0], tiles[1]
            first: Mapping[str, Int] = {lane.var: Const(0)}
            return self.at(warp, substitute_int(tiles[0], first), substitute_int(tiles[1], first), Var(lane.var))
        return self.at(warp, *tiles, self.rows.number(row % tall, column % wide))

    def _own(self, row: Int, column: Int, lane: Lane) -> bool:
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
                if (np.asarray(evaluate(at, dict.fromkeys(others, value) | {lane.var: element})) != own).any():
                    return False
        return True


def in_registers(body: tuple[Stmt, ...], held: Mapping[str, HeldTensor], warp: str = "") -> tuple[Stmt, ...]:
    """The statements of a body with these tensors in registers; loops whose variables number registers are unrolled."""

    def visit(stmt: Stmt) -> Stmt:
        match stmt:
            case For(kind=kind):
                once = {stmt.var: stmt.lower} if kind not in WORKERS and stmt.lower + 1 == stmt.upper else {}
                body = bind(stmt.body, once) if once else stmt.body
                inside = in_registers(body, held, stmt.var if kind in WORKERS else warp)
                unrolled = kind == "serial" and stmt.var in _numbering(inside, held)
                return replace(stmt, body=inside, kind="unrolled" if unrolled else kind)
            case Assign():
                return _assigned(stmt, held, warp)
            case _:
                return with_bodies(stmt, lambda inner: in_registers(inner, held, warp)) or stmt

    return tuple(map(visit, body))


def _assigned(stmt: Assign, held: Mapping[str, HeldTensor], warp: str) -> Assign:
    touched = {stmt.buffer, *(n.tensor for n in walk(stmt.value) if isinstance(n, Read))} & held.keys()
    if not touched:
        return stmt
    lane = stmt.lane
    if lane is None or not warp:
        raise KernelError(f"{', '.join(touched)} in registers, and no warp's lanes take it")

    def read(value: Value) -> Value:
        if not isinstance(value, Read) or value.tensor not in held:
            return value
        return held[value.tensor].of(tuple(i for i in value.index if isinstance(i, Int)), Var(warp), lane)

    stmt = replace(stmt, value=map_value(stmt.value, read))
    if stmt.buffer not in held:
        return stmt
    place = held[stmt.buffer].of(stmt.index, Var(warp), lane)
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
