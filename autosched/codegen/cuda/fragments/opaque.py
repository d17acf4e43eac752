"""Fragments of which nobody knows what lies where (WMMA): filled, loaded and stored as a whole, by the YAML's texts.

They are loaded straight from memory where lines are evenly apart and aligned as the manual asks. Otherwise, and for
everything else that an assignment does with them, they pass through a piece of shared memory of the warp's own: the
fragment is stored there, each lane works on its share of the elements, and the result is loaded again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace

from autosched.codegen.analysis.access import at_lane, flat_offset
from autosched.codegen.c_like.blocks import loop_head
from autosched.codegen.cuda.fragments.fragments import Layout
from autosched.codegen.cuda.fragments.gathered import WORD_BITS, gathered
from autosched.codegen.cuda.scope import CudaScope
from autosched.codegen.tree.kernel import Assign, Buffer
from autosched.ir.dtypes import DTYPES
from autosched.ir.value import Index, Literal, Read, Select, Value, blank, is_plain, map_value, walk
from autosched.ir.variables import value_vars
from autosched.logic import TRUE, Bool, Const, Int, Var, all_of, free_vars
from autosched.logic.walk import substitute_bool, substitute_int

LINE, PLACE = ".line", ".place"
LINE_BYTES, POINTER_BYTES = 16, 32
"""What lines are apart by multiples of, and what a fragment's first element is aligned to at most: shorter lines ask
for their own length (CUDA C++ programming guide, warp matrix functions; PTX ISA, wmma.load)."""
ROW, COLUMN = "row", "col"
_MAJOR = re.compile(rf"\.({ROW}|{COLUMN})\.")
Places = dict[tuple[str, object], Buffer]
"""Pieces that hold fragments, by the fragment's buffer and subscripts."""


@dataclass(frozen=True)
class OpaqueTile:
    """Where a fragment lies in memory: its first element, elements from line to line, which lines (`row`, `col`), and
    whether in shared memory."""

    address: str
    stride: int
    major: str
    shared: bool


class OpaquePrinter:
    """Prints assignments with opaque fragments; `shared_out` prints one of memory that a warp's lanes share."""

    def __init__(self, scope: CudaScope, shared_out: Callable[[Assign], Iterator[str]]) -> None:
        self.scope, self.shared_out = scope, shared_out

    def lines(self, stmt: Assign) -> Iterator[str]:
        assert stmt.lane is not None
        layout = self.scope.layouts.get(stmt.buffer)
        reads = [n for n in walk(stmt.value) if isinstance(n, Read) and n.tensor in self.scope.layouts]
        if layout is None:
            yield from self._to_memory(stmt, reads)
            return
        name = self.scope.array(layout, stmt.index)
        if stmt.lane.var not in value_vars(stmt.value) and stmt.valid == TRUE and isinstance(stmt.value, Literal):
            yield from self._filled(layout, name, stmt.value)
            return
        if (registers := self._by_register(stmt, layout, reads)) is not None:
            yield from registers
            return
        source, valid = _plain(stmt)
        if layout.dtype.sub_byte:  # a byte each in memory
            source = None
        if source is not None and source.dtype == layout.dtype and source.tensor not in self.scope.layouts:
            tile = self._tile(source.tensor, source.index, valid, stmt.lane.var, layout)
            if tile is not None and self._major(layout, tile.major) == tile.major and tile.address:
                yield self._load(layout, name, tile)
                return
        yield from self._staged(stmt, layout, name, reads)

    # -- texts of the YAML ---------------------------------------------------------------------------------------------

    def _call(self, layout: Layout, verb: str, major: str, shared: bool) -> str:
        assert layout.intrinsic is not None
        assert layout.operand is not None
        return self.scope.used.whole(layout.intrinsic, layout.operand.name, verb, major, shared)

    def _load(self, layout: Layout, name: str, tile: OpaqueTile) -> str:
        return f"{self._call(layout, 'load', tile.major, tile.shared)}({name}, {tile.address}, {tile.stride});"

    def _major(self, layout: Layout, wanted: str) -> str:
        """How the fragment was loaded first, or now is: the instruction has to know."""
        return self.scope.majors.setdefault(layout.buffer.name, wanted)

    # -- ways ----------------------------------------------------------------------------------------------------------

    def _filled(self, layout: Layout, name: str, value: Literal) -> Iterator[str]:
        self.scope.used.headers.add("fragment")
        text = self.scope.values.stored(value)
        if layout.packed:
            shifted = " | ".join(
                f"uint32_t({text}) << {k * layout.dtype.bits}" if k else f"uint32_t({text})"
                for k in range(32 // layout.dtype.bits)
            )
            text = "0u" if value.value == 0 else shifted
        yield f"fill<{layout.type}>({name}, {text});"

    def _by_register(self, stmt: Assign, layout: Layout, reads: list[Read]) -> list[str] | None:
        """Fragments of one operand are alike: what is done to elements one by one is done to registers."""
        assert stmt.lane is not None
        every = [n for n in walk(stmt.value) if isinstance(n, Read)]
        alike = all(n.tensor in self.scope.layouts and self._alike(n, layout) for n in every)
        if not every or not alike or layout.packed or stmt.valid != TRUE or len(every) != len(reads):
            return None
        if any(free_vars(i) & {stmt.lane.var} for n in every for i in n.index[:-1] if isinstance(i, Int)):
            return None
        lane, own = Var(stmt.lane.var), Var(".v")
        with self.scope.ranged({own.name: (0, layout.registers.count - 1)}):
            value = map_value(stmt.value, on_int=lambda e: own if e == lane else e)
            v = self.scope.spell(own.name)
            text = f"{self.scope.array(layout, stmt.index)}[{v}] = {self.scope.values.stored(value)};"
        return ["#pragma unroll", f"{loop_head('int', v, layout.registers.count)} {text}"]

    def _alike(self, read: Read, layout: Layout) -> bool:
        other = self.scope.layouts[read.tensor]
        return other.operand is not None and layout.operand is not None and other.operand.name == layout.operand.name

    def _to_memory(self, stmt: Assign, reads: list[Read]) -> Iterator[str]:
        assert stmt.lane is not None
        source, valid = _plain(stmt)
        if source is not None and source.tensor in self.scope.layouts and stmt.valid == TRUE and valid == TRUE:
            layout = self.scope.layouts[source.tensor]
            tile = self._tile(stmt.buffer, stmt.index, valid, stmt.lane.var, layout)
            if tile is not None and tile.address and layout.dtype == self.scope.buffer(stmt.buffer).dtype:
                name = self.scope.array(layout, source.index)
                yield f"{self._call(layout, 'store', tile.major, tile.shared)}({tile.address}, {name}, {tile.stride});"
                return
        places = yield from self._stored(reads)
        yield from self.shared_out(self._renamed(stmt, places))
        yield "__syncwarp();"

    def _staged(self, stmt: Assign, layout: Layout, name: str, reads: list[Read]) -> Iterator[str]:
        assert stmt.lane is not None
        places = yield from self._stored(reads)
        number = len(places)
        major = self._major(layout, _only_major(layout) or ROW)
        rows, columns = layout.buffer_shape
        value = stmt.value
        if stmt.valid != TRUE:
            value = Select(stmt.valid, value, blank(value.dtype), value.dtype)
        piece = self._piece(layout, number)
        if layout.dtype.sub_byte:
            filled = self._renamed(replace(stmt, value=value), places)
            yield from gathered(self.scope, filled.value, stmt.lane.var, piece, layout, self.warp, major == COLUMN)
        else:
            element: Int = Var(stmt.lane.var)
            if major == COLUMN:
                element = element % columns * rows + element // columns
            there = (self.warp, element)
            fill = replace(stmt, buffer=piece.name, index=there, value=value, valid=TRUE)
            yield from self.shared_out(self._renamed(fill, places))
        yield "__syncwarp();"
        tile = OpaqueTile(self._address(piece), rows if major == COLUMN else columns, major, True)
        yield self._load(layout, name, tile)
        yield "__syncwarp();"

    def _stored(self, reads: list[Read]) -> Generator[str, None, Places]:
        """Fragments that are read, each in a piece of its own; answers where (by buffer and subscripts)."""
        places: Places = {}
        for read in reads:
            layout = self.scope.layouts[read.tensor]
            key = read.tensor, read.index[:-1]
            if key in places:
                continue
            places[key] = piece = self._piece(layout, len(places))
            name = self.scope.array(layout, read.index)
            _, columns = layout.buffer_shape
            yield f"{self._call(layout, 'store', ROW, True)}({self._address(piece)}, {name}, {columns});"
        if places:
            yield "__syncwarp();"
        return places

    def _piece(self, layout: Layout, number: int) -> Buffer:
        """A warp's own piece of shared memory as large as the fragment, of words where elements are below a byte;
        addresses in it stay what they were printed as, so that each size has a name of its own."""
        dtype, elements = layout.dtype, layout.buffer.shape[-1]
        name = f"stage_{dtype}_{elements}" + (f"_{number + 1}" if number else "")
        if dtype.sub_byte:
            dtype, elements = DTYPES["u32"], elements * dtype.bits // WORD_BITS
        return self.scope.staging.setdefault(name, Buffer(name, dtype, (self.scope.warps, elements), "shared"))

    def _address(self, piece: Buffer) -> str:
        return self.scope.address(piece.name, (self.warp, Const(0)))

    @property
    def warp(self) -> Int:
        """This warp's number."""
        return Var(list(self.scope.workers)[-1])

    def _renamed(self, stmt: Assign, places: Places) -> Assign:
        """Reads of fragments as reads of their pieces."""

        def on_value(value: Value) -> Value:
            if isinstance(value, Read) and (value.tensor, value.index[:-1]) in places:
                piece = places[value.tensor, value.index[:-1]]
                return Read(piece.name, (self.warp, value.index[-1]), value.dtype)
            return value

        return replace(stmt, value=map_value(stmt.value, on_value))

    # -- straight from memory ------------------------------------------------------------------------------------------

    def _tile(self, name: str, index: tuple[Index, ...], valid: Bool, lane: str, layout: Layout) -> OpaqueTile | None:
        """The fragment's elements as lines of memory; None where they are no lines; no address where they are badly
        aligned, or where some are not there."""
        scope, buffer = self.scope, self.scope.buffer(name)
        rows, columns = layout.buffer_shape
        if not is_plain(index):
            return None
        element = Var(LINE) * columns + Var(PLACE)
        with scope.ranged({LINE: (0, rows - 1), PLACE: (0, columns - 1)}):
            there = scope.simplifier.condition(substitute_bool(valid, {lane: element})) == TRUE
            placed = at_lane(index, lane, element)
            total = scope.simplifier.sum(flat_offset(buffer, placed))
        down, across = total.terms.get(Var(LINE), 0), total.terms.get(Var(PLACE), 0)
        rest = [a for a in total.terms if a not in (Var(LINE), Var(PLACE))]
        if any(free_vars(a) & {LINE, PLACE} for a in rest) or 1 not in (down, across):
            return None
        stride, major = (down, ROW) if across == 1 else (across, COLUMN)
        size, shared = buffer.dtype.bytes, buffer.scope == "shared"
        first = {LINE: 0, PLACE: 0}
        start = tuple(substitute_int(i, first) for i in placed)
        line = (columns if major == ROW else rows) * size
        aligned = scope.simplifier.multiple(flat_offset(buffer, start)) * size % min(line, POINTER_BYTES) == 0
        if stride * size % LINE_BYTES or not aligned or stride <= 0 or not there:
            return OpaqueTile("", stride, major, shared)
        return OpaqueTile(scope.address(name, start), stride, major, shared)


def _only_major(layout: Layout) -> str | None:
    """How the fragment's lines have to lie, where the YAML's text leaves no choice."""
    assert layout.operand is not None
    assert layout.operand.opaque is not None
    found = _MAJOR.search(layout.operand.opaque.load)
    return found[1] if found else None


def _plain(stmt: Assign) -> tuple[Read | None, Bool]:
    """What moves as it is, and where it is real; None where something is computed."""
    value, valid = stmt.value, stmt.valid
    if isinstance(value, Select) and isinstance(value.condition, Bool) and isinstance(value.other, Literal):
        valid, value = all_of(valid, value.condition), value.then
    return (value if isinstance(value, Read) and is_plain(value.index) else None), valid
