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
from autosched.codegen.llvm.masks import Mask, Run, at_lanes, periodic, runs
from autosched.codegen.llvm.ops import Ops
from autosched.codegen.llvm.types import Val, memory, scalar, splat_text, suffix, typed, vector_text
from autosched.ir.dtypes import BOOL, DTYPES, DType
from autosched.ir.value import Index
from autosched.logic import Bool, Int, free_vars

_S64 = DTYPES["s64"]

IndexValue = Callable[[Index, Lane | None, Mask | None], Val]
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
        self._access: dict[tuple[int, Lane | None, bool], tuple[object, Access]] = {}

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
            access = self._element_access(index, buffer, lane)
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
        key = (id(index), lane, False)
        found = self._access.get(key)
        if found is None:
            found = (index, classify(index, shape, lane))  # holding the tuple keeps its id its own
            self._access[key] = found
        return found[1]

    def _element_access(self, index: tuple[Index, ...], buffer: Buffer, lane: Lane | None) -> Access:
        """The classification of the last subscript alone."""
        key = (id(index), lane, True)
        found = self._access.get(key)
        if found is None:
            found = (index, classify(index[-1:], buffer.shape[-1:], lane))
            self._access[key] = found
        return found[1]

    def place(self, buffer: Buffer, index: tuple[Index, ...], lane: Lane | None, mask: Mask | None) -> Place:
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

    def load(self, buffer: Buffer, index: tuple[Index, ...], lane: Lane | None, mask: Mask | None) -> Val:
        """`buffer[index]`; lanes that `mask` leaves out give zero and touch no memory."""
        if buffer.scope == "register":
            return self.read_register(buffer, index, lane)
        self._check_scope(buffer)
        place = self.place(buffer, index, lane, mask)
        dtype, element = buffer.dtype, memory(buffer.dtype)
        access = place.access
        n = lane.width if lane is not None else 1
        if access.kind == "uniform" and not place.steps:
            return self._guarded_scalar(place, dtype, mask, n)
        if lane is None:
            raise AssertionError("only a lane moves an access")
        if access.kind == "contiguous":
            kind = typed(element, n)
            if mask:
                function = self.out.declarations.need(
                    kind, f"llvm.masked.load.{suffix(element, n)}.p0", "ptr", f"<{n} x i1>", kind
                )
                text = f"call {kind} {function}(ptr align {place.align} {place.pointer}, <{n} x i1> {mask.name}, "
                raw = self.out.let(f"{text}{kind} zeroinitializer)")
            else:
                raw = self.out.let(f"load {kind}, ptr {place.pointer}, align {place.align}")
            return self._from_memory(raw, dtype, n)
        if access.kind == "group" and (mask is None or (mask.formula is not None and periodic(mask.formula, lane, access.size))):
            return self._load_group(place, dtype, lane, mask)
        if not place.steps and access.offsets is not None and (mask is None or mask.formula is not None):
            parts = runs(access.offsets)
            if 4 * len(parts) <= n and (mask is None or all(r.progression() for r in parts)):
                return self._load_runs(place, parts, dtype, lane, mask)
        if mask is not None:
            if mask.formula is None or place.steps or (n <= 16 and dtype.bytes >= 4):
                return self._gather(place, dtype, n, mask)
            return self._load_by_lane(buffer, index, dtype, lane, mask.formula)
        return self._load_each(place, dtype, n)

    def _gather(self, place: Place, dtype: DType, n: int, mask: Mask) -> Val:
        element = memory(dtype)
        kind = typed(element, n)
        pointers = self._pointers(place, dtype.bytes, n)
        function = self.out.declarations.need(
            kind, f"llvm.masked.gather.{suffix(element, n)}.v{n}p0", f"<{n} x ptr>", f"<{n} x i1>", kind
        )
        text = f"call {kind} {function}(<{n} x ptr> align {dtype.bytes} {pointers}, <{n} x i1> {mask.name}, "
        return self._from_memory(self.out.let(f"{text}{kind} zeroinitializer)"), dtype, n)

    def _load_each(self, place: Place, dtype: DType, n: int) -> Val:
        """Element by element, each address once."""
        element, loaded = memory(dtype), dict[str, str]()
        pointers = self._lane_pointers(place, dtype.bytes, n)
        for pointer in pointers:
            if pointer not in loaded:
                loaded[pointer] = self.out.let(f"load {element}, ptr {pointer}, align {dtype.bytes}")
        vector = "poison"
        for e, pointer in enumerate(pointers):
            vector = self.out.let(f"insertelement <{n} x {element}> {vector}, {element} {loaded[pointer]}, i64 {e}")
        return self._from_memory(vector, dtype, n)

    def _load_runs(self, place: Place, parts: list[Run], dtype: DType, lane: Lane, mask: Mask | None) -> Val:
        """A vector load for each run of neighbours, then shuffles: packing reads rows, not elements."""
        element, n = memory(dtype), lane.width
        length = max(len(r.lanes) for r in parts)
        vectors: list[str] = []
        picks = [0] * n
        for number, run in enumerate(parts):
            for p, takers in enumerate(run.lanes):
                for e in takers:
                    picks[e] = number * length + p
            pointer = place.pointer
            if run.offset:
                pointer = self.out.let(f"getelementptr i8, ptr {pointer}, i64 {run.offset * dtype.bytes}", "q")
            wanted: bool | str | Lanes = True
            count = len(run.lanes)
            if mask is not None:
                assert mask.formula is not None
                progression = run.progression()
                assert progression is not None
                formula = at_lanes(mask.formula, lane, *progression)
                wanted = self.indexing.mask(formula, Lane(lane.var, count) if count > 1 else None, 8 * dtype.bytes)
            vectors.append(self._widened(self._load_some(pointer, element, count, wanted, dtype.bytes), element, count, length))
        while len(vectors) > 1:
            if len(vectors) % 2:
                vectors.append("poison")
            indices = ", ".join(f"i32 {i}" for i in range(2 * length))
            kind = f"<{length} x {element}>"
            vectors = [
                self.out.let(f"shufflevector {kind} {a}, {kind} {b}, <{2 * length} x i32> <{indices}>")
                for a, b in zip(vectors[::2], vectors[1::2], strict=True)
            ]
            length *= 2
        chosen = ", ".join(f"i32 {i}" for i in picks)
        kind = f"<{length} x {element}>"
        return self._from_memory(
            self.out.let(f"shufflevector {kind} {vectors[0]}, {kind} poison, <{n} x i32> <{chosen}>"), dtype, n
        )

    def _widened(self, vector: str, element: str, count: int, length: int) -> str:
        if count == length:
            return vector
        kind = f"<{count} x {element}>"
        indices = ", ".join(f"i32 {i}" if i < count else "i32 poison" for i in range(length))
        return self.out.let(f"shufflevector {kind} {vector}, {kind} poison, <{length} x i32> <{indices}>")

    def _load_some(self, pointer: str, element: str, count: int, wanted: bool | str | Lanes, align: int) -> str:
        """`<count x element>` from memory where wanted, else zero."""
        kind = f"<{count} x {element}>"
        if wanted is True:
            return self.out.let(f"load {kind}, ptr {pointer}, align {align}")
        if wanted is False:
            return "zeroinitializer"
        mask = self.lane_mask(wanted, count) if count > 1 else f"<i1 {wanted}>"
        if count == 1:
            mask = self.out.let(f"insertelement <1 x i1> poison, i1 {wanted}, i64 0")
        function = self.out.declarations.need(
            kind, f"llvm.masked.load.v{count}{suffix(element, 1)}.p0", "ptr", f"<{count} x i1>", kind
        )
        text = f"call {kind} {function}(ptr align {align} {pointer}, <{count} x i1> {mask}, {kind} zeroinitializer)"
        return self.out.let(text)

    def _load_by_lane(
        self, buffer: Buffer, index: tuple[Index, ...], dtype: DType, lane: Lane, formula: Bool
    ) -> Val:
        """A loop over the lanes into a small array: what would be a branch for each lane is one, printed once."""
        out, element, n = self.out, memory(dtype), lane.width
        kind = typed(element, n)
        array = out.fresh("lanes")
        out.entry.insert(0, f"  {array} = alloca {kind}, align 64")
        out.line(f"  store {kind} zeroinitializer, ptr {array}, align 64")
        body, load, after, end = (out.label(x) for x in ("lane", "lane.load", "lane.next", "lane.end"))
        before, counter, following = out.block, out.fresh("lane"), out.fresh("lane.next")
        out.branch(body)
        out.start(body)
        out.line(f"  {counter} = phi i64 [ 0, %{before} ], [ {following}, %{after} ]")
        out.depth[counter] = out.enter()
        self.indexing.ranges[counter] = (0, n - 1)
        self.indexing.env[lane.var] = Linear(0, ((counter, 1),))
        wanted = self.indexing.condition(formula)
        out.branch_if(str(wanted).lower(), load, after)
        out.start(load)
        place = self.place(buffer, index, None, None)
        value = out.let(f"load {element}, ptr {place.pointer}, align {dtype.bytes}")
        slot = out.let(f"getelementptr {element}, ptr {array}, i64 {counter}", "q")
        out.line(f"  store {element} {value}, ptr {slot}, align {dtype.bytes}")
        out.branch(after)
        out.start(after)
        out.line(f"  {following} = add nuw nsw i64 {counter}, 1")
        out.branch_if(out.let(f"icmp ult i64 {following}, {n}", "c"), body, end)
        out.leave()
        del self.indexing.env[lane.var]
        out.start(end)
        return self._from_memory(out.let(f"load {kind}, ptr {array}, align 64"), dtype, n)

    def _guarded_scalar(self, place: Place, dtype: DType, mask: Mask | None, lanes: int) -> Val:
        element = memory(dtype)
        text = f"load {element}, ptr {place.pointer}, align {place.align}"
        if not mask:
            return self._from_memory(self.out.let(text), dtype, 1)
        function = self.out.declarations.need("i1", f"llvm.vector.reduce.or.v{lanes}i1", f"<{lanes} x i1>")
        wanted = self.out.let(f"call i1 {function}(<{lanes} x i1> {mask.name})")
        before, then, after = self.out.block, self.out.label("load"), self.out.label("loaded")
        self.out.branch_if(wanted, then, after)
        self.out.start(then)
        raw = self.out.let(text)
        self.out.branch(after)
        self.out.start(after)
        zero = "0" if element.startswith("i") else "0.0"
        return self._from_memory(
            self.out.let(f"phi {element} [ {raw}, %{then} ], [ {zero}, %{before} ]"), dtype, 1
        )

    def _load_group(self, place: Place, dtype: DType, lane: Lane, mask: Mask | None) -> Val:
        """A group of elements repeated over the register: one scalar load broadcast where the group is a word."""
        element, group, n = memory(dtype), place.access.size, lane.width
        wanted: bool | str | Lanes = True
        if mask is not None:
            assert mask.formula is not None
            wanted = self.indexing.mask(mask.formula, Lane(lane.var, group), 8 * dtype.bytes)
        bits, count = group * dtype.bytes * 8, n // group
        kind = f"<{group} x {element}>"
        if bits not in (16, 32, 64):
            raw = self._load_some(place.pointer, element, group, wanted, place.align)
            picked = ", ".join(f"i32 {e % group}" for e in range(n))
            return self._from_memory(
                self.out.let(f"shufflevector {kind} {raw}, {kind} poison, <{n} x i32> <{picked}>"), dtype, n
            )
        word = f"i{bits}"
        if wanted is True:
            raw = self.out.let(f"load {word}, ptr {place.pointer}, align {place.align}")
        else:
            raw = self.out.let(
                f"bitcast {kind} {self._load_some(place.pointer, element, group, wanted, place.align)} to {word}"
            )
        first = self.out.let(f"insertelement <{count} x {word}> poison, {word} {raw}, i64 0")
        words = f"<{count} x {word}>"
        raw = self.out.let(f"shufflevector {words} {first}, {words} poison, <{count} x i32> zeroinitializer")
        return self._from_memory(self.out.let(f"bitcast {words} {raw} to <{n} x {element}>"), dtype, n)

    def _from_memory(self, raw: str, dtype: DType, lanes: int) -> Val:
        value, stored = scalar(dtype), memory(dtype)
        if value != stored:
            raw = self.out.let(f"trunc {typed(stored, lanes)} {raw} to {typed(value, lanes)}")
        return Val(raw, dtype, lanes)

    # -- stores -------------------------------------------------------------------------------------------------

    def store(self, buffer: Buffer, index: tuple[Index, ...], lane: Lane | None, value: Val, mask: Mask | None) -> None:
        """`buffer[index] = value` in the lanes that `mask` keeps (None: all)."""
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
                where = f"ptr align {place.align} {place.pointer}, <{n} x i1> {mask.name}"
                self.out.line(f"  call void {function}({kind} {raw}, {where})")
            else:
                self.out.line(f"  store {kind} {raw}, ptr {place.pointer}, align {place.align}")
        elif mask:
            pointers = self._pointers(place, dtype.bytes, n)
            function = self.out.declarations.need(
                "void", f"llvm.masked.scatter.{suffix(element, n)}.v{n}p0", kind, f"<{n} x ptr>", f"<{n} x i1>"
            )
            where = f"<{n} x ptr> align {dtype.bytes} {pointers}, <{n} x i1> {mask.name}"
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
        place = self.place(buffer, index, None, None)
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


