"""Registers: one `alloca` per vector register, read and written whole, in parts, or shuffled.

SROA turns them into SSA values; their subscripts are constants once loops are unrolled.
"""

from __future__ import annotations

from dataclasses import dataclass

from autosched.codegen.analysis.access import classify
from autosched.codegen.llvm.accesses.addresses import Addresses
from autosched.codegen.llvm.emitter import Emitter
from autosched.codegen.llvm.machine.errors import UnsupportedError
from autosched.codegen.llvm.ops import Ops
from autosched.codegen.llvm.types import Val, scalar, typed
from autosched.codegen.tree.kernel import Buffer, Lane
from autosched.ir.value import Index
from autosched.logic import Int, Var


class VectorRegisters:
    """The vector registers of one function."""

    def __init__(self, emitter: Emitter, indexing: Addresses, ops: Ops) -> None:
        self.out = emitter
        self.indexing = indexing
        self.ops = ops
        self.known: dict[tuple[str, int], str] = {}  # alloca of each register (buffer, number) in use
        self._types: dict[str, str] = {}  # of the registers of each buffer
        self._known_subscripts: dict[tuple[int, int], _Subscripts] = {}
        self._held: dict[str, str] = {}
        """What registers hold by now in the block `_block`, as SSA values: no need to load it."""
        self._block = ""

    def load(self, buffer: Buffer, index: tuple[Int, ...]) -> str:
        """What one vector register holds, as an SSA value; `index` is all subscripts but the last."""
        return self.held(buffer, self.register(buffer, index))

    def held(self, buffer: Buffer, register: str) -> str:
        """What a register of the buffer holds."""
        known = self._here()
        found = known.get(register)
        if found is None:
            found = known[register] = self.out.let(f"load {self.register_type(buffer)}, ptr {register}")
        return found

    def hold(self, buffer: Buffer, register: str, value: str) -> None:
        """Let a register of the buffer hold an SSA value or a constant of its type."""
        self._here()[register] = value
        self.out.line(f"  store {self.register_type(buffer)} {value}, ptr {register}")

    def _here(self) -> dict[str, str]:
        """What is known of the block at hand: nothing where it has just begun."""
        if self._block != self.out.block:
            self._block = self.out.block
            self._held.clear()
        return self._held

    def register(self, buffer: Buffer, index: tuple[Int, ...]) -> str:
        """The alloca of one vector register, `index` being all subscripts but the last."""
        number = 0
        for part, extent in zip(index, buffer.shape[:-1], strict=True):
            value = self.indexing.env[part.name] if type(part) is Var else self.indexing.linear(part)
            if value.terms:
                raise UnsupportedError(
                    f"register buffer {buffer.name} is indexed by {part}", hint="unroll the loops that index registers"
                )
            number = number * extent + value.constant
        return self.numbered(buffer, number)

    def numbered(self, buffer: Buffer, number: int) -> str:
        """The alloca of a register by its row-major number."""
        key = (buffer.name, number)
        found = self.known.get(key)
        if found is None:
            found = f"%{buffer.name}.r{number}"
            size = max(1, buffer.shape[-1] * buffer.dtype.bytes)
            align = min(64, size & -size)
            self.out.entry.insert(0, f"  {found} = alloca {self.register_type(buffer)}, align {align}")
            self.known[key] = found
        return found

    def register_type(self, buffer: Buffer) -> str:
        found = self._types.get(buffer.name)
        if found is None:
            found = self._types[buffer.name] = typed(scalar(buffer.dtype), buffer.shape[-1])
        return found

    def read(self, buffer: Buffer, index: tuple[Index, ...], lane: Lane | None) -> Val:
        subscripts = self._subscripts(buffer, index, lane)
        whole, n = self.load(buffer, subscripts.outer), buffer.shape[-1]
        kind, dtype = self.register_type(buffer), buffer.dtype
        if n == 1:
            self._elements(buffer, index, lane, subscripts)
            return Val(whole, dtype)
        if subscripts.all:
            return Val(whole, dtype, n)
        elements = self._elements(buffer, index, lane, subscripts)
        if elements == list(range(n)):
            return Val(whole, dtype, n)
        if len(set(elements)) == 1:
            return Val(self.out.let(f"extractelement {kind} {whole}, i64 {elements[0]}"), dtype)
        picked = ", ".join(f"i32 {e}" for e in elements)
        m = len(elements)
        return Val(self.out.let(f"shufflevector {kind} {whole}, {kind} poison, <{m} x i32> <{picked}>"), dtype, m)

    def write(self, buffer: Buffer, index: tuple[Index, ...], lane: Lane | None, value: Val) -> None:
        subscripts = self._subscripts(buffer, index, lane)
        kind, n = self.register_type(buffer), buffer.shape[-1]
        register = self.register(buffer, subscripts.outer)
        if subscripts.all or (elements := self._elements(buffer, index, lane, subscripts)) == list(range(n)):
            self.hold(buffer, register, self.ops.splat(value, n).name)
            return
        whole = self.held(buffer, register)
        for e, number in enumerate(elements):
            part = value.text
            if value.lanes > 1:
                part = f"{scalar(value.dtype)} {self.out.let(f'extractelement {value.text}, i64 {e}')}"
            whole = self.out.let(f"insertelement {kind} {whole}, {part}, i64 {number}")
        self.hold(buffer, register, whole)

    def _elements(
        self, buffer: Buffer, index: tuple[Index, ...], lane: Lane | None, subscripts: _Subscripts
    ) -> list[int]:
        """The register's element number in each lane."""
        last = index[-1]
        if isinstance(last, Int) and subscripts.offsets is not None:
            base = self.indexing.at_lane(last, lane)
            if not base.terms:
                return [base.constant + o for o in subscripts.offsets]
        raise UnsupportedError(
            f"an element of register {buffer.name} is chosen by {last}", hint="unroll the loops that index registers"
        )

    def _subscripts(self, buffer: Buffer, index: tuple[Index, ...], lane: Lane | None) -> _Subscripts:
        """What subscripts say wherever they stand, found out once for each tuple of the tree."""
        key = id(index), id(lane)
        found = self._known_subscripts.get(key)
        if found is None:
            offsets = classify(index[-1:], buffer.shape[-1:], lane).offsets
            first = lane is not None and index[-1] == Var(lane.var)  # lane 0 has element 0
            every = first and offsets == tuple(range(buffer.shape[-1]))
            found = _Subscripts(index, lane, _outer(buffer, index), offsets, every)
            self._known_subscripts[key] = found
        return found


@dataclass(frozen=True, slots=True)
class _Subscripts:
    """Subscripts of a register's elements, by lane: which register (`outer`), how elements lie from that of lane 0, and
    whether they are `all` of its elements, in order. The tuple and the lane are kept, so that their ids stay their
    own."""

    index: tuple[Index, ...]
    lane: Lane | None
    outer: tuple[Int, ...]
    offsets: tuple[int, ...] | None
    all: bool


def _outer(buffer: Buffer, index: tuple[Index, ...]) -> tuple[Int, ...]:
    """Which register of the buffer is meant."""
    found = tuple(part for part in index[:-1] if isinstance(part, Int))
    if len(found) < len(index) - 1:
        raise UnsupportedError(f"a register of {buffer.name} is chosen by data", hint="keep the buffer in memory")
    return found
