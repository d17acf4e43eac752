"""Copies whose lanes lie apart in memory, while a loop around moves along neighbours: transposed in registers.

    for p in 0..64:                                     for p in 0..64 step 16:
      K_panel[p, :16] = K[j + e, p]  for e in 0..16       turned[0, :16] = K[j, p + e]  for e in 0..16
                                                          …                             shuffles
                                                          K_panel[p, :16] = turned_2[0, e]  for e in 0..16

16 loads of an element each, and as many insertions, become a load and four shuffles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count
from math import prod

import numpy as np
import numpy.typing as npt

from autosched.codegen.analysis.access import classify, flat_offset, plain
from autosched.codegen.analysis.lane_conditions import lane_truth
from autosched.codegen.passes.register_transpose import column, exchanged, quick_square
from autosched.codegen.passes.substitute import bind
from autosched.codegen.tree.kernel import Assign, Buffer, For, Kernel, Lane, Stmt
from autosched.ir.dtypes import DType
from autosched.ir.value import Read, is_plain
from autosched.logic import TRUE, Const, Int, Var, affine, maximum
from autosched.logic.walk import free_vars, substitute_int

FEWEST, MOST = 4, 16
"""Rows that are transposed together."""
MOST_ELEMENTS = 1 << 16
"""Of a chunk of rows, whose places are compared."""


def transpose_copies(kernel: Kernel) -> Kernel:
    """The kernel with such copies of its main function transposed in registers."""
    transposing = _Transposing(kernel)
    body = transposing.body(kernel.main.body)
    if len(transposing.buffers) == len(kernel.buffers):
        return kernel
    return replace(kernel, buffers=transposing.buffers, main=replace(kernel.main, body=body))


@dataclass(frozen=True)
class _Copy:
    """An assignment inside of `loops` that copies groups of `group` neighbours which lie apart in `source`; 0: one that
    copies in another way, such as what is left of a row."""

    stmt: Assign
    lane: Lane
    source: Read
    group: int
    loops: tuple[For, ...] = ()

    @property
    def rows(self) -> int:
        return self.lane.width // max(1, self.group)

    @property
    def lanes(self) -> list[int]:
        """The lanes that it writes, for all that is known."""
        if not free_vars(self.stmt.valid) <= {self.lane.var}:
            return list(range(self.lane.width))
        return [e for e, is_valid in enumerate(lane_truth(self.stmt.valid, self.lane.var, self.lane.width)) if is_valid]

    def row(self, var: str, number: int) -> Read:
        """The elements of one row, of as many steps of a loop as there are rows."""
        lane, index = Var(self.lane.var), plain(self.source.tensor, self.source.index)
        here = {var: Var(var) + lane // self.group, self.lane.var: number * self.group + lane % self.group}
        return replace(self.source, index=tuple(substitute_int(i, here) for i in index))


class _Transposing:
    def __init__(self, kernel: Kernel) -> None:
        self.buffers = dict(kernel.buffers)
        self._taken = {*kernel.buffers, *kernel.program.tensors, *kernel.program.scalars}
        self._turned: dict[tuple[DType, int, int, int], str] = {}

    def body(self, stmts: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(chain.from_iterable(map(self.statement, stmts)))

    def statement(self, stmt: Stmt) -> tuple[Stmt, ...]:
        if not isinstance(stmt, For):
            return (stmt,)
        return self.transposed(stmt) or (replace(stmt, body=self.body(stmt.body)),)

    def transposed(self, loop: For) -> tuple[Stmt, ...]:
        """The loop in chunks of rows, and one over what is left; () where it copies no such thing."""
        if loop.kind != "serial" or loop.step != 1:
            return ()
        copies: list[_Copy] = []
        for copy in self.copies(loop.body, ()):
            if copy is None:
                return ()
            copies.append(copy)
        sizes = {c.rows for c in copies if self.turns(c, loop.var)}
        if not sizes:
            return ()
        rows, length = max(sizes), loop.upper - loop.lower
        if (isinstance(length, Const) and length.value < rows) or not self.apart(loop.var, rows, copies):
            return ()
        middle = loop.lower + maximum(length, Const(0)) // rows * rows
        chunks = replace(loop, upper=middle, step=rows, body=self.chunk(loop.body, loop.var, rows))
        left = loop.upper - middle
        if isinstance(left, Const) and left.value == 0:
            return (chunks,)
        return (chunks, replace(loop, lower=middle, note=""))

    def copies(self, body: tuple[Stmt, ...], loops: tuple[For, ...]) -> Iterator[_Copy | None]:
        """The copies of a body, and None for whatever else it has."""
        for stmt in body:
            match stmt:
                case Assign():
                    yield self.copy(stmt, loops)
                case For(_, Const(), Const()) if stmt.kind in ("serial", "unrolled"):
                    yield from self.copies(stmt.body, (*loops, stmt))
                case _:
                    yield None

    def copy(self, stmt: Assign, loops: tuple[For, ...] = ()) -> _Copy | None:
        """The assignment as a copy from memory to memory; None where it is none."""
        lane, read = stmt.lane or Lane("", 1), stmt.value
        if not isinstance(read, Read) or not is_plain(read.index):
            return None
        source, target = self.buffers[read.tensor], self.buffers[stmt.buffer]
        memory = all(b.scope in ("global", "workspace", "packed") for b in (source, target))
        if not memory or source.dtype != target.dtype or source.dtype.bits < 8:
            return None
        return _Copy(stmt, lane, read, self.group(stmt, lane, read), loops)

    def group(self, stmt: Assign, lane: Lane, read: Read) -> int:
        """How many neighbours a copy to neighbours takes together; 0 where it is no such copy."""
        offsets = classify(read.index, self.buffers[read.tensor].shape, lane).offsets
        target = classify(stmt.index, self.buffers[stmt.buffer].shape, lane)
        if offsets is None or target.kind != "contiguous" or stmt.valid != TRUE:
            return 0
        group = next((e for e, offset in enumerate(offsets) if offset != e), lane.width)
        rows = lane.width // group
        if lane.width % group or rows & (rows - 1) or not FEWEST <= rows <= MOST or offsets[group] <= group:
            return 0
        even = all(o == e // group * offsets[group] + e % group for e, o in enumerate(offsets))
        return group if even else 0

    def turns(self, copy: _Copy, var: str) -> bool:
        """Whether steps of the loop are neighbours of a row."""
        if not copy.group:
            return False
        shape = self.buffers[copy.source.tensor].shape
        return classify(copy.row(var, 0).index, shape, copy.lane).kind == "contiguous"

    def apart(self, var: str, rows: int, copies: list[_Copy]) -> bool:
        """Whether no two assignments of a chunk, whose order changes, write the same element, and none is read."""
        if {c.source.tensor for c in copies} & {c.stmt.buffer for c in copies}:
            return False
        places: dict[str, list[npt.NDArray[np.int64]]] = {}
        around: dict[str, dict[str, int]] = {}
        for c in copies:
            ranges: dict[str, Sequence[int]] = {f.var: range(_known(f.lower), _known(f.upper), f.step) for f in c.loops}
            ranges |= {var: range(rows), c.lane.var: c.lanes}
            flat = affine(flat_offset(self.buffers[c.stmt.buffer], c.stmt.index))
            if flat is None or prod(map(len, ranges.values())) > MOST_ELEMENTS:
                return False
            outside = {n: k for n, k in flat.coefficients.items() if n not in ranges}
            if around.setdefault(c.stmt.buffer, outside) != outside:
                return False
            found = np.array([flat.constant], np.int64)
            for name, values in ranges.items():
                found = (found[:, None] + flat.coefficient(name) * np.asarray(values, np.int64)).ravel()
            places.setdefault(c.stmt.buffer, []).append(found)
        return all(len(np.unique(p)) == len(p) for p in map(np.concatenate, places.values()))

    def chunk(self, body: tuple[Stmt, ...], var: str, rows: int) -> tuple[Stmt, ...]:
        """The body for as many steps of the loop as there are rows."""
        found: list[Stmt] = []
        for stmt in body:
            if isinstance(stmt, For):
                found.append(replace(stmt, body=self.chunk(stmt.body, var, rows), kind="serial"))
                continue
            copy = self.copy(stmt) if isinstance(stmt, Assign) else None
            assert copy is not None
            if self.turns(copy, var) and copy.rows == rows:
                found += self.turned(copy, var)
            else:
                step = f"{var}v"  # no axis has such a name (`lower.common.context.identifier`)
                found.append(For(step, Const(0), Const(rows), bind((stmt,), {var: Var(var) + Var(step)})))
        return tuple(found)

    def turned(self, copy: _Copy, var: str) -> Iterator[Stmt]:
        """Loads of rows, what transposes them, and stores."""
        dtype, lane = copy.source.dtype, copy.lane
        names = [self.register(dtype, copy.rows, lane.width, number) for number in range(3)]
        at = Var(lane.var)
        held = [Read(names[0], (Const(n), at), dtype) for n in range(copy.rows)]
        yield from (Assign(names[0], (Const(n), at), copy.row(var, n), lane) for n in range(copy.rows))
        stages = quick_square(copy.rows, copy.group * dtype.bytes)
        stmts, held = exchanged(stages, held, lane, (names[1], names[2]), copy.group)
        yield from stmts
        for n, register in sorted((column(stages, copy.rows, q), held[q]) for q in range(copy.rows)):
            index = tuple(substitute_int(i, {var: Var(var) + n}) for i in copy.stmt.index)
            yield replace(copy.stmt, index=index, value=register)

    def register(self, dtype: DType, rows: int, width: int, number: int) -> str:
        """The name of one of the arrays of registers that rows of a type pass through."""
        key = dtype, rows, width, number
        if key not in self._turned:
            tries = ("turned" if n == 1 else f"turned_{n}" for n in count(1))
            name = next(n for n in tries if n not in self._taken)
            self._taken.add(name)
            self.buffers[name] = Buffer(name, dtype, (rows, width), "register")
            self._turned[key] = name
        return self._turned[key]


def _known(bound: Int) -> int:
    assert isinstance(bound, Const)
    return bound.value
