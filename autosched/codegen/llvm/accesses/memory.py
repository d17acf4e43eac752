"""Reads and writes of a kernel's buffers: registers, vectors in memory, masked and scattered stores, prefetches."""

from __future__ import annotations

from autosched.codegen.llvm.accesses.addresses import Addresses
from autosched.codegen.llvm.accesses.loads import LoadPrinter
from autosched.codegen.llvm.accesses.pointers import LaneAddress, LaneAddresses
from autosched.codegen.llvm.emitter import Emitter
from autosched.codegen.llvm.machine.errors import UnsupportedError
from autosched.codegen.llvm.masks import Mask, only_lane
from autosched.codegen.llvm.ops import Ops
from autosched.codegen.llvm.registers import VectorRegisters
from autosched.codegen.llvm.types import Val, memory, scalar, suffix, typed
from autosched.codegen.tree.kernel import Buffer, Lane
from autosched.ir.value import Index
from autosched.logic import Int
from autosched.tiling.analysis.nontemporal import LEAST_BYTES

LINE_BYTES = 64
ONE = "!0"
"""The module's metadata of one 1, which marks such stores."""


class MemoryPrinter:
    """Accesses of one function to the kernel's `buffers`."""

    def __init__(self, emitter: Emitter, indexing: Addresses, ops: Ops, buffers: dict[str, Buffer]) -> None:
        self.out = emitter
        self.ops = ops
        self.buffers = buffers
        self.registers = VectorRegisters(emitter, indexing, ops)
        self.places = LaneAddresses(emitter, indexing, ops)
        self.loads = LoadPrinter(emitter, indexing, ops, self.places)

    def read(self, buffer: Buffer, index: tuple[Index, ...], lane: Lane | None, mask: Mask | None) -> Val:
        """`buffer[index]`; lanes that `mask` leaves out touch no memory."""
        if buffer.scope == "register":
            return self.registers.read(buffer, index, lane)
        self._check_scope(buffer)
        return self.loads.load(buffer, index, lane, mask)

    def write(
        self,
        buffer: Buffer,
        index: tuple[Index, ...],
        lane: Lane | None,
        value: Val,
        mask: Mask | None,
        stream: bool = False,
    ) -> None:
        """`buffer[index] = value` in the lanes that `mask` keeps (None: all); a register has no mask. `stream`: past
        the caches, where that is a whole vector."""
        if buffer.scope == "register":
            self.registers.write(buffer, index, lane, value)
            return
        self._check_scope(buffer)
        place = self.places.place(buffer, index, lane, mask)
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
            if mask and (only := only_lane(mask.name)) is not None:
                pointer = self.out.let(f"getelementptr {element}, ptr {place.pointer}, i64 {only}")
                part = self.out.let(f"extractelement {kind} {raw}, i64 {only}")
                self.out.line(f"  store {element} {part}, ptr {pointer}, align {dtype.bytes}")
            elif mask:
                function = self.out.declarations.need(
                    "void", f"llvm.masked.store.{suffix(element, n)}.p0", kind, "ptr", f"<{n} x i1>"
                )
                where = f"ptr align {place.align} {place.pointer}, <{n} x i1> {mask.name}"
                self.out.line(f"  call void {function}({kind} {raw}, {where})")
            elif stream and n * dtype.bytes >= LEAST_BYTES:
                self._stream(f"{kind} {raw}", place, n * dtype.bytes)
            else:
                self.out.line(f"  store {kind} {raw}, ptr {place.pointer}, align {place.align}")
        elif mask:
            pointers = self.places.pointers(place, dtype.bytes, n)
            function = self.out.declarations.need(
                "void", f"llvm.masked.scatter.{suffix(element, n)}.v{n}p0", kind, f"<{n} x ptr>", f"<{n} x i1>"
            )
            where = f"<{n} x ptr> align {dtype.bytes} {pointers}, <{n} x i1> {mask.name}"
            self.out.line(f"  call void {function}({kind} {raw}, {where})")
        else:
            for e, pointer in enumerate(self.places.lane_pointers(place, dtype.bytes, n)):
                part = self.out.let(f"extractelement {kind} {raw}, i64 {e}")
                self.out.line(f"  store {element} {part}, ptr {pointer}, align {dtype.bytes}")

    def _stream(self, value: str, place: LaneAddress, size: int) -> None:
        """A store past the caches, of a vector of `size` bytes, where it lies aligned: instructions ask for that, and
        arrays are known to start on an element only."""
        out = self.out
        align = min(size & -size, LINE_BYTES)
        past, plain, after = out.label("past"), out.label("plain"), out.label("stored")
        if place.align < align:
            address = out.let(f"ptrtoint ptr {place.pointer} to i64")
            rest = out.let(f"and i64 {address}, {align - 1}")
            out.branch_if(out.let(f"icmp eq i64 {rest}, 0", "c"), past, plain)
            out.start(plain)
            out.line(f"  store {value}, ptr {place.pointer}, align {place.align}")
            out.branch(after)
        else:
            out.branch(past)
        out.start(past)
        out.line(f"  store {value}, ptr {place.pointer}, align {align}, !nontemporal {ONE}")
        out.branch(after)
        out.start(after)

    def drain(self, fence: str | None) -> None:
        """Order what went past the caches before later stores: by LLVM's function `fence`, if the machine has one."""
        if fence is not None:
            self.out.line(f"  call void {self.out.declarations.need('void', fence)}()")
        else:
            self.out.line("  fence seq_cst")

    def _check_scope(self, buffer: Buffer) -> None:
        if buffer.scope not in ("global", "workspace", "packed"):
            raise UnsupportedError(
                f"buffer {buffer.name} is in {buffer.scope} memory, which a CPU kernel does not have"
            )

    def prefetch(self, buffer: Buffer, index: tuple[Int, ...], write: bool) -> None:
        """Ask for the line of `buffer[index]` in all cache levels; an address outside is harmless."""
        place = self.places.place(buffer, index, None, None)
        function = self.out.declarations.need(
            "void", "llvm.prefetch.p0", "ptr", "i32 immarg", "i32 immarg", "i32 immarg"
        )
        self.out.line(f"  call void {function}(ptr {place.pointer}, i32 {int(write)}, i32 3, i32 1)")
