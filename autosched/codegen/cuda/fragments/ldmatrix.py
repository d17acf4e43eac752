"""Fragments that `ldmatrix` fills: where the rows of 16 bytes that it reads lie together in shared memory.

The instruction reads up to four matrices of eight rows of 16 bytes. Lane `8 r + i` gives the address of row `i` of
matrix `r`; lane `4 i + q` receives word `q` of it in register `r`. Whether a fragment fits is decided on its map and
the address of each element, as formulas, so swizzled slices are recognised like plain ones. In the transposed form lane
`4 i + q` receives element `i` of rows `2 q` and `2 q + 1`.
"""

from __future__ import annotations

from collections.abc import Callable

from autosched.codegen.analysis.access import at_lane, flat_offset, plain
from autosched.codegen.cuda.fragments.fragments import LANE, Layout
from autosched.codegen.cuda.scope import CudaScope
from autosched.codegen.tree.kernel import Assign, For
from autosched.ir.value import Read, is_plain
from autosched.logic import TRUE, Const, Int, Var
from autosched.logic.walk import substitute_int

ROW, WORD = ".row", ".word"
QUAD = 4  # lanes of a row
WORD_BITS = 32
MOST_MATRICES = 4  # of one instruction


def matrix_load(scope: CudaScope, stmt: Assign, layout: Layout | None, read: Read) -> str | None:
    """The call that fills the registers from shared memory; None where the instruction cannot."""
    found = _rows(scope, stmt, layout, read)
    return None if found is None else found.call(1)


def joined_load(scope: CudaScope, loop: For, trips: int) -> tuple[str, int] | None:
    """One call for several trips of a loop that fills one fragment each, and how many trips; None where it cannot."""
    found: _Rows | None = None
    match loop.body:
        case (Assign(buffer, (*_, number, _), Read() as read, valid=valid) as stmt,) if number == Var(loop.var):
            found = _rows(scope, stmt, scope.layouts.get(buffer), read) if valid == TRUE else None
    if found is None:
        return None
    for together in (4, 2):
        many = MOST_MATRICES // found.registers if together == 4 else 2
        if many == together and trips % many == 0:
            found.loop, found.trips = loop.var, trips
            if (text := found.call(many)) is not None:
                return text, many
    return None


def _rows(scope: CudaScope, stmt: Assign, layout: Layout | None, read: Read) -> _Rows | None:
    """The fragment's rows in shared memory; None where it is elsewhere, not packed, or has no load."""
    if layout is None or layout.operand is None or stmt.lane is None or stmt.buffer not in scope.layouts:
        return None
    if read.tensor in scope.layouts or not is_plain(read.index):
        return None
    if scope.buffer(read.tensor).scope != "shared" or stmt.index[-1] != Var(stmt.lane.var):
        return None
    if layout.registers.bits != WORD_BITS or layout.dtype.bits > WORD_BITS:
        return None
    if layout.in_fields or layout.copies > 1:  # a byte each in memory, or no rows of it
        return None
    return _Rows(scope, stmt, layout, read) if layout.operand.load else None


class _Rows:
    """The rows of one fragment in memory."""

    def __init__(self, scope: CudaScope, stmt: Assign, layout: Layout, read: Read) -> None:
        assert stmt.lane is not None
        self.scope, self.layout, self.read, self.lane = scope, layout, read, stmt.lane.var
        self.each = WORD_BITS // layout.dtype.bits  # elements of a word
        self.registers = layout.registers.count
        self.stmt = stmt
        self.loop, self.trips = "", 1  # a loop of which one call serves several trips

    def call(self, many: int) -> str | None:
        """The load of `many` fragments that follow each other."""
        layout, scope = self.layout, self.scope
        isa = layout.intrinsic.isa if layout.intrinsic else ""
        assert layout.operand is not None
        for name in layout.operand.load:
            whole = name.replace(f".x{self.registers}", f".x{self.registers * many}")
            intrinsic, transposed = scope.loads.get(f"{isa}/{whole}"), scope.loads.get(f"{isa}/{whole}.trans")
            address = None
            if intrinsic is not None and (address := self.plain(many)) is None:
                intrinsic = None
            if intrinsic is None and transposed is not None and layout.dtype.bits == WORD_BITS // 2:
                intrinsic, address = transposed, self.transposed(many)
            if intrinsic is not None and address is not None:
                array = scope.array(layout, self.stmt.index)
                if many > 1:
                    scope.used.headers.add("fragment")
                    first = tuple(substitute_int(i, {self.loop: Var(self.loop) * many}) for i in self.stmt.index)
                    with scope.ranged({self.loop: (0, self.trips // many - 1)}):
                        array = f"joined<{self.registers * many}>({scope.array(layout, first)})"
                if not layout.packed:  # elements of a whole word
                    scope.used.headers.add("fragment")
                    array = f"words({array})"
                return f"{scope.used.call(intrinsic)}({array}, {address});"
        return None

    def index(self, t: Int, v: Int) -> tuple[Int, ...]:
        """Subscripts of the element that lane `t` holds as its `v`-th."""
        element = self.layout.element(v, t)
        return at_lane(plain(self.read.tensor, self.read.index), self.lane, element)

    def offset(self, t: Int, v: Int) -> Int:
        return flat_offset(self.scope.buffer(self.read.tensor), self.index(t, v))

    def runs(self, base: Int, places: list[Int], size: int) -> bool:
        """Whether `places` follow `base`, which is on a multiple of `size` elements."""
        simplifier = self.scope.simplifier
        first = simplifier.sum(base)
        if simplifier.multiple(first.node()) % size:
            return False
        for apart, place in enumerate(places):
            difference = simplifier.sum(place).plus(first, -1)
            if difference.terms or difference.constant != apart:
                return False
        return True

    def plain(self, many: int) -> str | None:
        row = Var(ROW)
        with self.scope.ranged({ROW: (0, 7)}):
            for r in range(self.registers):
                base = self.offset(row * QUAD, Const(r * self.each))
                places = [
                    self.offset(row * QUAD + q, Const(r * self.each + x)) for q in range(QUAD) for x in range(self.each)
                ]
                if not self.runs(base, places, QUAD * self.each):
                    return None
        return self.address(lambda matrix, row: (row * QUAD, matrix * self.each), many)

    def transposed(self, many: int) -> str | None:
        word = Var(WORD)
        with self.scope.ranged({WORD: (0, QUAD - 1)}):
            for r in range(self.registers):
                for x in range(self.each):
                    v = Const(r * self.each + x)
                    base = self.offset(word, v)
                    if not self.runs(base, [self.offset(word + QUAD * i, v) for i in range(8)], 8):
                        return None
        return self.address(lambda matrix, row: (row // 2, matrix * self.each + row % 2), many)

    def address(self, first: Callable[[Int, Int], tuple[Int, Int]], many: int) -> str:
        """The address of the row that this lane gives to the instruction. `first`: for a matrix and a row, the lane and
        the element of that lane with which the row begins."""
        number = Var(LANE) // 8 % (self.registers * many)
        t, v = first(number % self.registers, Var(LANE) % 8)
        place = self.index(t, v)
        if many == 1:
            return self.scope.address(self.read.tensor, place)
        trip = Var(self.loop) * many + number // self.registers
        place = tuple(substitute_int(i, {self.loop: trip}) for i in place)
        with self.scope.ranged({self.loop: (0, self.trips // many - 1)}):
            return self.scope.address(self.read.tensor, place)
