"""The exact check of constant data: what each group of neighbours may add up to, element by element; it runs once.

for each tile along the instruction's axis, and each of its groups:
    sum[0] = 0; sum[0] += the greatest that B[p, j] may add          (and the same for the least)
    broken[0] = 1 if sum[0] > 32767 else broken[0]
"""

from __future__ import annotations

from autosched.codegen.lower.common.context import Context, identifier
from autosched.codegen.tree.kernel import Assign, Buffer, For, Stmt
from autosched.codegen.tree.rename import place, place_index
from autosched.ir.dtypes import DTYPES
from autosched.ir.value import Arith, Comparison, Literal, Read, Select, Value
from autosched.logic import TRUE, Bool, Const, Int, Var, all_of, interval
from autosched.tensorize.conditions.rule import GroupRule
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis

S32 = DTYPES["s32"]


def scan_groups(rule: GroupRule, nest: Nest, check: Buffer, ctx: Context) -> tuple[Stmt, ...]:
    """Statements that give `check` 0 where every group of the nest's tiles keeps the rule, else 1."""
    tensor = ctx.tensor(rule.read.tensor)
    along = next(a for a in nest.axes if a.intrinsic_axis == rule.axis)
    outer = [a for a in nest.axes_of(rule.read) if a is not along]
    total = ctx.declare(f"{tensor.name}_sum", S32, (1,), "register").name
    broken = ctx.declare(f"{tensor.name}_broken", S32, (1,), "register").name
    tile = Var(f"{identifier(along.name)}t")
    at: dict[str, Int] = {a.name: Var(identifier(a.name)) for a in outer}
    body: list[Stmt] = []
    for bound, past, limit in ((rule.low, "<", rule.limits[0]), (rule.high, ">", rule.limits[1])):
        for members in rule.groups:
            body += _group(rule, nest, at, along, tile, bound, members, tensor, total)
            outside = Comparison(past, _held(total), Literal(limit, S32))
            body.append(_set(broken, Select(outside, Literal(1, S32), _held(broken), S32)))
    loops: tuple[Stmt, ...] = (For(tile.name, Const(0), Const(along.units), tuple(body)),)
    for a in reversed(outer):
        loops = (For(identifier(a.name), Const(0), Const(a.extent), loops),)
    return (_set(broken, Literal(0, S32)), *loops, Assign(check.name, (Const(0),), _held(broken)))


def _group(
    rule: GroupRule,
    nest: Nest,
    at: dict[str, Int],
    along: NestAxis,
    tile: Var,
    bound: Value,
    members: tuple[int, ...],
    tensor: Buffer,
    total: str,
) -> list[Stmt]:
    """The sum of one group's bounds; what lies past the axis's end or outside the tensor adds nothing."""
    stmts: list[Stmt] = [_set(total, Literal(0, S32))]
    for member in members:
        position = tile * along.unit + member
        positions = {a.name: at.get(a.name, Const(0)) for a in nest.axes} | {along.name: position}
        axes = nest.at(positions)
        index = place_index(rule.read.index, axes)
        spans = {v.name: (0, nest.by_name[n].extent - 1) for n, v in at.items() if isinstance(v, Var)}
        inside = _inside(index, tensor.shape, spans | {tile.name: (0, along.units - 1)})
        if along.extent % along.unit:
            inside = all_of(position < along.extent, inside)
        more = Arith("+", _held(total), place(bound, axes), S32)
        stmts.append(_set(total, more if inside == TRUE else Select(inside, more, _held(total), S32)))
    return stmts


def _inside(index: tuple[object, ...], shape: tuple[int, ...], ranges: dict[str, tuple[int, int]]) -> Bool:
    """That a subscript is inside the tensor, where its range leaves that open."""
    found: Bool = TRUE
    for part, extent in zip(index, shape, strict=True):
        assert isinstance(part, Int)
        low, high = interval(part, ranges)
        if low < 0:
            found = all_of(found, Const(0) <= part)
        if high >= extent:
            found = all_of(found, part < extent)
    return found


def _held(register: str) -> Read:
    return Read(register, (Const(0),), S32)


def _set(register: str, value: Value) -> Assign:
    return Assign(register, (Const(0),), value)
