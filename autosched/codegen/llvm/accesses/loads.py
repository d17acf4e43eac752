"""Loads of one vector: each kind of access has its own way, and lanes that are masked off touch no memory."""

from __future__ import annotations

from autosched.codegen.analysis.lane_conditions import at_lanes, periodic
from autosched.codegen.analysis.runs import VectorRun, overlapping, runs, windows
from autosched.codegen.analysis.word_groups import WordGroups, groups_of
from autosched.codegen.llvm.accesses.addresses import Addresses
from autosched.codegen.llvm.accesses.indexing import Linear
from autosched.codegen.llvm.accesses.pointers import LaneAddress, LaneAddresses
from autosched.codegen.llvm.emitter import Emitter
from autosched.codegen.llvm.lanes import Lanes
from autosched.codegen.llvm.masks import Mask
from autosched.codegen.llvm.ops import Ops
from autosched.codegen.llvm.types import Val, memory, scalar, splat_text, suffix, typed
from autosched.codegen.tree.kernel import Buffer, Lane
from autosched.ir.dtypes import BOOL, DType
from autosched.ir.value import Index
from autosched.logic import Bool


class LoadPrinter:
    """Loads at the current place of a function."""

    def __init__(self, emitter: Emitter, indexing: Addresses, ops: Ops, places: LaneAddresses) -> None:
        self.out = emitter
        self.indexing = indexing
        self.ops = ops
        self.places = places

    def load(self, buffer: Buffer, index: tuple[Index, ...], lane: Lane | None, mask: Mask | None) -> Val:
        """`buffer[index]`; lanes that `mask` leaves out give zero and touch no memory."""
        if mask is None or mask.formula is not None:
            words = self.words(buffer, index, lane, None if mask is None else mask.formula)
            if words is not None:
                return words
        place = self.places.place(buffer, index, lane, mask)
        dtype, element = buffer.dtype, memory(buffer.dtype)
        access = place.access
        n = lane.width if lane is not None else 1
        if access.kind == "uniform" and not place.steps:
            return self._guarded_scalar(place, dtype, None if self.indexing.inside(buffer, index, lane) else mask, n)
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
        if access.kind == "group":
            formula = None if mask is None else mask.formula
            if mask is None or (formula is not None and periodic(formula, lane, access.size)):
                return self._load_group(place, dtype, lane, mask)
        if not place.steps and access.offsets is not None and (mask is None or mask.formula is not None):
            parts = (windows(access.offsets) if mask is None else []) or runs(access.offsets)
            if mask is None:
                parts = [part for run in parts for part in overlapping(run)]
            if 4 * len(parts) <= n and (mask is None or all(r.progression() for r in parts)):
                return self._load_runs(place, parts, dtype, lane, mask)
        if mask is not None:
            if mask.formula is None or place.steps or (n <= 16 and dtype.bytes >= 4):
                return self._gather(place, dtype, n, mask)
            return self._load_by_lane(buffer, index, dtype, lane, mask.formula)
        return self._load_each(place, dtype, n)

    def _gather(self, place: LaneAddress, dtype: DType, n: int, mask: Mask) -> Val:
        return self._from_memory(self._gathered(place, dtype, memory(dtype), n, mask.name), dtype, n)

    def _gathered(self, place: LaneAddress, dtype: DType, element: str, n: int, mask: str) -> str:
        """What lies at the lanes' elements, taken as vector of `element`."""
        kind = typed(element, n)
        pointers = self.places.pointers(place, dtype.bytes, n)
        function = self.out.declarations.need(
            kind, f"llvm.masked.gather.{suffix(element, n)}.v{n}p0", f"<{n} x ptr>", f"<{n} x i1>", kind
        )
        text = f"call {kind} {function}(<{n} x ptr> align {dtype.bytes} {pointers}, <{n} x i1> {mask}, "
        return self.out.let(f"{text}{kind} zeroinitializer)")

    def _load_each(self, place: LaneAddress, dtype: DType, n: int) -> Val:
        """Element by element, each address once."""
        return self._from_memory(self._each(place, dtype, memory(dtype), n), dtype, n)

    def _each(self, place: LaneAddress, dtype: DType, element: str, n: int) -> str:
        loaded = dict[str, str]()
        pointers = self.places.lane_pointers(place, dtype.bytes, n)
        for pointer in pointers:
            if pointer not in loaded:
                loaded[pointer] = self.out.let(f"load {element}, ptr {pointer}, align {dtype.bytes}")
        vector = "poison"
        for e, pointer in enumerate(pointers):
            vector = self.out.let(f"insertelement <{n} x {element}> {vector}, {element} {loaded[pointer]}, i64 {e}")
        return vector

    def words(self, buffer: Buffer, index: tuple[Index, ...], lane: Lane | None, formula: Bool | None) -> Val | None:
        """`buffer[index]` where the formula holds (None: everywhere), else zero; None where lanes that have pointers of
        their own are no words."""
        if lane is None or self.places.classified(index, buffer.shape, lane).offsets is not None:
            return None
        groups = groups_of(index, buffer.dtype.bytes, lane, formula)
        return None if groups is None else self._load_words(buffer, groups, lane)

    def _load_words(self, buffer: Buffer, groups: WordGroups, lane: Lane) -> Val:
        """Whole words, each wanted or not."""
        dtype, n = buffer.dtype, lane.width // groups.size
        if n == 1:
            groups = groups.only(lane)
        words, word = (Lane(lane.var, n) if n > 1 else None), f"i{8 * dtype.bytes * groups.size}"
        wanted = True if groups.formula is None else self.indexing.mask(groups.formula, words, int(word[1:]))
        whole = typed(memory(dtype), lane.width)
        if wanted is False:
            return self._from_memory("zeroinitializer", dtype, lane.width)
        place = self.places.place(buffer, groups.index, words, None)
        if words is None:
            raw = self._load_some(place.pointer, word, 1, wanted, dtype.bytes)
        elif wanted is True:
            raw = self._each(place, dtype, word, n)
        else:
            raw = self._gathered(place, dtype, word, n, self.lane_mask(wanted, n))
        return self._from_memory(self.out.let(f"bitcast <{n} x {word}> {raw} to {whole}"), dtype, lane.width)

    def _load_runs(
        self, place: LaneAddress, parts: list[VectorRun], dtype: DType, lane: Lane, mask: Mask | None
    ) -> Val:
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
            loaded = self._load_some(pointer, element, count, wanted, dtype.bytes)
            vectors.append(self._widened(loaded, element, count, length))
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

    def _load_by_lane(self, buffer: Buffer, index: tuple[Index, ...], dtype: DType, lane: Lane, formula: Bool) -> Val:
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
        place = self.places.place(buffer, index, None, None)
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

    def _guarded_scalar(self, place: LaneAddress, dtype: DType, mask: Mask | None, lanes: int) -> Val:
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
        return self._from_memory(self.out.let(f"phi {element} [ {raw}, %{then} ], [ {zero}, %{before} ]"), dtype, 1)

    def _load_group(self, place: LaneAddress, dtype: DType, lane: Lane, mask: Mask | None) -> Val:
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

    def lane_mask(self, mask: bool | str | Lanes, lanes: int) -> str:
        """An i1 vector of a decided or uniform mask."""
        if isinstance(mask, bool):
            return splat_text("i1", str(mask).lower(), lanes)
        if isinstance(mask, Lanes):
            return mask.name
        return self.ops.splat(Val(mask, BOOL), lanes).name
