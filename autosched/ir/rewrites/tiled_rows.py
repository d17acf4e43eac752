"""Stages that share an axis, a tile of it at a time.

    for i: H[i, :] = X[i, :] W1             for t: for i in tile: H[t * 32 + i, :] = X[t * 32 + i, :] W1
    for i: Y[i, :] = H[i, :] W2                    for i in tile: Y[t * 32 + i, :] = H[t * 32 + i, :] W2

Whether iterations of the shared loop are independent is the caller's to prove. Rows at a border, where a guard rules
out what a stage reads, are computed before and after the loop, whose body has no guard on them:

    for y, r: if 0 <= y + r - 1 < 56:       rows 0 to 7 with guards; for t: for y, r: …; rows 48 to 55 with guards
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from autosched.ir.nodes import Axis, Guard, Loop, Statement
from autosched.ir.program import Program
from autosched.ir.rewrites.names import FreeNames
from autosched.ir.value import (
    Index,
    Read,
    Value,
    is_value,
    map_value,
    substitute,
    substitute_condition,
    substitute_index,
)
from autosched.logic import Affine, Bool, Const, Int, Var, affine, all_of, below_zero, conjuncts
from autosched.logic.walk import substitute_int

Ranges = Mapping[str, tuple[int, int]]
"""The least and the greatest value of axes."""
NONE_HANDED: Mapping[str, int] = MappingProxyType({})


def tiled_rows(
    program: Program, first: int, axes: Sequence[str], tile: int, handed: Mapping[str, int] = NONE_HANDED
) -> Program:
    """The program with the top-level statements from number `first` on, one for each of `axes`, in tiles of these
    loops of theirs. What is left behind whole tiles is a tile of its own, and so are the tiles before and after those
    in all of whose rows the guards on the axis hold. `handed`: intermediates that these statements alone touch, each
    with the dimension whose subscript is the axis and nothing else; a tile outside the loop has one of its own size."""
    body = program.body[first : first + len(axes)]
    shared = _axis(body[0], axes[0])
    assert shared is not None
    names = FreeNames(program)
    base, count = shared.lower, shared.extent // tile
    assert isinstance(base, Const)
    low, end = base.value, base.value + shared.extent
    guards = [g for s, a in zip(body, axes, strict=True) for g in _row_guards(s, a)]
    inner = [k for k in range(count) if _all_hold(guards, low + k * tile, low + (k + 1) * tile)] or [*range(count)]
    tensors = dict(program.tensors)
    tiled: list[Statement] = []

    def apart(begin: int, stop: int) -> None:
        """Rows from `begin` until `stop` outside the loop, with intermediates of their own."""
        if begin == stop:
            return
        own: dict[str, tuple[str, int, int]] = {}
        for name, d in handed.items():
            new, old = names(name), tensors[name]
            shape = (*old.shape[:d], Const(stop - begin), *old.shape[d + 1 :])
            tensors[new] = replace(old, name=new, shape=shape)
            own[name] = new, d, begin
        tiled.extend(
            _moved(_rows(decided(s, a, begin, stop), a, Const(begin), stop - begin, names), own)
            for s, a in zip(body, axes, strict=True)
        )

    first_row, last_row = low + inner[0] * tile, low + (inner[-1] + 1) * tile
    apart(low, first_row)
    name = names(f"{axes[0]}_tile")
    start = Var(name) * tile + first_row
    known = [decided(s, a, first_row, last_row) for s, a in zip(body, axes, strict=True)]
    inside = tuple(_rows(s, a, start, tile, names) for s, a in zip(known, axes, strict=True))
    tiled.append(Loop(Axis(name, Const(0), Const(len(inner))), inside))
    apart(last_row, end)
    after = (*program.body[:first], *tiled, *program.body[first + len(axes) :])
    return replace(program, body=after, tensors=tensors)


@dataclass(frozen=True)
class RowGuard:
    """A condition on a row: the sum `form` is below 0. The axis and the loops around it take values in `ranges`."""

    axis: str
    form: Affine
    ranges: Ranges

    def holds(self, begin: int, stop: int) -> bool:
        """Whether it does in all rows from `begin` until `stop`."""
        total = self.form.constant
        for name, factor in self.form.coefficients.items():
            low, high = (begin, stop - 1) if name == self.axis else self.ranges[name]
            total += max(factor * low, factor * high)
        return total < 0


def _all_hold(guards: Sequence[RowGuard], begin: int, stop: int) -> bool:
    return all(g.holds(begin, stop) for g in guards)


def _row_guards(statement: Statement, axis: str) -> Iterator[RowGuard]:
    """The parts of guards that speak of the axis, and else of loops of constant bounds."""
    todo: list[tuple[Statement, Ranges]] = [(statement, {})]
    while todo:
        stmt, ranges = todo.pop()
        match stmt:
            case Loop(own, body):
                todo += [(s, _within(own, ranges)) for s in body]
            case Guard(condition, body):
                parts = conjuncts(condition) if isinstance(condition, Bool) else ()
                yield from (g for p in parts if (g := _row_guard(p, axis, ranges)) is not None)
                todo += [(s, ranges) for s in body]


def _within(axis: Axis, ranges: Ranges) -> Ranges:
    """The ranges inside a loop; none of an axis whose bounds are not constant."""
    others = {n: r for n, r in ranges.items() if n != axis.name}
    match axis.lower, axis.upper:
        case Const(low), Const(high) if low < high:
            return {**others, axis.name: (low, high - 1)}
    return others


def _row_guard(part: Bool, axis: str, ranges: Ranges) -> RowGuard | None:
    form = below_zero(part)
    known = form is not None and axis in form.coefficients and form.coefficients.keys() <= ranges.keys()
    return RowGuard(axis, form, ranges) if known and form is not None else None


def decided(statement: Statement, axis: str, begin: int, stop: int) -> Statement:
    """The statement for rows from `begin` until `stop`, without the parts of guards that hold in all of them."""

    def visit(stmt: Statement, ranges: Ranges) -> tuple[Statement, ...]:
        match stmt:
            case Loop(own, body):
                return (Loop(own, tuple(s for b in body for s in visit(b, _within(own, ranges)))),)
            case Guard(condition, body):
                inner = tuple(s for b in body for s in visit(b, ranges))
                if not isinstance(condition, Bool):
                    return (Guard(condition, inner),)
                left = [p for p in conjuncts(condition) if not holds(_row_guard(p, axis, ranges))]
                return (Guard(all_of(*left), inner),) if left else inner
            case _:
                return (stmt,)

    def holds(guard: RowGuard | None) -> bool:
        return guard is not None and guard.holds(begin, stop)

    (found,) = visit(statement, {})
    return found


def _moved(statement: Statement, own: Mapping[str, tuple[str, int, int]]) -> Statement:
    """The statement with tensors under other names, and so many rows less in a dimension's subscripts."""

    def place(tensor: str, index: tuple[Index, ...]) -> tuple[str, tuple[Index, ...]]:
        if tensor not in own:
            return tensor, index
        name, d, begin = own[tensor]
        at = index[d]
        assert isinstance(at, Int)
        form = affine(at)  # the row's number from `begin` on: a variable alone
        inside = [Var(n) for n in form.coefficients] if form is not None and form.constant == begin else []
        return name, (*index[:d], inside[0] if len(inside) == 1 else at - begin, *index[d + 1 :])

    def read(value: Value) -> Value:
        if not isinstance(value, Read):
            return value
        name, index = place(value.tensor, value.index)
        return replace(value, tensor=name, index=index)

    match statement:
        case Loop(axis, body):
            return Loop(axis, tuple(_moved(s, own) for s in body))
        case Guard(condition, body):
            held = map_value(condition, read) if is_value(condition) else condition
            return Guard(held, tuple(_moved(s, own) for s in body))
        case _:
            taken = tuple(i if isinstance(i, Int) else map_value(i, read) for i in statement.index)
            name, index = place(statement.tensor, taken)
            return replace(statement, tensor=name, index=index, value=map_value(statement.value, read))


def _axis(statement: Statement, name: str) -> Axis | None:
    """The loop of this name, where it stands in a nest of loops around the statement's body."""
    while isinstance(statement, Loop):
        if statement.axis.name == name:
            return statement.axis
        if len(statement.body) != 1:
            return None
        (statement,) = statement.body
    return None


def _rows(statement: Statement, axis: str, first: Int, count: int, names: FreeNames) -> Statement:
    """A statement for so many rows from `first` on, its loops under new names."""

    def visit(stmt: Statement, to: Mapping[str, Int]) -> Statement:
        match stmt:
            case Loop(own, body):
                new = names(own.name)
                if own.name == axis:
                    inner = {**to, own.name: first + Var(new)}
                    return Loop(Axis(new, Const(0), Const(count)), tuple(visit(s, inner) for s in body))
                lower, upper = substitute_int(own.lower, to), substitute_int(own.upper, to)
                return Loop(Axis(new, lower, upper), tuple(visit(s, {**to, own.name: Var(new)}) for s in body))
            case Guard(condition, body):
                return Guard(substitute_condition(condition, to), tuple(visit(s, to) for s in body))
            case _:
                index = tuple(substitute_index(i, to) for i in stmt.index)
                return replace(stmt, index=index, value=substitute(stmt.value, to))

    return visit(statement, {})
