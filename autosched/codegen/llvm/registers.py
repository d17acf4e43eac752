"""Registers: one `alloca` per vector register, read and written whole, in parts, or shuffled.

SROA turns them into SSA values; their subscripts are constants once loops are unrolled.
"""

from __future__ import annotations

from autosched.codegen.access import Access, classify
from autosched.codegen.kernel import Buffer, Lane
from autosched.codegen.llvm.addresses import Addresses
from autosched.codegen.llvm.emitter import Emitter
from autosched.codegen.llvm.errors import UnsupportedError
from autosched.codegen.llvm.ops import Ops
from autosched.codegen.llvm.types import Val, scalar, typed
from autosched.ir.value import Index
from autosched.logic import Int, Var


class Registers:
    """The vector registers of one function."""

    def __init__(self, emitter: Emitter, indexing: Addresses, ops: Ops) -> None:
        self.out = emitter
        self.indexing = indexing
        self.ops = ops
        self.known: dict[tuple[str, int], str] = {}  # alloca of each register (buffer, number) in use
        self._types: dict[str, str] = {}  # of the registers of each buffer
        self._access: dict[tuple[int, Lane | None], tuple[object, Access]] = {}
        self._held: dict[str, str] = {}
        """What registers hold by now in the block `_block`, as SSA values: no need to load it."""
        self._block = ""

    def load(self, buffer: Buffer, index: tuple[Int, ...]) -> str:
        """What one vector register holds, as an SSA value; `index` is all subscripts but the last."""
        register, held = self.register(buffer, index), self._here()
        found = held.get(register)
        if found is None:
            found = held[register] = self.out.let(f"load {self.register_type(buffer)}, ptr {register}")
        return found

    def store(self, buffer: Buffer, index: tuple[Int, ...], value: str) -> None:
        """Let one vector register hold an SSA value or a constant of its type."""
        register = self.register(buffer, index)
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

    def _elements(self, buffer: Buffer, index: tuple[Index, ...], lane: Lane | None) -> list[int]:
        """The register's element number in each lane."""
        last = index[-1]
        if isinstance(last, Int):
            access = self._element_access(index, buffer, lane)
            base = self.indexing.at_lane(last, lane)
            if access.offsets is not None and not base.terms:
                return [base.constant + o for o in access.offsets]
        raise UnsupportedError(
            f"an element of register {buffer.name} is chosen by {last}", hint="unroll the loops that index registers"
        )

    def read(self, buffer: Buffer, index: tuple[Index, ...], lane: Lane | None) -> Val:
        whole, n = self.load(buffer, _outer(buffer, index)), buffer.shape[-1]
        elements, dtype = self._elements(buffer, index, lane), buffer.dtype
        kind = self.register_type(buffer)
        if n == 1:
            return Val(whole, dtype)
        if elements == list(range(n)):
            return Val(whole, dtype, n)
        if len(set(elements)) == 1:
            return Val(self.out.let(f"extractelement {kind} {whole}, i64 {elements[0]}"), dtype)
        picked = ", ".join(f"i32 {e}" for e in elements)
        m = len(elements)
        return Val(self.out.let(f"shufflevector {kind} {whole}, {kind} poison, <{m} x i32> <{picked}>"), dtype, m)

    def write(self, buffer: Buffer, index: tuple[Index, ...], lane: Lane | None, value: Val) -> None:
        outer = _outer(buffer, index)
        elements, kind, n = self._elements(buffer, index, lane), self.register_type(buffer), buffer.shape[-1]
        if elements != list(range(n)):
            whole = self.load(buffer, outer)
            for e, number in enumerate(elements):
                part = value.text
                if value.lanes > 1:
                    part = f"{scalar(value.dtype)} {self.out.let(f'extractelement {value.text}, i64 {e}')}"
                whole = self.out.let(f"insertelement {kind} {whole}, {part}, i64 {number}")
            self.store(buffer, outer, whole)
            return
        self.store(buffer, outer, self.ops.splat(value, n).name)

    def _element_access(self, index: tuple[Index, ...], buffer: Buffer, lane: Lane | None) -> Access:
        """The classification of the last subscript alone."""
        key = (id(index), lane)
        found = self._access.get(key)
        if found is None:
            found = (index, classify(index[-1:], buffer.shape[-1:], lane))
            self._access[key] = found
        return found[1]


def _outer(buffer: Buffer, index: tuple[Index, ...]) -> tuple[Int, ...]:
    """Which register of the buffer is meant."""
    found = tuple(part for part in index[:-1] if isinstance(part, Int))
    if len(found) < len(index) - 1:
        raise UnsupportedError(f"a register of {buffer.name} is chosen by data", hint="keep the buffer in memory")
    return found
