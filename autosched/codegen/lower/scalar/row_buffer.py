"""Stores past the caches, and the buffer of one row in which stages keep what they leave there for each other.

for i:                                    for i:
  for j: Y[i, j] = exp(X[i, j] - M[i])      for j: Y_row[j] = exp(X[i, j] - M[i])
  for j: S[i] += Y[i, j]                    for j: S[i] += Y_row[j]
  for j: Y[i, j] = Y[i, j] / S[i]           for j: Y[i, j] = Y_row[j] / S[i], past the caches
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from autosched.codegen.lower.common.context import Context, identifier
from autosched.codegen.tree.kernel import Assign, For, If, Stmt
from autosched.ir.value import Read, Value, map_value
from autosched.logic import Const, Int
from autosched.logic.walk import substitute_int
from autosched.tiling.plans.plan import FusedLoopsPart
from autosched.tiling.steps.scalar import handles


@dataclass(frozen=True)
class RowBuffer:
    """`tensor` is written past the caches by the stage `writer`. `buffer`, if any, holds `rows` rows of it for each
    thread: the loops `shared` choose the row, the last of them `innermost`."""

    tensor: str
    writer: str
    buffer: str | None
    shared: int
    innermost: str

    def of(self, stmts: tuple[Stmt, ...], stages: tuple[str, ...], thread: Int) -> tuple[Stmt, ...]:
        """The statements of these stages, run by a `thread`."""
        result: list[Stmt] = []
        for stmt in stmts:
            match stmt:
                case For() | If():
                    result.append(replace(stmt, body=self.of(stmt.body, stages, thread)))
                case Assign():
                    result.append(self._assign(stmt, self.writer in stages, thread))
                case _:
                    result.append(stmt)
        return tuple(result)

    def _assign(self, stmt: Assign, last: bool, thread: Int) -> Assign:
        stmt = replace(stmt, value=self._read(stmt.value, thread))
        if stmt.buffer != self.tensor:
            return stmt
        if last:
            return replace(stmt, stream=True)
        return stmt if self.buffer is None else replace(stmt, buffer=self.buffer, index=self._index(stmt.index, thread))

    def _read(self, value: Value, thread: Int) -> Value:
        if self.buffer is None:
            return value
        buffer = self.buffer

        def visit(v: Value) -> Value:
            if not isinstance(v, Read) or v.tensor != self.tensor:
                return v
            return Read(buffer, self._index(tuple(i for i in v.index if isinstance(i, Int)), thread), v.dtype)

        return map_value(value, visit)

    def _index(self, index: tuple[Int, ...], thread: Int) -> tuple[Int, ...]:
        """The place of an element of the row that stands so many rows behind the innermost loop's own."""
        row = substitute_int(index[self.shared - 1], {self.innermost: Const(0)})
        return (thread, row, *index[self.shared :])


def row_buffer(part: FusedLoopsPart, ctx: Context, values: Mapping[str, int]) -> RowBuffer | None:
    """What the row says about stores; None where they go through the caches."""
    names, stream = part.names, part.nontemporal
    if stream is None or handles.STORES.of(names, values) != handles.PAST:
        return None
    count, buffer = len(part.shared), None
    if stream.buffered:
        tensor = ctx.tensor(stream.tensor)
        shape = (handles.THREADS.of(names, values), handles.ROWS.of(names, values), *tensor.shape[count:])
        buffer = ctx.declare(f"{stream.tensor}_row", tensor.dtype, shape, "workspace").name
    return RowBuffer(stream.tensor, stream.writer, buffer, count, identifier(part.shared[-1]))
