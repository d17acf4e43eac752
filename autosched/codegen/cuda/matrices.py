"""Fragments that `ldmatrix` fills: where the rows of 16 bytes that it reads lie together in shared memory.

The instruction reads up to four matrices of eight rows of 16 bytes. Lane `8 r + i` says where row `i` of matrix `r`
begins; lane `4 i + q` receives word `q` of it in register `r`. Whether a fragment is that is decided by its map and the
address of each element, as formulas: so a swizzled slice is recognised as well as a plain one. In the transposed form
lane `4 i + q` receives element `i` of rows `2 q` and `2 q + 1`.
"""

from __future__ import annotations

from autosched.codegen.access import flat_offset
from autosched.codegen.cuda.fragments import LANE, Layout
from autosched.codegen.cuda.scope import Scope
from autosched.codegen.kernel import Assign
from autosched.ir.value import Read
from autosched.logic import Const, Int, Var
from autosched.logic.expr import substitute_int

ROW, WORD = ".row", ".word"
QUAD = 4  # lanes of a row
WORD_BITS = 32


def matrix_load(scope: Scope, stmt: Assign, layout: Layout | None, read: Read) -> str | None:
    """The call that fills the registers from shared memory; None where the instruction cannot."""
    if layout is None or layout.operand is None or stmt.lane is None or stmt.buffer not in scope.layouts:
        return None
    if scope.buffer(read.tensor).scope != "shared" or not layout.packed or stmt.index[-1] != Var(stmt.lane.var):
        return None
    isa = layout.intrinsic.isa if layout.intrinsic else ""
    for name in layout.operand.load:
        intrinsic = scope.loads.get(f"{isa}/{name}")
        turned = scope.loads.get(f"{isa}/{name}.trans")
        found = _Rows(scope, stmt, layout, read)
        if intrinsic is not None and (address := found.plain()) is not None:
            return f"{scope.used.call(intrinsic)}({scope.array(layout, stmt.index)}, {address});"
        if turned is not None and layout.dtype.bits == WORD_BITS // 2 and (address := found.turned()) is not None:
            return f"{scope.used.call(turned)}({scope.array(layout, stmt.index)}, {address});"
    return None


class _Rows:
    """The rows of one fragment in memory."""

    def __init__(self, scope: Scope, stmt: Assign, layout: Layout, read: Read) -> None:
        assert stmt.lane is not None
        self.scope, self.layout, self.read, self.lane = scope, layout, read, stmt.lane.var
        self.each = WORD_BITS // layout.dtype.bits  # elements of a word
        self.registers = layout.registers.count

    def index(self, t: Int, v: Int) -> tuple[Int, ...]:
        """Subscripts of the element that lane `t` holds as its `v`-th."""
        element = self.layout.element(v, t)
        return tuple(substitute_int(i, {self.lane: element}) for i in self.read.index if isinstance(i, Int))

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

    def plain(self) -> str | None:
        row = Var(ROW)
        with self.scope.ranged({ROW: (0, 7)}):
            for r in range(self.registers):
                base = self.offset(row * QUAD, Const(r * self.each))
                places = [
                    self.offset(row * QUAD + q, Const(r * self.each + x)) for q in range(QUAD) for x in range(self.each)
                ]
                if not self.runs(base, places, QUAD * self.each):
                    return None
        return self.address(lambda matrix, row: (row * QUAD, matrix * self.each))

    def turned(self) -> str | None:
        word = Var(WORD)
        with self.scope.ranged({WORD: (0, QUAD - 1)}):
            for r in range(self.registers):
                for x in range(self.each):
                    v = Const(r * self.each + x)
                    base = self.offset(word, v)
                    if not self.runs(base, [self.offset(word + QUAD * i, v) for i in range(8)], 8):
                        return None
        return self.address(lambda matrix, row: (row // 2, matrix * self.each + row % 2))

    def address(self, first) -> str:  # type: ignore[no-untyped-def]
        """Where the row that this lane speaks for begins."""
        lane = Var(LANE)
        matrix = lane // 8 % self.registers if self.registers < 4 else lane // 8
        t, v = first(matrix if self.registers > 1 else Const(0), lane % 8)
        return self.scope.address(self.read.tensor, self.index(t, v))
