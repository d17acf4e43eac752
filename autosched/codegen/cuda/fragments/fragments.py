"""Register buffers as arrays of one thread: which elements lane `t` holds, in which of its registers.

A register that an instruction of a warp takes is spread over its lanes by the fragment map of the YAML; registers that
share an assignment with one lie like it; those of single threads belong to a thread as they are. Dimensions that number
workers disappear: each worker has its own. Registers of a warp that no instruction takes are dealt out in runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import gcd

from autosched.codegen.cuda.fragments.lane_registers import Registers, lanes_of, register_type, registers_of
from autosched.codegen.cuda.grids import THREADS_OF
from autosched.codegen.cuda.types import element_type
from autosched.codegen.tree.kernel import WORKERS, Assign, Buffer, For, IntrinsicCall, Kernel, Stmt, bodies, statements
from autosched.errors import UsageError
from autosched.ir.dtypes import DType
from autosched.ir.value import Index, Read, walk
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
        return bool(self.registers.constraint) and self.dtype.bits < self.registers.bits

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
    found = _Finder(kernel, tuple(statements(body)), _lanes(kernel, body, lanes))
    return {name: found.layout(name) for name in found.names}


@dataclass(frozen=True)
class _Held:
    """What a register is held as: an operand, by so many lanes, of an instruction or for its own sake."""

    operand: Operand
    lanes: int
    intrinsic: Intrinsic | None = None


@dataclass
class _Finder:
    kernel: Kernel
    body: tuple[Stmt, ...]
    lanes: dict[str, int]  # threads of the workers that use a buffer
    names: list[str] = field(default_factory=list)
    operands: dict[str, _Held] = field(default_factory=dict)
    uses: dict[str, list[tuple[Index, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        made = {n: b.fragment for n, b in self.kernel.buffers.items() if b.fragment is not None}
        self.operands |= {n: _Held(f.operand, f.lanes) for n, f in made.items()}
        self.workers: set[Index] = {Var(s.var) for s in self.body if isinstance(s, For) and s.kind in WORKERS}
        together: list[set[str]] = []
        for stmt in self.body:
            mine: set[str] = set()
            for name, index in _places(stmt):
                if self.kernel.buffers[name].scope != "register":
                    continue
                if name not in self.uses:
                    self.names.append(name)
                self.uses.setdefault(name, []).append(index)
                if isinstance(stmt, Assign) and stmt.lane is not None and index[-1] == Var(stmt.lane.var):
                    mine.add(name)  # others lie as they like
            if isinstance(stmt, IntrinsicCall):
                for operand, ref in stmt.operands.items():
                    if ref.lane is None:
                        own = stmt.intrinsic.operands[operand]
                        self.operands.setdefault(ref.buffer, _Held(own, lanes_of(stmt.intrinsic), stmt.intrinsic))
            elif isinstance(stmt, Assign) and stmt.lane is not None and len(mine) > 1:
                together.append(mine)
        changed = True
        while changed:
            changed = False
            for group in together:
                known = next((self.operands[n] for n in sorted(group) if n in self.operands), None)
                if known is None:
                    continue
                elements = known.operand.elements
                for name in group - self.operands.keys():
                    if self.kernel.buffers[name].shape[-1] == elements:
                        self.operands[name] = known
                        changed = True

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
        operand, held = replace(known.operand, dtype=buffer.dtype), known.operand.elements // known.lanes
        own = Registers(held, element_type(buffer.dtype), "")
        if known.intrinsic is not None and operand.dtype.bits == known.operand.dtype.bits:
            own = registers_of(known.operand, known.lanes)
        return Layout(buffer, owners, known.lanes, held, own, operand, known.intrinsic)


def _lanes(kernel: Kernel, body: tuple[Stmt, ...], lanes: int) -> dict[str, int]:
    """Threads of the workers around the statements that name each register buffer."""
    found: dict[str, int] = {}
    for stmt in body:
        here = THREADS_OF.get(stmt.kind, lanes) if isinstance(stmt, For) else lanes
        for name, _ in _places(stmt):
            found[name] = max(here, found.get(name, 1))
        for inner in bodies(stmt):
            for name, n in _lanes(kernel, inner, here).items():
                found[name] = max(n, found.get(name, 1))
    return found


def _places(stmt: Stmt) -> Iterator[tuple[str, tuple[Index, ...]]]:
    """Buffers that a statement itself names, with subscripts; a whole register gets a last subscript of 0."""
    match stmt:
        case Assign():
            yield stmt.buffer, stmt.index
            yield from ((n.tensor, n.index) for n in walk(stmt.value) if isinstance(n, Read))
        case IntrinsicCall():
            yield from ((r.buffer, (*r.index, Const(0)) if r.lane is None else r.index) for r in stmt.operands.values())
