"""`narrow`: assignments wider than a vector of the target, cut into several, for C compilers.

    acc[r, e] += X[i, j + e]                  of 32 lanes, where vectors hold 16, becomes
    acc[r, 0, e] += X[i, j + e]
    acc[r, 1, e] += X[i, j + (e + 16)]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from autosched.codegen import workarounds
from autosched.codegen.analysis.lane_conditions import lane_truth
from autosched.codegen.tree.kernel import Assign, Buffer, IntrinsicCall, Kernel
from autosched.ir.value import Index, Read, Select, Value, map_value, walk
from autosched.logic import FALSE, Bool, Const, Int, Truth, Var, evaluate, free_vars
from autosched.logic.walk import substitute_bool, substitute_int

_Part = TypeVar("_Part", bound=Index)


@workarounds.NARROWED
def narrow(kernel: Kernel) -> Kernel:
    """The same kernel in assignments of at most `kernel.vector_bytes` bytes; a register of `n` elements that no
    instruction takes, `acc[…, n]`, becomes `acc[…, n / m, m]`. Registers of instructions stay as they are."""
    fixed = _fixed(kernel)
    factors = _factors(kernel, fixed)
    return _Narrowing(kernel, factors, fixed).kernel() if factors else kernel


def _registers(stmt: Assign, kernel: Kernel) -> set[str]:
    names = {stmt.buffer, *(v.tensor for v in walk(stmt.value) if isinstance(v, Read))}
    return {n for n in names if kernel.buffers[n].scope in ("register", "matrix")}


def _fixed(kernel: Kernel) -> frozenset[str]:
    """Registers of instructions, and those that share a vector assignment with one."""
    known = list(kernel.statements)
    fixed = {ref.buffer for s in known if isinstance(s, IntrinsicCall) for ref in s.operands.values()}
    groups = [_registers(s, kernel) for s in known if isinstance(s, Assign) and s.lane is not None]
    while any(group & fixed and not group <= fixed for group in groups):
        fixed |= set().union(*(group for group in groups if group & fixed))
    return frozenset(fixed)


def _factors(kernel: Kernel, fixed: frozenset[str]) -> dict[int, int]:
    """How many parts assignments of a number of lanes are cut into, and registers of as many elements."""
    found = dict[int, int]()
    for stmt in kernel.statements:
        if not isinstance(stmt, Assign) or stmt.lane is None or _registers(stmt, kernel) & fixed:
            continue
        width = stmt.lane.width
        element = max([kernel.buffers[stmt.buffer].dtype.bytes, *(v.dtype.bytes for v in walk(stmt.value))])
        parts = width * element // kernel.vector_bytes
        if width & (width - 1) == 0 and parts > 1:
            found[width] = max(found.get(width, 1), min(parts, width))
    return found


class _Narrowing:
    def __init__(self, kernel: Kernel, factors: dict[int, int], fixed: frozenset[str]) -> None:
        self.old, self.factors, self.fixed = kernel, factors, fixed
        self.buffers = {name: self._buffer(b) for name, b in kernel.buffers.items()}

    def kernel(self) -> Kernel:
        narrowed = self.old.rewritten(lambda stmt: self._assign(stmt) if isinstance(stmt, Assign) else (stmt,))
        return replace(narrowed, buffers=self.buffers)

    def _register(self, name: str) -> bool:
        return self.old.buffers[name].scope in ("register", "matrix")

    def _reads_elsewhere(self, value: Value, stmt: Assign) -> bool:
        """Whether a part may read what another part writes. Of registers, parts are told apart by the last index."""
        if not isinstance(value, Read) or value.tensor != stmt.buffer:
            return False
        return value.index[-1] != stmt.index[-1] if self._register(stmt.buffer) else value.index != stmt.index

    def _cut(self, buffer: Buffer) -> bool:
        return buffer.scope == "register" and buffer.name not in self.fixed and buffer.shape[-1] in self.factors

    def _buffer(self, buffer: Buffer) -> Buffer:
        if not self._cut(buffer):
            return buffer
        *outer, n = buffer.shape
        parts = self.factors[n]
        return replace(buffer, shape=(*outer, parts, n // parts))

    def _assign(self, stmt: Assign) -> Iterator[Assign]:
        lane = stmt.lane
        parts = self.factors.get(lane.width, 1) if lane and not _registers(stmt, self.old) & self.fixed else 1
        if lane is None or parts == 1:
            yield self._part(stmt, None, 0, 0) if lane is None else self._part(stmt, lane.var, 0, lane.width)
            return
        width = lane.width // parts
        cut = [self._part(stmt, lane.var, h * width, width) for h in range(parts)]
        cut = [part for part in cut if part.valid != FALSE or self._register(part.buffer)]
        if not any(self._reads_elsewhere(v, stmt) for v in walk(stmt.value)):
            yield from cut
            return
        # All parts are read before any is written.
        name = f"{stmt.buffer}.{lane.width}"
        dtype = self.old.buffers[stmt.buffer].dtype
        self.buffers[name] = Buffer(name, dtype, (parts, width), "register")
        for h, part in enumerate(cut):
            yield replace(part, buffer=name, index=(Const(h), Var(lane.var)))
        for h, part in enumerate(cut):
            yield replace(part, value=Read(name, (Const(h), Var(lane.var)), dtype))

    def _part(self, stmt: Assign, lane: str | None, first: int, width: int) -> Assign:
        """Lanes `first` to `first + width` of an assignment (all, where `lane` is None), on registers that are cut."""
        at = {lane: Var(lane) + first} if lane is not None and first else {}

        def register(buffer: str, index: tuple[_Part, ...], element: int | None = None) -> tuple[_Part | Int, ...]:
            if not self._cut(self.old.buffers[buffer]):
                return index
            *outer, last = index
            assert isinstance(last, Int)
            n = self.old.buffers[buffer].shape[-1]
            return (*outer, *_quotient(last, n // self.factors[n], lane, width, element))

        def value(v: Value) -> Value:
            if isinstance(v, Select) and isinstance(v.condition, Truth):
                return v.then if v.condition.value else v.other
            if not isinstance(v, Read):
                return v
            found: Value | None = None
            # Lanes that move round reach into other registers: each register's run of lanes, the last one first.
            for e in reversed(range(max(1, width))):
                here = replace(v, index=register(v.tensor, v.index, e))
                if found is None:
                    found = run = here
                elif here != run:
                    found, run = Select(Var(str(lane)) < e + 1, here, found, v.dtype), here
            assert found is not None
            return found

        def condition(c: Bool) -> Bool:
            return _decided(substitute_bool(c, at), lane, width)

        shifted = map_value(stmt.value, value, lambda e: substitute_int(e, at), condition)
        index = register(stmt.buffer, tuple(substitute_int(i, at) for i in stmt.index))
        narrower = replace(stmt.lane, width=width) if stmt.lane is not None and lane is not None else stmt.lane
        valid = condition(stmt.valid)
        return replace(stmt, value=shifted, index=index, lane=narrower, valid=valid)


def _decided(condition: Bool, lane: str | None, width: int) -> Bool:
    """TRUE or FALSE where all lanes agree."""
    if lane is None or free_vars(condition) != {lane}:
        return condition
    truth = set(lane_truth(condition, lane, width))
    return condition if len(truth) > 1 else Truth(truth.pop())


def _quotient(element: Int, size: int, lane: str | None, width: int, at: int | None) -> tuple[Int, Int]:
    """An element's register, the one of lane `at`, and its place there, as plain as they can be said."""
    if not free_vars(element) <= {lane}:
        return element // size, element % size
    places = [int(evaluate(element, {lane: e} if lane else {})) for e in range(max(1, width))]
    inside = [p % size for p in places]
    register = Const(places[at or 0] // size)
    if len(set(inside)) == 1:
        return register, Const(inside[0])
    return register, Var(str(lane)) if inside == list(range(width)) else element % size
