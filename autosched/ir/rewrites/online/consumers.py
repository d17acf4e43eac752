"""Stages behind a pass that compute a row from the results of this row: tiles of rows compute them at once.

    for row, e: O[row, e] = A[row, e] / Z[row]          behind A and Z of the same rows
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autosched.ir.nodes import Assign, Axis, Loop, Statement
from autosched.ir.program import Program
from autosched.ir.rewrites.online.members import Cascade
from autosched.ir.value import Index, Read, is_plain, reads, substitute, substitute_index
from autosched.ir.variables import index_vars
from autosched.logic import Const, Int, Var


@dataclass(frozen=True)
class Consumer:
    """An assignment in terms of the cascade's rows and of axes of its own, `extra`."""

    assign: Assign
    extra: tuple[Axis, ...]

    @property
    def target(self) -> Read:
        return Read(self.assign.tensor, self.assign.index, self.assign.value.dtype)


def consumer(
    statement: Statement, rows: Mapping[str, tuple[Index, ...]], cascade: Cascade, program: Program
) -> Consumer | None:
    """The statement as a consumer of results (`rows`: each with its subscripts in the cascade's axes). None where it
    reads a result of another row, writes an element of several rows, or is no plain assignment."""
    axes: dict[str, Axis] = {}
    while isinstance(statement, Loop) and len(statement.body) == 1:
        axes[statement.axis.name] = statement.axis
        (statement,) = statement.body
    if not isinstance(statement, Assign) or statement.op != "=" or not is_plain(statement.index):
        return None
    own = {a.name: a for a in cascade.rows}
    to: dict[str, Int] = {}
    found = [r for r in reads(statement.value) if r.tensor in rows]
    for read in found:
        for mine, theirs in zip(read.index, rows[read.tensor], strict=True):
            if isinstance(theirs, Var) and theirs.name in own and isinstance(mine, Var) and mine.name in axes:
                to[mine.name] = theirs
    if not found or len(set(to.values())) != len(to) or {v.name for v in to.values() if isinstance(v, Var)} != set(own):
        return None
    for name, row in to.items():
        assert isinstance(row, Var)
        if (axes[name].lower, axes[name].upper) != (own[row.name].lower, own[row.name].upper):
            return None
    index = tuple(substitute_index(i, to) for i in statement.index)
    value = substitute(statement.value, to)
    subscripts = [i.name for i in index if isinstance(i, Var)]
    extra = tuple(a for n, a in axes.items() if n not in to)
    every = {*own, *(a.name for a in extra)}
    if not all(isinstance(i, Var | Const) for i in index) or set(subscripts) != every or len(every) != len(subscripts):
        return None  # an element for each row and point, or tiles would write it twice
    for read in reads(value):
        if read.tensor in rows:
            at = [i for i in rows[read.tensor] if isinstance(i, Var) and i.name in own]
            here = [i for i in read.index if isinstance(i, Var) and i.name in own]
            if at != here or any(_rows(i) & set(own) for i in read.index if not isinstance(i, Var)):
                return None
    others = {r.tensor for r in reads(statement.value)} | set(rows) | _read_before(statement, program)
    return None if statement.tensor in others else Consumer(Assign(statement.tensor, index, "=", value), extra)


def _rows(index: Index) -> frozenset[str]:
    return index_vars((index,))


def _read_before(statement: Assign, program: Program) -> set[str]:
    """Tensors that stages before the one of this assignment read."""
    names: set[str] = set()
    for stage in program.stages:
        if stage.assign == statement:
            break
        names |= {r.tensor for r in (*stage.reads, *(reads(stage.init) if stage.init is not None else ()))}
    return names
