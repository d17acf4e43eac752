"""Register buffers as arrays of one thread: which elements lane `t` holds, in which of its registers.

A register that an instruction of a warp takes is spread over its lanes by the fragment map of the YAML; registers that
share an assignment with one lie like it; those of single threads belong to a thread as they are. Dimensions that number
workers disappear: each worker has its own. Registers of a warp that no instruction takes are dealt out in runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd

from autosched.codegen.analysis.held_registers import HeldRegisters, threads_around
from autosched.codegen.cuda.fragments.lane_registers import Registers, register_type, registers_of
from autosched.codegen.cuda.types import element_type
from autosched.codegen.tree.kernel import Buffer, Kernel, Stmt, statements
from autosched.errors import UsageError
from autosched.ir.dtypes import DType
from autosched.ir.value import Index
from autosched.logic import Const, Int, Var
from autosched.logic.walk import substitute_int
from autosched.tensorize.fragment import Fragment, Numbers
from autosched.tensorize.intrinsic import Intrinsic, Operand

LANE, THREAD = ".lane", ".thread"
"""Variables: a thread's number in its worker, and in its block."""
MOST_RUN = 4
"""Neighbours that a lane holds of a register that no instruction takes: 16 bytes of most types."""


@dataclass(frozen=True)
class Layout:
    """One register buffer in one thread. `owners` are dimensions that number workers; `lanes` threads hold the rest
    together, `held` elements each in `registers`; `operand` is what an instruction takes it as."""

    buffer: Buffer
    owners: frozenset[int]
    lanes: int
    held: int
    registers: Registers
    operand: Operand | None = None
    intrinsic: Intrinsic | None = None
    run: int = 1
    """Without an operand: neighbours that one lane holds."""

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    @property
    def opaque(self) -> bool:
        """Whether nobody knows which lane holds which element: such a fragment is filled and stored as a whole."""
        return self.lanes > 1 and self.operand is not None and self.operand.fragment is None

    @property
    def mapped(self) -> bool:
        """Whether several lanes hold it together, and which of them has what is known."""
        return self.lanes > 1 and self.operand is not None and self.operand.fragment is not None

    @cached_property
    def owners_of_elements(self) -> tuple[Numbers, Numbers]:
        """The lane of each element, and the number of the element among that lane's (of a `mapped` register)."""
        assert self.operand is not None
        return Fragment(self.operand, self.lanes).owners

    @property
    def buffer_shape(self) -> tuple[int, int]:
        """Rows and columns of the operand."""
        assert self.operand is not None
        rows, columns = self.operand.shape
        return rows, columns

    @property
    def packed(self) -> bool:
        """Whether a register holds several elements."""
        return bool(self.registers.constraint) and self.field_bits < self.registers.bits

    @property
    def field_bits(self) -> int:
        """Of a register, for one element."""
        return self.dtype.bits if self.operand is None else self.operand.field_bits

    @property
    def in_fields(self) -> bool:
        """Whether elements are put into registers bit by bit."""
        return self.dtype.sub_byte or (self.operand is not None and self.operand.in_fields)

    @property
    def shift(self) -> int:
        """The bit of its field at which an element begins."""
        return 0 if self.operand is None else self.operand.shift

    @property
    def copies(self) -> int:
        """Lanes that hold each element."""
        return 1 if self.operand is None else self.operand.copies

    @property
    def type(self) -> str:
        """The C type of one register."""
        if self.operand is not None:
            return register_type(self.operand, self.registers)
        return element_type(self.dtype)

    def shape(self) -> tuple[int, ...]:
        """The array's dimensions: the buffer's own but for workers and elements, then registers."""
        outer = [n for d, n in enumerate(self.buffer.shape[:-1]) if d not in self.owners]
        return (*outer, self.registers.count)

    def outer(self, index: tuple[Index, ...]) -> list[Index]:
        """The subscripts that remain, elements aside."""
        return [i for d, i in enumerate(index[:-1]) if d not in self.owners]

    def element(self, v: Int, t: Int = Var(LANE)) -> Int:
        """The number of lane `t`'s element `v` in the whole operand (row-major)."""
        if self.lanes == 1:
            return v
        if self.operand is None:
            return (v // self.run * self.lanes + t) * self.run + v % self.run
        assert self.operand.fragment is not None
        number: Int = Const(0)
        for coordinate, extent in zip(self.operand.fragment.coordinates, self.operand.shape, strict=True):
            placed = substitute_int(coordinate, {"t": t, "v": v})
            number = number * extent + placed
        return number


def layouts(kernel: Kernel, body: tuple[Stmt, ...], lanes: int = 1) -> dict[str, Layout]:
    """The register buffers that the statements touch, by first use; `lanes` threads run what no worker does."""
    found = _Finder(kernel, tuple(statements(body)), threads_around(kernel, body, lanes))
    return {name: found.layout(name) for name in found.names}


class _Finder(HeldRegisters):
    def layout(self, name: str) -> Layout:
        buffer = self.kernel.buffers[name]
        owners = frozenset(
            d
            for d in range(len(buffer.shape) - 1)
            if all(index[d] in self.workers for index in self.uses[name])
        )
        known = self.operands.get(name)
        lanes = self.lanes.get(name, 1)
        if known is None:
            if buffer.shape[-1] == 1:  # each lane has it
                lanes = 1
            held = buffer.shape[-1] // lanes
            if buffer.shape[-1] % lanes:
                raise UsageError(f"{name}: {buffer.shape[-1]} elements do not divide among {lanes} threads")
            own = Registers(held, element_type(buffer.dtype), "")
            return Layout(buffer, owners, lanes, held, own, run=buffer.elements_per_thread or gcd(held, MOST_RUN))
        operand, held = replace(known.operand, dtype=buffer.dtype), known.operand.lane_elements(known.lanes)
        own = Registers(held, element_type(buffer.dtype), "")
        if known.intrinsic is not None and operand.dtype.bits == known.operand.dtype.bits:
            own = registers_of(known.operand, known.lanes)
        return Layout(buffer, owners, known.lanes, held, own, operand, known.intrinsic)
