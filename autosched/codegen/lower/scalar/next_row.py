"""Rows: what the first stage reads of the next row, or of one further on, is asked for while this row is computed.

Prefetchers of the hardware begin anew at each page, and the stage that waits for a row has little to do meanwhile. The
pass behind it asks, a share in each trip of its loop.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from autosched.codegen.lower.common.context import Context, identifier
from autosched.codegen.tree.kernel import For, If, Prefetch, Stmt
from autosched.ir.value import Read
from autosched.logic import Const, Int, Var
from autosched.logic.walk import substitute_int
from autosched.tiling.analysis.nontemporal import LINE_BYTES, row_bytes, steps_ahead
from autosched.tiling.plans.plan import FusedLoopsPart
from autosched.tiling.steps.scalar import handles


@dataclass(frozen=True)
class NextRow:
    """Asks for what `reads` name, along their last subscript, `steps` times `rows` rows behind those of the innermost
    shared loop, for as many rows."""

    reads: tuple[Read, ...]
    shared: tuple[str, ...]
    rows: int
    steps: int

    def asked_by(self, stmts: tuple[Stmt, ...], axis: str) -> tuple[Stmt, ...]:
        """The statements of a pass along an axis, asking in its loops."""
        result: list[Stmt] = []
        for stmt in stmts:
            match stmt:
                case For() if stmt.var == identifier(axis):
                    result.append(replace(stmt, body=(*self._asks(stmt), *stmt.body)))
                case For() | If():
                    result.append(replace(stmt, body=self.asked_by(stmt.body, axis)))
                case _:
                    result.append(stmt)
        return tuple(result)

    def _asks(self, loop: For) -> list[Prefetch]:
        at: dict[str, Int] = {name: Var(identifier(name)) for name in self.shared}
        own = at[self.shared[-1]]
        found = []
        for read in self.reads:
            line = max(1, LINE_BYTES // read.dtype.bytes)
            for row in range(self.steps * self.rows, (self.steps + 1) * self.rows):
                there = at | {self.shared[-1]: own + row}
                first = tuple(substitute_int(i, there) for i in read.index[:-1] if isinstance(i, Int))
                found += [Prefetch(read.tensor, (*first, Var(loop.var) + Const(k))) for k in range(0, loop.step, line)]
        return found


def next_row(part: FusedLoopsPart, ctx: Context) -> NextRow | None:
    """What asks for rows ahead, where the schedule says so."""
    ahead, rows = handles.AHEAD.of(part.names, ctx.values), handles.ROWS.of(part.names, ctx.values)
    if not part.asked or not ahead:
        return None
    row = row_bytes(part.members[0].stage, part.asked)
    return NextRow(part.asked, part.shared, rows, steps_ahead(ahead, rows, row))
