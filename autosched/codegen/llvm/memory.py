"""Loads and stores: vector, splat, group, masked, gathered, and registers.

A register buffer is one `alloca` per vector register, which SROA turns into SSA values; its subscripts are constants
once loops are unrolled. An access to memory follows its lane classification (`codegen.access`); masked-off lanes touch
no memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from autosched.codegen.access import Access, classify
from autosched.codegen.kernel import Buffer, Lane
from autosched.codegen.llvm.emitter import Emitter
from autosched.codegen.llvm.errors import UnsupportedError
from autosched.codegen.llvm.indexing import Indexing, Lanes, Linear
from autosched.codegen.llvm.ops import Ops
from autosched.codegen.llvm.types import Val, memory, scalar, splat_text, suffix, typed, vector_text
from autosched.ir.dtypes import BOOL, DTYPES, DType
from autosched.ir.value import Index
from autosched.logic import Int, free_vars

_S64 = DTYPES["s64"]

IndexValue = Callable[[Index, "Lane | None", str], Val]
"""Evaluates a data-dependent subscript: (value, lane, mask) to an s64 value."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an access goes: a pointer to lane 0's element, how lanes move from it, its alignment in bytes.

    `steps` is an i64 vector of element offsets, where the lanes' offsets are no constants.
    """

    pointer: str
    access: Access
    align: int
    steps: str = ""


class Memory:
    """Accesses of one function to the kernel's `buffers`."""

    def __init__(self, emitter: Emitter, indexing: Indexing, ops: Ops, buffers: dict[str, Buffer]) -> None:
        self.out = emitter
        self.indexing = indexing
        self.ops = ops
        self.buffers = buffers
        self.index_value: IndexValue | None = None
        self._registers: dict[tuple[str, int], str] = {}
        self._access: dict[tuple[int, Lane | None], tuple[object, Access]] = {}

    # -- registers ----------------------------------------------------------------------------------------------

    def register(self, buffer: Buffer, index: tuple[Int, ...]) -> str:
        """The alloca of one vector register, `index` being all subscripts but the last."""
        number = 0
        for part, extent in zip(index, buffer.shape[:-1], strict=True):
            value = self.indexing.linear(part)
            if value.terms:
                raise UnsupportedError(
                    f"register buffer {buffer.name} is indexed by {part}", hint="unroll the loops that index registers"
                )
            number = number * extent + value.constant
        key = (buffer.name, number)
        found = self._registers.get(key)
        if found is None:
            found = f"%{buffer.name}.r{number}"
            size = max(1, buffer.shape[-1] * buffer.dtype.bytes)
            align = min(64, size & -size)
            self.out.entry.insert(0, f"  {found} = alloca {self.register_type(buffer)}, align {align}")
            self._registers[key] = found
        return found

    @staticmethod
    def register_type(buffer: Buffer) -> str:
        return typed(scalar(buffer.dtype), buffer.shape[-1])

    def _elements(self, buffer: Buffer, index: tuple[Index, ...], lane: Lane | None) -> list[int]:
        """The register's element number in each lane."""
        last = index[-1]
        if isinstance(last, Int):
            access = self.classified(index[-1:], buffer.shape[-1:], lane)
            base = self.indexing.at_lane(last, lane)
            if access.offsets is not None and not base.terms:
                return [base.constant + o for o in access.offsets]
        raise UnsupportedError(
            f"an element of register {buffer.name} is chosen by {last}", hint="unroll the loops that index registers"
        )

    def read_register(self, buffer: Buffer, index: tuple[Index, ...], lane: Lane | None) -> Val:
        register, n = self.register(buffer, index[:-1]), buffer.shape[-1]  # type: ignore[arg-type]
        elements, dtype = self._elements(buffer, index, lane), buffer.dtype
        kind = self.register_type(buffer)
        whole = self.out.let(f"load {kind}, ptr {register}")
        if n == 1:
            return Val(whole, dtype)
        if elements == list(range(n)):
            return Val(whole, dtype, n)
        if len(set(elements)) == 1:
            return Val(self.out.let(f"extractelement {kind} {whole}, i64 {elements[0]}"), dtype)
        picked = ", ".join(f"i32 {e}" for e in elements)
        m = len(elements)
        return Val(self.out.let(f"shufflevector {kind} {whole}, {kind} poison, <{m} x i32> <{picked}>"), dtype, m)

    def write_register(self, buffer: Buffer, index: tuple[Index, ...], lane: Lane | None, value: Val) -> None:
        register, n = self.register(buffer, index[:-1]), buffer.shape[-1]  # type: ignore[arg-type]
        elements, kind = self._elements(buffer, index, lane), self.register_type(buffer)
        if elements != list(range(n)):
            whole = self.out.let(f"load {kind}, ptr {register}")
            for e, number in enumerate(elements):
                part = value.text
                if value.lanes > 1:
                    part = f"{scalar(value.dtype)} {self.out.let(f'extractelement {value.text}, i64 {e}')}"
                whole = self.out.let(f"insertelement {kind} {whole}, {part}, i64 {number}")
            self.out.line(f"  store {kind} {whole}, ptr {register}")
            return
        self.out.line(f"  store {self.ops.splat(value, n).text}, ptr {register}")

    # -- places -------------------------------------------------------------------------------------------------

    def classified(self, index: tuple[Index, ...], shape: tuple[int, ...], lane: Lane | None) -> Access:
        """`classify`, once for each subscript tuple of the tree."""
        if len(index) == 1:
            return classify(index, shape, lane)  # a slice of a tuple: its id is not its own
        key = (id(index), lane)
        found = self._access.get(key)
        if found is None:
            found = (index, classify(index, shape, lane))
            self._access[key] = found
        return found[1]

    def place(self, buffer: Buffer, index: tuple[Index, ...], lane: Lane | None, mask: str) -> Place:
        """The place of `buffer[index]`; data-dependent subscripts are evaluated here, under `mask`."""
        size = buffer.dtype.bytes
        access = self.classified(index, buffer.shape, lane)
        offset = self.indexing.offset(buffer, index, lane) if buffer.shape else Linear(0)
        align = self.indexing.alignment(buffer, offset, size)
        pointer = self.indexing.pointer(f"%{buffer.name}", offset, size)
        steps = ""
        stride = buffer.elements
        for part, extent in zip(index, buffer.shape, strict=True):
            stride //= extent
            if isinstance(part, Int):
                if access.offsets is None and lane is not None:
                    moved = self._moved(part, lane, stride)
                    steps = self._add_steps(steps, moved, lane.width) if moved else steps
                continue
            assert self.index_value is not None
            value, align = self.index_value(part, lane, mask), size
            if value.lanes == 1:
                bytes_ = self.out.let(f"mul i64 {value.name}, {stride * size}")
                pointer = self.out.let(f"getelementptr i8, ptr {pointer}, i64 {bytes_}", "q")
            else:
                scaled = self.out.let(f"mul {value.text}, {splat_text('i64', str(stride), value.lanes)}")
                steps = self._add_steps(steps, scaled, value.lanes)
        return Place(pointer, access, align, steps)

    def _moved(self, part: Int, lane: Lane, stride: int) -> str:
        """How a subscript moves from lane 0, times its stride, as a vector; empty where it does not."""
        if lane.var not in free_vars(part):
            return ""
        kind = f"<{lane.width} x i64>"
        first = self.ops.splat(Val(self.indexing.operand(self.indexing.at_lane(part, lane)), _S64), lane.width)
        moved = self.out.let(f"sub {kind} {self.indexing.lanes(part, lane)}, {first.name}")
        return self.out.let(f"mul {kind} {moved}, {splat_text('i64', str(stride), lane.width)}")

    def _add_steps(self, a: str, b: str, lanes: int) -> str:
        return self.out.let(f"add <{lanes} x i64> {a}, {b}") if a else b

    def _steps(self, place: Place) -> str:
        """Element offsets of all lanes as an i64 vector."""
        if place.steps:
            return place.steps
        assert place.access.offsets is not None
        return vector_text("i64", [str(o) for o in place.access.offsets])

    def _pointers(self, place: Place, size: int, lanes: int) -> str:
        """A vector of each lane's pointer."""
        steps = self._steps(place)
        if size > 1:
            steps = self.out.let(f"mul <{lanes} x i64> {steps}, {splat_text('i64', str(size), lanes)}")
        return self.out.let(f"getelementptr i8, ptr {place.pointer}, <{lanes} x i64> {steps}", "q")

    def _lane_pointers(self, place: Place, size: int, lanes: int) -> list[str]:
        """Each lane's pointer; lanes at one constant offset share it."""
        if not place.steps and place.access.offsets is not None:
            names: dict[int, str] = {0: place.pointer}
            for o in place.access.offsets:
                if o not in names:
                    names[o] = self.out.let(f"getelementptr i8, ptr {place.pointer}, i64 {o * size}", "q")
            return [names[o] for o in place.access.offsets]
        vector = self._pointers(place, size, lanes)
        return [self.out.let(f"extractelement <{lanes} x ptr> {vector}, i64 {e}", "q") for e in range(lanes)]

    # -- loads --------------------------------------------------------------------------------------------------

    def load(self, buffer: Buffer, index: tuple[Index, ...], lane: Lane | None, mask: str) -> Val:
        """`buffer[index]`; lanes that `mask` (an i1 vector, or empty) leaves out give zero and touch no memory."""
        if buffer.scope == "register":
            return self.read_register(buffer, index, lane)
        self._check_scope(buffer)
        place = self.place(buffer, index, lane, mask)
        dtype, element = buffer.dtype, memory(buffer.dtype)
        access = place.access
        n = lane.width if lane is not None else 1
        if access.kind == "uniform" and not place.steps:
            return self._guarded_scalar(place, dtype, mask, n)
        if access.kind == "contiguous":
            kind = typed(element, n)
            if mask:
                function = self.out.declarations.need(
                    kind, f"llvm.masked.load.{suffix(element, n)}.p0", "ptr", f"<{n} x i1>", kind
                )
                text = f"call {kind} {function}(ptr align {place.align} {place.pointer}, <{n} x i1> {mask}, "
                raw = self.out.let(f"{text}{kind} zeroinitializer)")
            else:
                raw = self.out.let(f"load {kind}, ptr {place.pointer}, align {place.align}")
            return self._from_memory(raw, dtype, n)
        if mask:
            kind = typed(element, n)
            pointers = self._pointers(place, dtype.bytes, n)
            function = self.out.declarations.need(
                kind, f"llvm.masked.gather.{suffix(element, n)}.v{n}p0", f"<{n} x ptr>", f"<{n} x i1>", kind
            )
            text = f"call {kind} {function}(<{n} x ptr> align {dtype.bytes} {pointers}, <{n} x i1> {mask}, "
            return self._from_memory(self.out.let(f"{text}{kind} zeroinitializer)"), dtype, n)
        if access.kind == "group":
            return self._load_group(place, dtype, n)
        loaded: dict[str, str] = {}
        for pointer in (pointers_ := self._lane_pointers(place, dtype.bytes, n)):
            if pointer not in loaded:
                loaded[pointer] = self.out.let(f"load {element}, ptr {pointer}, align {dtype.bytes}")
        vector = "poison"
        for e, pointer in enumerate(pointers_):
            vector = self.out.let(f"insertelement <{n} x {element}> {vector}, {element} {loaded[pointer]}, i64 {e}")
        return self._from_memory(vector, dtype, n)

    def _guarded_scalar(self, place: Place, dtype: DType, mask: str, lanes: int) -> Val:
        element = memory(dtype)
        text = f"load {element}, ptr {place.pointer}, align {place.align}"
        if not mask:
            return self._from_memory(self.out.let(text), dtype, 1)
        function = self.out.declarations.need("i1", f"llvm.vector.reduce.or.v{lanes}i1", f"<{lanes} x i1>")
        wanted = self.out.let(f"call i1 {function}(<{lanes} x i1> {mask})")
        before, then, after = self.out.block, self.out.label("load"), self.out.label("loaded")
        self.out.branch_if(wanted, then, after)
        self.out.start(then)
        raw = self.out.let(text)
        self.out.branch(after)
        self.out.start(after)
        zero = "zeroinitializer" if element.startswith("i") else "0.0"
        zero = "0" if element.startswith("i") else zero
        return self._from_memory(
            self.out.let(f"phi {element} [ {raw}, %{then} ], [ {zero}, %{before} ]"), dtype, 1
        )

    def _load_group(self, place: Place, dtype: DType, n: int) -> Val:
        """A group of elements repeated over the register: one scalar load broadcast where the group is a word."""
        element, group = memory(dtype), place.access.size
        bits = group * dtype.bytes * 8
        if bits in (16, 32, 64):
            word, count = f"i{bits}", n // group
            raw = self.out.let(f"load {word}, ptr {place.pointer}, align {place.align}")
            if count > 1:
                first = self.out.let(f"insertelement <{count} x {word}> poison, {word} {raw}, i64 0")
                raw = self.out.let(
                    f"shufflevector <{count} x {word}> {first}, <{count} x {word}> poison, <{count} x i32> zeroinitializer"
                )
            source = typed(word, count)
            return self._from_memory(self.out.let(f"bitcast {source} {raw} to <{n} x {element}>"), dtype, n)
        raw = self.out.let(f"load <{group} x {element}>, ptr {place.pointer}, align {place.align}")
        picked = ", ".join(f"i32 {e % group}" for e in range(n))
        kind = f"<{group} x {element}>"
        return self._from_memory(
            self.out.let(f"shufflevector {kind} {raw}, {kind} poison, <{n} x i32> <{picked}>"), dtype, n
        )

    def _from_memory(self, raw: str, dtype: DType, lanes: int) -> Val:
        value, stored = scalar(dtype), memory(dtype)
        if value != stored:
            raw = self.out.let(f"trunc {typed(stored, lanes)} {raw} to {typed(value, lanes)}")
        return Val(raw, dtype, lanes)

    # -- stores -------------------------------------------------------------------------------------------------

    def store(self, buffer: Buffer, index: tuple[Index, ...], lane: Lane | None, value: Val, mask: str) -> None:
        """`buffer[index] = value` in the lanes that `mask` keeps (empty: all)."""
        self._check_scope(buffer)
        place = self.place(buffer, index, lane, mask)
        dtype, element = buffer.dtype, memory(buffer.dtype)
        n = lane.width if lane is not None else 1
        value = self.ops.splat(value, n)
        kind, raw = typed(element, n), value.name
        if scalar(dtype) != element:
            raw = self.out.let(f"zext {value.text} to {kind}")
        if n == 1 and not place.steps:
            if mask:
                raise UnsupportedError(f"a masked store to {buffer.name} without lanes")
            self.out.line(f"  store {element} {raw}, ptr {place.pointer}, align {place.align}")
        elif place.access.kind == "contiguous":
            if mask:
                function = self.out.declarations.need(
                    "void", f"llvm.masked.store.{suffix(element, n)}.p0", kind, "ptr", f"<{n} x i1>"
                )
                where = f"ptr align {place.align} {place.pointer}, <{n} x i1> {mask}"
                self.out.line(f"  call void {function}({kind} {raw}, {where})")
            else:
                self.out.line(f"  store {kind} {raw}, ptr {place.pointer}, align {place.align}")
        elif mask:
            pointers = self._pointers(place, dtype.bytes, n)
            function = self.out.declarations.need(
                "void", f"llvm.masked.scatter.{suffix(element, n)}.v{n}p0", kind, f"<{n} x ptr>", f"<{n} x i1>"
            )
            where = f"<{n} x ptr> align {dtype.bytes} {pointers}, <{n} x i1> {mask}"
            self.out.line(f"  call void {function}({kind} {raw}, {where})")
        else:
            for e, pointer in enumerate(self._lane_pointers(place, dtype.bytes, n)):
                part = self.out.let(f"extractelement {kind} {raw}, i64 {e}")
                self.out.line(f"  store {element} {part}, ptr {pointer}, align {dtype.bytes}")

    def _check_scope(self, buffer: Buffer) -> None:
        if buffer.scope not in ("global", "workspace", "packed"):
            raise UnsupportedError(f"buffer {buffer.name} is in {buffer.scope} memory, which a CPU kernel does not have")

    def prefetch(self, buffer: Buffer, index: tuple[Int, ...], write: bool) -> None:
        """Ask for the line of `buffer[index]` in all cache levels; an address outside is harmless."""
        place = self.place(buffer, index, None, "")
        function = self.out.declarations.need(
            "void", "llvm.prefetch.p0", "ptr", "i32 immarg", "i32 immarg", "i32 immarg"
        )
        self.out.line(f"  call void {function}(ptr {place.pointer}, i32 {int(write)}, i32 3, i32 1)")

    def lane_mask(self, mask: bool | str | Lanes, lanes: int) -> str:
        """An i1 vector of a decided or uniform mask."""
        if isinstance(mask, bool):
            return splat_text("i1", str(mask).lower(), lanes)
        if isinstance(mask, Lanes):
            return mask.name
        return self.ops.splat(Val(mask, BOOL), lanes).name


