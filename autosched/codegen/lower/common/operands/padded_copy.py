"""Copies of a whole tensor in another shape: with a border of zeros, and with the elements that an intrinsic reduces
over side by side.

Each dimension is cut into what lies before the tensor, in it and after it, so that no element is asked where it lies;
the last dimension is copied in vectors, its last vector overlapping the one before where the extent does not divide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from autosched.codegen.tree.kernel import Assign, Buffer, For, If, Lane, Stmt
from autosched.ir.value import Read, Select, blank
from autosched.logic import Const, Int, Var, all_of, minimum
from autosched.tiling.steps import Interleave

LANE = "e"
VECTOR_BYTES = 64
"""Bytes that one step of a copy moves; narrower machines take several instructions for it."""


@dataclass(frozen=True)
class PaddedDimension:
    """One dimension of the copy: positions [0, before) and [after, extent) are border, position q in between holds the
    tensor's element q + low."""

    extent: int
    low: int
    real: int

    @property
    def before(self) -> int:
        return min(self.extent, max(0, -self.low))

    @property
    def after(self) -> int:
        return max(self.before, min(self.extent, self.real - self.low))


@dataclass(frozen=True)
class Copy:
    """Fills `target` from `tensor`. `cuts` has a dimension of the tensor each, the grouped one counted in elements;
    where a part of a dimension is copied, `starts` says from where on. `owner`: the thread whose own copy it is."""

    target: Buffer
    tensor: Buffer
    cuts: tuple[PaddedDimension, ...]
    group: Interleave | None = None
    starts: Mapping[int, Int] = field(default_factory=dict)
    owner: tuple[Int, ...] = ()

    def statements(self) -> tuple[Stmt, ...]:
        """One loop nest; the iterations of its outermost loop write different elements."""
        names = [f"q{d}" for d in range(len(self.cuts) - (self._inside > 1))]
        return self._outer(0, names, ())

    @cached_property
    def _inside(self) -> int:
        """Elements of the last dimension, where all of it is copied: a row is then along the last two, as one."""
        last = self.cuts[-1]
        whole = self.group is None and len(self.cuts) > 1 and last.low == 0 and last.extent == last.real
        return last.extent if whole else 1

    @cached_property
    def _along(self) -> PaddedDimension:
        """The row, in elements."""
        n = self._inside
        cut = self.cuts[-1] if n == 1 else self.cuts[-2]
        return PaddedDimension(cut.extent * n, cut.low * n, cut.real * n)

    def _count(self, d: int) -> int:
        """Positions along dimension d of the copy."""
        group = self.group
        return self.target.shape[len(self.owner) + d] if group is not None and d == group.dim else self.cuts[d].extent

    def _outer(self, d: int, names: list[str], at: tuple[Int, ...]) -> tuple[Stmt, ...]:
        """The outermost dimension of more than one position is one loop with a test, so that threads can share it."""
        if d == len(names) - 1:
            return self._row(at)
        n, cut = self._count(d), self.cuts[d]
        if n == 1 and cut.before == 0 and cut.after == 1:
            return self._outer(d + 1, names, (*at, Const(0)))
        q = Var(names[d])
        inside, border = self._inner(d + 1, names, (*at, q)), self._zeros(d + 1, names, (*at, q))
        if self._grouped(d):
            full, real = self._groups(d)
            parts: list[Stmt] = [If(q < full, inside)] if full < n else list(inside)
            if real > full:
                partial = q >= full if real == n else all_of(q >= full, q < real)
                parts.append(If(partial, self._inner(d + 1, names, (*at, Const(full)))))
            if real < n:
                parts.append(If(q >= real, border))
            return (For(q.name, Const(0), Const(n), tuple(parts), note=self._note()),)
        if cut.before == 0 and cut.after == cut.extent:
            return (For(q.name, Const(0), Const(n), inside, note=self._note()),)
        there = all_of(q >= cut.before, q < cut.after)
        return (For(q.name, Const(0), Const(n), (If(there, inside), If(~there, border)), note=self._note()),)

    def _note(self) -> str:
        how = "with a border of zeros" if self.group is None else f"in groups of {self.group.size}"
        return f"copy {self.tensor.name} {how}"

    def _grouped(self, d: int) -> bool:
        return self.group is not None and d == self.group.dim

    def _groups(self, d: int) -> tuple[int, int]:
        """How many groups of dimension d the tensor fills, and in how many it has elements; what is left is zeros."""
        assert self.group is not None
        size, real = self.group.size, self.cuts[d].after
        return real // size, -(-real // size)

    def _inner(self, d: int, names: list[str], at: tuple[Int, ...]) -> tuple[Stmt, ...]:
        """Dimensions from d inwards, where all outer positions are inside the tensor."""
        if d == len(names) - 1:
            return self._row(at)
        q, cut = Var(names[d]), self.cuts[d]
        inside, border = self._inner(d + 1, names, (*at, q)), self._zeros(d + 1, names, (*at, q))
        if self._grouped(d):
            full, real = self._groups(d)
            last = self._inner(d + 1, names, (*at, Const(full))) if real > full else ()
            return (*_loop(q.name, 0, full, inside), *last, *_loop(q.name, real, self._count(d), border))
        return (
            *_loop(q.name, 0, cut.before, border),
            *_loop(q.name, cut.before, cut.after, inside),
            *_loop(q.name, cut.after, cut.extent, border),
        )

    def _zeros(self, d: int, names: list[str], at: tuple[Int, ...]) -> tuple[Stmt, ...]:
        if d == len(names) - 1:
            return self._fill(at, 0, self._along.extent)
        return _loop(names[d], 0, self._count(d), self._zeros(d + 1, names, (*at, Var(names[d]))))

    def _row(self, at: tuple[Int, ...]) -> tuple[Stmt, ...]:
        """One row along the last dimension, border included."""
        cut = self._along
        zeros = (*self._fill(at, 0, cut.before), *self._fill(at, cut.after, cut.extent))
        return (*zeros, *self._vectors(at, cut.before, cut.after, copied=True))

    def _fill(self, at: tuple[Int, ...], lower: int, upper: int) -> tuple[Stmt, ...]:
        return self._vectors(at, lower, upper, copied=False)

    def _vectors(self, at: tuple[Int, ...], lower: int, upper: int, copied: bool) -> tuple[Stmt, ...]:
        """[lower, upper) of a row in vectors as wide as they can be."""
        left = upper - lower
        if left <= 0:
            return ()
        size = 1 if self.group is None else self.group.size
        width = 1
        while 2 * width <= left and 2 * width * size * self.tensor.dtype.bytes <= VECTOR_BYTES:
            width *= 2
        start = Var("row")
        full = left - left % width
        stmts = _loop(start.name, lower, lower + full, (self._vector(at, start, width, copied),), width)
        if left % width:
            stmts += (self._vector(at, Const(upper - width), width, copied),)
        return stmts

    def _vector(self, at: tuple[Int, ...], start: Int, width: int, copied: bool) -> Stmt:
        """`width` positions of the last dimension, each with its group."""
        size = 1 if self.group is None else self.group.size
        lane = Lane(LANE, width * size) if width * size > 1 else None
        element: Int = Var(LANE) if lane else Const(0)
        along = start + (element // size if size > 1 else element)
        zero = blank(self.tensor.dtype)
        n = self._inside
        index = (*at, along) if n == 1 else (*at, along // n, along % n)
        if self.group is None:
            source = tuple(self._source(d, i) for d, i in enumerate(index))
            value = Read(self.tensor.name, source, self.tensor.dtype) if copied else zero
            return Assign(self.target.name, (*self.owner, *index), value, lane)
        member = element % size if size > 1 else Const(0)
        dim, n = self.group.dim, self.cuts[self.group.dim].after
        position = at[dim] * size + member
        source = tuple(position if d == dim else self._source(d, i) for d, i in enumerate(index))
        read = Read(self.tensor.name, source, self.tensor.dtype)
        ragged = n % size and isinstance(at[dim], Const)
        taken = Select(position < n, read, zero, zero.dtype) if ragged else read
        return Assign(self.target.name, (*self.owner, *index, member), taken if copied else zero, lane)

    def _source(self, d: int, position: Int) -> Int:
        """Where an element of the copy lies in the tensor; past the end of a part the last one stands again."""
        if d not in self.starts:
            return position + self.cuts[d].low
        extent = self.tensor.shape[d]
        there = self.starts[d] + position
        return there if extent % self.cuts[d].extent == 0 else minimum(there, extent - 1)


def _loop(var: str, lower: int, upper: int, body: tuple[Stmt, ...], step: int = 1) -> tuple[Stmt, ...]:
    return (For(var, Const(lower), Const(upper), body, "serial", step),) if upper > lower else ()


def copy_shape(cuts: Sequence[PaddedDimension], group: Interleave | None) -> tuple[int, ...]:
    """The copy's shape: a grouped dimension counts groups, whose members are the last dimension."""
    if group is None:
        return tuple(c.extent for c in cuts)
    counted = [-(-c.extent // group.size) if d == group.dim else c.extent for d, c in enumerate(cuts)]
    return (*counted, group.size)
