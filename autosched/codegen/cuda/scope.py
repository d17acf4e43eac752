"""What the statements of one launch need to know: names, ranges, registers, memory, and the functions they call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from autosched.codegen.analysis.access import flat_offset, strides
from autosched.codegen.c_like.names import Names, Spelling
from autosched.codegen.cuda.fragments.fragments import LANE, Layout
from autosched.codegen.cuda.fragments.lane_registers import identifier, issue_name, whole_name
from autosched.codegen.cuda.indices import CudaIndices, Wide
from autosched.codegen.cuda.induction_counters import Rings
from autosched.codegen.cuda.simplify import Simplifier, Sum
from autosched.codegen.cuda.types import element_type
from autosched.codegen.cuda.values import CudaValues
from autosched.codegen.cuda.view import PEER, own_of
from autosched.codegen.tree.kernel import Buffer, Kernel
from autosched.ir.value import Index, Read, is_plain
from autosched.logic import Int, free_vars
from autosched.tensorize.intrinsic import Intrinsic

MOST_NARROW = 2**31
"""Elements of an array that 32-bit offsets reach."""


class Known(Protocol):
    """Intrinsics by full name."""

    def get(self, name: str) -> Intrinsic | None: ...


@dataclass
class Used:
    """What a file needs beside its kernels: helpers by name, headers, device functions of intrinsics."""

    helpers: set[str] = field(default_factory=set)
    headers: set[str] = field(default_factory=lambda: {"types"})
    intrinsics: dict[str, Intrinsic] = field(default_factory=dict)
    majors: dict[str, dict[tuple[str, ...], None]] = field(default_factory=dict)
    wholes: dict[tuple[str, str, str, str], tuple[Intrinsic, bool]] = field(default_factory=dict)

    def call(self, intrinsic: Intrinsic) -> str:
        """The name of an intrinsic's device function, which is then printed."""
        self.intrinsics.setdefault(intrinsic.name, intrinsic)
        return identifier(intrinsic)

    def whole(self, intrinsic: Intrinsic, operand: str, verb: str, major: str, shared: bool) -> str:
        """The name of a device function that loads or stores an opaque fragment, which is then printed; `shared`: in
        shared memory."""
        key = intrinsic.name, operand, verb, major
        self.wholes[key] = intrinsic, shared and self.wholes.get(key, (intrinsic, True))[1]
        return whole_name(intrinsic, operand, verb, major)

    def issue(self, intrinsic: Intrinsic, majors: tuple[str, ...]) -> str:
        """The name of an intrinsic's device function on fragments that lie as `majors` says."""
        self.intrinsics.setdefault(intrinsic.name, intrinsic)
        if majors:
            self.majors.setdefault(intrinsic.name, {})[majors] = None
        return issue_name(intrinsic, majors)


@dataclass
class Early:
    """What the body of a loop begins with, before it waits for anything: loads whose places the variables `known` there
    decide."""

    known: frozenset[str]
    lines: list[str] = field(default_factory=list)


class CudaScope:
    """One launch being printed. `ranges` are inclusive bounds of variables where the text stands; `lanes` are threads
    of a worker there (1: none); `running` says whether copies run on."""

    def __init__(
        self,
        kernel: Kernel,
        names: Names,
        used: Used,
        layouts: Mapping[str, Layout],
        loads: Known,
        formula: Callable[[str], str | None],
    ) -> None:
        self.kernel, self.names, self.used, self.layouts, self.loads = kernel, names, used, layouts, loads
        self.ranges: dict[str, tuple[int, int]] = {}
        self.lanes = 1
        self.block_lanes = 1  # threads of the block's largest workers
        self.narrow: dict[int, str] = {}  # of smaller workers' threads: the name of a thread's number among them
        self.workers: dict[str, int] = {}  # variable of each loop over workers around, to their number
        self.running = False
        self.alone = False  # the launch is one thread
        self.limited = False  # the launch says how many registers a thread may take
        self.fixed: frozenset[str] = frozenset()  # variables that no loop of one thread changes
        self.written: frozenset[str] = frozenset()  # buffers that the launch writes
        self.majors: dict[str, str] = {}  # of opaque fragments, as they were loaded
        self.staging: dict[str, Buffer] = {}  # shared memory for them, of each warp
        self.warps = 1
        self.threads = 0  # of all workers of the block, where none has a role of its own
        self.passed: frozenset[str] = frozenset()  # memory through which lanes of a row's warp pass values
        self.loops = 0  # loops around, of one thread
        self.at_hand: dict[Read, str] = {}  # elements of memory that were loaded before, and what stands for each
        self.early: Early | None = None  # where the text stands in every trip of a loop that waits
        self.pointers: dict[tuple[str, Int, bool], str] = {}
        self.declared: list[str] = []  # declarations to stand before the current statement of the block
        self._simplifier: Simplifier | None = None
        self.spelled = spelled = Spelling(names)
        use = used.helpers.add
        self.wide = CudaIndices(Wide(spelled), self.ranges, use, lambda: self.simplifier)
        self.index = CudaIndices(spelled, self.ranges, use, lambda: self.simplifier, self.wide)
        self.rings = Rings(names, lambda: self.simplifier)
        self.index.round = self.rings.text
        self.values = CudaValues(self.index, self.read, names, use, formula)

    @property
    def simplifier(self) -> Simplifier:
        if self._simplifier is None:
            self._simplifier = Simplifier(self.ranges)
        return self._simplifier

    def spell(self, var: str) -> str:
        """A variable as an identifier; those of printed loops (`.v`) get the plain name where it is free."""
        return self.spelled[var]

    @contextmanager
    def ranged(self, found: Mapping[str, tuple[int, int] | None]) -> Iterator[None]:
        """Bounds of variables, for as long as it lasts."""
        before = {name: self.ranges.get(name) for name in found}
        self._set(found)
        yield
        self._set(before)

    @contextmanager
    def workers_of(self, lanes: int) -> Iterator[None]:
        """Workers of so many threads: `LANE` is a thread's number among these."""
        before, self.lanes = self.lanes, lanes
        if 1 < lanes < self.block_lanes:
            whole = self.spelled[LANE]
            if lanes not in self.narrow:
                self.narrow[lanes] = self.names.fresh(f"{whole}_of_{lanes}")
            self.spelled[LANE] = self.narrow[lanes]
            with self.ranged({LANE: (0, lanes - 1)}):
                yield
            self.spelled[LANE] = whole
        else:
            yield
        self.lanes = before

    @contextmanager
    def holding(self, found: Mapping[Read, str]) -> Iterator[None]:
        """Elements of memory that are at hand, for as long as it lasts."""
        before, self.at_hand = self.at_hand, {**self.at_hand, **found}
        yield
        self.at_hand = before

    @contextmanager
    def beginning(self, early: Early | None) -> Iterator[None]:
        """Where loads may go that are to be early: nowhere in text that not every trip comes to."""
        before, self.early = self.early, early
        yield
        self.early = before

    def _set(self, found: Mapping[str, tuple[int, int] | None]) -> None:
        for name, bounds in found.items():
            if bounds is None:
                self.ranges.pop(name, None)
            else:
                self.ranges[name] = bounds
        self._simplifier = None

    # -- places -------------------------------------------------------------------------------------------------------

    def buffer(self, name: str) -> Buffer:
        return self.staging.get(name) or self.kernel.buffers[name]

    def offset(self, buffer: Buffer, index: tuple[Int, ...]) -> Int:
        """Row-major offset in elements."""
        return self.simplifier.number(flat_offset(buffer, index))

    def offset_text(self, buffer: Buffer, index: tuple[Index, ...]) -> str:
        printer = self.wide if buffer.elements >= MOST_NARROW else self.index
        if is_plain(index):
            return printer.number(self.offset(buffer, index))
        parts = []
        for part, stride in zip(index, strides(buffer.shape), strict=True):
            text = printer.number(part, 5) if isinstance(part, Int) else f"({self.values.subscript(part)})"
            parts.append(text if stride == 1 else f"{text} * {stride}")
        return " + ".join(p for p in parts if p != "0") or "0"

    def element(self, name: str, index: tuple[Index, ...]) -> str:
        """An element of memory as an lvalue."""
        if self.buffer(name).scope == PEER:
            return f"*({self.peer(name, index)})"
        return f"{self.names(name)}[{self.offset_text(self.buffer(name), index)}]"

    def address(self, name: str, index: tuple[Index, ...]) -> str:
        """Its address; what of it no loop changes is a pointer of its own, made before the loops."""
        if self.buffer(name).scope == PEER:
            return self.peer(name, index)
        base, text = self.names(name), self.offset_text(self.buffer(name), index)
        if self.loops and is_plain(index):
            base, text = self._hoisted(self.buffer(name), self.offset(self.buffer(name), index))
        return base if text == "0" else f"&{base}[{text}]"

    def peer(self, name: str, index: tuple[Index, ...]) -> str:
        """The address of an element in the shared memory of another block of the cluster."""
        self.used.headers.add("cluster")
        rank, *inside = index
        assert isinstance(rank, Int)
        here = self.address(own_of(name), tuple(inside))
        return f"in_block({here}, {self.index.number(rank)})"

    def _hoisted(self, buffer: Buffer, offset: Int) -> tuple[str, str]:
        """A pointer to where the offset begins, and the rest of the offset. No pointer lies in front of its tensor."""
        total = self.simplifier.sum(offset)
        printer = self.wide if buffer.elements >= MOST_NARROW else self.index
        fixed = Sum({a: c for a, c in total.terms.items() if free_vars(a) <= self.fixed})
        if any(c < 0 for c in fixed.terms.values()):
            fixed = Sum(fixed.terms, total.constant)
        if not fixed.terms:
            return self.names(buffer.name), printer.number(offset)
        key = buffer.name, fixed.node(), 1 < self.lanes < self.block_lanes
        if key not in self.pointers:
            same = sum(1 for name, *_ in self.pointers if name == buffer.name)
            self.pointers[key] = self.names.fresh(f"{self.names(buffer.name)}_at{same + 1 if same else ''}")
            const = "" if buffer.name in self.written or buffer.name in self.staging else "const "
            type_ = f"{const}{element_type(buffer.dtype)}* const {self.pointers[key]}"
            self.declared.append(f"{type_} = &{self.names(buffer.name)}[{printer.number(key[1])}];")
        return self.pointers[key], printer.number(total.plus(fixed, -1).node())

    def array(self, layout: Layout, index: tuple[Index, ...]) -> str:
        """A lane's registers of one operand: `acc[ir][jr]`."""
        outer = "".join(f"[{self.values.subscript(i)}]" for i in layout.outer(index))
        return self.names(layout.buffer.name) + outer

    def register(self, layout: Layout, index: tuple[Index, ...], v: Int) -> str:
        """Element `v` of a lane's registers, to read (or to write, but for elements below a byte)."""
        array, number = self.array(layout, index), self.index.number(v)
        if not layout.packed:
            return f"{array}[{number}]"
        self.used.headers.add("fragment")
        if layout.in_fields:
            text = f"narrow_element<{layout.field_bits}>({array}, {number})"
            return f"({text} >> {layout.shift})" if layout.shift else text
        return f"element<{self.type(layout)}>({array}, {number})"

    @staticmethod
    def type(layout: Layout) -> str:
        return element_type(layout.dtype)

    def read(self, read: Read) -> str:
        """An element as stored, of memory or of a register (its last subscript is then the lane's own element)."""
        if read in self.at_hand:
            return self.at_hand[read]
        layout = self.layouts.get(read.tensor)
        if layout is None:
            return self.element(read.tensor, read.index)
        last = read.index[-1]
        assert isinstance(last, Int)
        return self.register(layout, read.index, last)
