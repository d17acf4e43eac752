"""Guards on rows: which hold in all rows of a tile, and the statement without those."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from autosched.ir.nodes import Axis, Guard, Loop, Statement
from autosched.logic import Affine, Bool, Const, all_of, below_zero, conjuncts

Ranges = Mapping[str, tuple[int, int]]
"""The least and the greatest value of axes."""


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


def row_guards(statement: Statement, axis: str) -> Iterator[RowGuard]:
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
    """The statement for rows `begin` until `stop`, without the parts of guards that hold in all of them."""

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
