"""What a product hands on in its fragments: the tensor becomes registers of each warp, and both products name these.

    P[i, j] = f16(max(acc[warp, ir, jr, e], 0))              P_held[warp, ir, jr, e] = …
    a_reg[ir, e] = P[warp * 16 + e // 16, ku * 16 + e % 16]  a_reg[ir, e] = P_held[warp, ir, ku * 2 + e % 16 // 8, …]

Which lane has what is for a printer to find out: the plan has proved that each has what it reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from autosched.codegen.lower.common.context import Context
from autosched.codegen.passes.substitute import bind
from autosched.codegen.tree.kernel import WORKERS, Assign, For, KernelError, Lane, Stmt, bodies, with_bodies
from autosched.ir.value import Index, Read, Value, map_value, walk
from autosched.logic import Const, Int, Var, free_vars
from autosched.logic.walk import substitute_int
from autosched.tiling.plans.handed_on import HandedOn, RowSplit


@dataclass(frozen=True)
class HeldFragments:
    """A tensor of the body in registers of the warps of one split."""

    handed: HandedOn
    split: RowSplit
    buffer: str

    @staticmethod
    def declare(handed: HandedOn, split: RowSplit, ctx: Context) -> HeldFragments:
        dtype = ctx.program.tensors[handed.tensor].dtype
        name = ctx.declare(f"{handed.tensor}_held", dtype, handed.shape(split), "register").name
        return HeldFragments(handed, split, name)

    def index(self, index: tuple[Int, ...], warp: str, lane: Lane, *, own: bool) -> tuple[Int, ...]:
        """Where an element of the tensor is; `own`: it is the lane's own element of the product that makes it."""
        tiles, number = self.handed.fragment_index(self.split, index)
        if own:  # lanes of one tile
            tiles = tuple(substitute_int(t, {lane.var: Const(0)}) for t in tiles)
            number = Var(lane.var)
        return (Var(warp), *tiles, number)


def in_registers(body: tuple[Stmt, ...], held: Mapping[str, HeldFragments], warp: str = "") -> tuple[Stmt, ...]:
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


def _assigned(stmt: Assign, held: Mapping[str, HeldFragments], warp: str) -> Assign:
    touched = {stmt.buffer, *(n.tensor for n in walk(stmt.value) if isinstance(n, Read))} & held.keys()
    if not touched:
        return stmt
    lane = stmt.lane
    if lane is None or not warp:
        raise KernelError(f"{', '.join(touched)} in registers, and no warp's lanes take it")

    def read(value: Value) -> Value:
        if not isinstance(value, Read) or value.tensor not in held:
            return value
        mine, index = held[value.tensor], tuple(i for i in value.index if isinstance(i, Int))
        return replace(value, tensor=mine.buffer, index=mine.index(index, warp, lane, own=False))

    stmt = replace(stmt, value=map_value(stmt.value, read))
    if stmt.buffer not in held:
        return stmt
    mine = held[stmt.buffer]
    return replace(stmt, buffer=mine.buffer, index=mine.index(stmt.index, warp, lane, own=True))


def _numbering(body: tuple[Stmt, ...], held: Mapping[str, HeldFragments]) -> frozenset[str]:
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
