"""Moves between memory and registers that hold matrices: which register, where in memory, how far rows are apart.

An assignment moves a whole register, its lane running over all elements: it sets it to zero, loads it, or stores it. In
memory each row's elements are neighbours, and rows lie evenly apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from autosched.codegen.analysis.access import classify, plain
from autosched.codegen.tree.kernel import (
    Assign,
    Buffer,
    KernelError,
    Lane,
    RegisterRef,
    Stmt,
    statements,
)
from autosched.codegen.tree.uses import places
from autosched.ir.value import Literal, Read, reads
from autosched.logic import TRUE, Const, Int, Var, evaluate
from autosched.logic.walk import substitute_int
from autosched.tensorize.matrices import Matrices

_SET = "a register that holds a matrix is set to zero or loaded"


@dataclass(frozen=True, slots=True)
class MatrixMove:
    """`use` is `zero`, `load` or `store`, of the register of `buffer` at `index`; `memory` and `place` are the buffer
    and the subscripts of its first element there, `stride` the bytes from one row to the next."""

    use: str
    buffer: Buffer
    index: tuple[Int, ...]
    memory: Buffer | None = None
    place: tuple[Int, ...] = ()
    stride: int = 0

    @property
    def number(self) -> int:
        return number_of(self.buffer, self.index)


def number_of(buffer: Buffer, index: tuple[Int, ...]) -> int:
    """The number of the register at these subscripts, all but the last."""
    number = 0
    for part, extent in zip(index, buffer.shape[:-1], strict=True):
        number = number * extent + int(evaluate(part, {}))
    return buffer.first + number


def ref_number(ref: RegisterRef, buffers: Mapping[str, Buffer]) -> int:
    """The number of a call's register."""
    return number_of(buffers[ref.buffer], ref.index)


def move_of(stmt: Assign, buffers: Mapping[str, Buffer]) -> MatrixMove | None:
    """What an assignment moves; None where no register that holds a matrix takes part. KernelError where it is no move
    of a whole register."""
    target, value = buffers[stmt.buffer], stmt.value
    sources = [r for r in reads(value) if buffers[r.tensor].scope == "matrix"]
    if target.scope != "matrix" and not sources:
        return None

    def require(holds: bool, why: str) -> None:
        if not holds:
            raise KernelError(f"{stmt.buffer}: {why}")

    require(stmt.valid == TRUE and stmt.lane is not None, "a register that holds a matrix is moved as a whole")
    assert stmt.lane is not None
    if target.scope == "matrix":
        whole(target, stmt.index, stmt.lane)
        index = stmt.index[:-1]
        if isinstance(value, Literal):
            require(value.value == 0 and str(value.value)[0] != "-", _SET)
            return MatrixMove("zero", target, index)
        require(isinstance(value, Read) and not sources, _SET)
        assert isinstance(value, Read)
        use, register, memory, there = "load", target, buffers[value.tensor], plain(value.tensor, value.index)
    else:
        require(isinstance(value, Read), "a matrix is stored without arithmetic")
        assert isinstance(value, Read)
        register, given = buffers[value.tensor], plain(value.tensor, value.index)
        whole(register, given, stmt.lane)
        use, index, memory, there = "store", given[:-1], target, stmt.index
    plain_memory = memory.scope in ("global", "workspace", "packed")
    require(plain_memory, f"no matrix is moved to or from {memory.scope} memory")
    apart = apart_in_memory(there, memory, register, stmt.lane)
    require(apart is not None, "rows do not lie evenly apart in memory")
    assert apart is not None
    place = tuple(substitute_int(i, {stmt.lane.var: Const(0)}) for i in there)
    return MatrixMove(use, register, index, memory, place, apart * memory.dtype.bytes)


def whole(buffer: Buffer, index: tuple[Int, ...], lane: Lane) -> None:
    """KernelError where the lane does not run over all elements of the register."""
    if index[-1] != Var(lane.var) or lane.width != buffer.shape[-1]:
        raise KernelError(f"{buffer.name}: a register that holds a matrix is moved as a whole")


def apart_in_memory(index: tuple[Int, ...], memory: Buffer, register: Buffer, lane: Lane) -> int | None:
    """Elements from one row to the next of the matrix at `index`, lane by lane; None where rows are not evenly
    apart."""
    assert register.matrices is not None
    offsets = classify(index, memory.shape, lane).offsets
    width = register.matrices.row_elements(register.dtype)
    if offsets is None:
        return None
    apart = offsets[width] if lane.width > width else width
    return apart if all(o == e // width * apart + e % width for e, o in enumerate(offsets)) else None


def touches(body: tuple[Stmt, ...], buffers: Mapping[str, Buffer]) -> bool:
    """Whether statements use a register that holds a matrix."""
    return next(held_in(body, buffers), None) is not None


def rows_by_number(buffer: Buffer) -> Iterator[tuple[int, int]]:
    """The number of each register of a buffer, and its rows."""
    assert buffer.matrices is not None
    rows, count = buffer.matrices.rows_of(buffer.shape[-1], buffer.dtype), buffer.elements // buffer.shape[-1]
    yield from ((buffer.first + k, rows) for k in range(count))


def fits(buffer: Buffer, matrices: Matrices) -> bool:
    """Whether registers of this configuration fit the buffer: they are of its kind, and have its rows."""
    if buffer.matrices is None or not matrices.same(buffer.matrices):
        return False
    return all(matrices.rows_in(register) == rows for register, rows in rows_by_number(buffer))


def held_in(body: tuple[Stmt, ...], buffers: Mapping[str, Buffer]) -> Iterator[Buffer]:
    """The buffers in registers that hold matrices, each as often as statements use it."""
    for stmt in statements(body):
        yield from (buffers[n] for n, _ in places(stmt) if buffers[n].scope == "matrix")
