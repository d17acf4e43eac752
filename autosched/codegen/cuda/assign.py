"""Assignments of one thread: its share of the lanes, in copies as wide as memory allows.

A register of a warp is spread over its lanes by its fragment map; the assignment's lane variable becomes the number
of the thread's own element, `v`. Where elements `v … v+w-1` are neighbours in memory and move as they are, they move at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from autosched.codegen.analysis.access import at_lane, flat_offset, plain
from autosched.codegen.c_like.blocks import loop_head, under
from autosched.codegen.c_like.values import all_bits_zero
from autosched.codegen.cuda.fragments.exchange import across_fragment, settled, shuffled
from autosched.codegen.cuda.fragments.fragments import LANE, Layout
from autosched.codegen.cuda.fragments.ldmatrix import matrix_load
from autosched.codegen.cuda.fragments.opaque import OpaquePrinter
from autosched.codegen.cuda.fragments.own_elements import from_fragments
from autosched.codegen.cuda.joined_loads import WIDEST, load_runs
from autosched.codegen.cuda.scope import CudaScope
from autosched.codegen.cuda.types import element_type
from autosched.codegen.cuda.view import PEER
from autosched.codegen.tree.kernel import Assign
from autosched.errors import UsageError
from autosched.ir.value import Read, Select, Value, is_plain, map_value, walk
from autosched.logic import FALSE, TRUE, Bool, Const, Int, Var, all_of, free_vars
from autosched.logic.walk import substitute_bool, substitute_int

ELEMENT, GROUP, INSIDE = ".v", ".u", ".x"
"""Variables of printed loops: a thread's own element, a group of them that moves at once, an element of a group. No
axis of a program has such a name."""


@dataclass(frozen=True)
class BitMove:
    """Bits that move as they are, where `there` holds, else zeros (`zero`) or nothing."""

    read: Read
    there: Bool
    zero: bool


class CudaAssignPrinter:
    """Prints the assignments of one launch."""

    def __init__(self, scope: CudaScope) -> None:
        self.scope = scope

    def lines(self, stmt: Assign) -> Iterator[str]:
        scope = self.scope
        if (shuffle := shuffled(scope, stmt)) is not None:
            yield shuffle
            return
        if (shuffles := across_fragment(scope, stmt)) is not None:
            yield from shuffles
            return
        stmt = settled(scope, stmt)
        if (own := from_fragments(scope, stmt)) is not None:
            assert stmt.lane is not None
            home, each = own
            for v, one in enumerate(each):
                here = _placed(one, stmt.lane.var, home.element(Const(v)), scope, Const(v))
                yield from self._element(here)
            return
        layout = self._layout(stmt)
        lanes = layout.lanes if layout is not None else 1
        if stmt.lane is None:
            yield from self._one(stmt)
            return
        if layout is not None and layout.opaque:
            yield from OpaquePrinter(scope, self._shared_out).lines(stmt)
            return
        alone = layout is None or layout.lanes == 1
        if alone and scope.lanes > 1 and stmt.buffer not in scope.layouts:
            yield from self._shared_out(stmt)
            return
        count = stmt.lane.width * (layout.copies if layout is not None else 1) // lanes
        with scope.ranged({ELEMENT: (0, count - 1)}):
            yield from self._spread(stmt, layout, count)

    # -- whose ---------------------------------------------------------------------------------------------------------

    def _layout(self, stmt: Assign) -> Layout | None:
        """Of the registers that take part, those of most lanes."""
        names = [stmt.buffer, *(n.tensor for n in walk(stmt.value) if isinstance(n, Read))]
        found = [self.scope.layouts[n] for n in names if n in self.scope.layouts]
        return max(found, key=lambda x: x.lanes, default=None)

    def _at(self, stmt: Assign, element: Int) -> Assign:
        """The assignment at one lane of its own; registers are subscripted by the thread's element `ELEMENT`."""
        assert stmt.lane is not None
        return _placed(stmt, stmt.lane.var, element, self.scope)

    def _one(self, stmt: Assign) -> Iterator[str]:
        """An assignment without lanes; a worker of several threads leaves it to its first."""
        everywhere = self.scope.lanes == 1 or stmt.buffer in self.scope.layouts
        first = () if everywhere else (Var(LANE).eq(0),)
        yield from self._guarded(all_of(*first), list(self._element(stmt)))

    def _shared_out(self, stmt: Assign) -> Iterator[str]:
        """Memory to memory by a worker of several threads: each takes every so many elements."""
        assert stmt.lane is not None
        lanes, width = self.scope.lanes, stmt.lane.width
        for wide in (8, 4, 2):
            if width % (lanes * wide) == 0 and wide <= WIDEST // self.scope.buffer(stmt.buffer).dtype.bytes:
                # The thread's elements v = wide * u + x are those of group u * lanes + lane.
                def at(v: Int, wide: int = wide) -> Int:
                    return (v // wide * lanes + Var(LANE)) * wide + v % wide

                count = width // lanes
                with self.scope.ranged({ELEMENT: (0, count - 1)}):
                    text = self._wide(stmt, at, count, wide)
                if text is not None:
                    yield from text
                    return
        count = -(-width // lanes)
        with self.scope.ranged({ELEMENT: (0, count - 1)}):
            element = Var(ELEMENT) * lanes + Var(LANE)
            here = self._at(stmt, element)
            guard = self.scope.simplifier.condition(element < width)
            yield from self._loop(count, list(self._guarded(guard, list(self._element(here)))))

    def _wide(self, stmt: Assign, at: Callable[[Int], Int], count: int, width: int) -> list[str] | None:
        """Accesses of `width` elements; None where that cannot be."""
        move = self._move(stmt)
        if move is not None and (text := self._moved(stmt, move, at, count, width)) is not None:
            return text
        return self._computed(stmt, at, count, width)

    # -- how -----------------------------------------------------------------------------------------------------------

    def _spread(self, stmt: Assign, layout: Layout | None, count: int) -> Iterator[str]:
        element = layout.element if layout is not None else (lambda v: v)
        move = self._move(stmt)
        if move is not None:
            matrix = matrix_load(self.scope, stmt, layout, move.read) if move.there == TRUE else None
            if matrix is not None:
                yield matrix
                return
            for width in self._widths(stmt, count):
                text = self._moved(stmt, move, element, count, width)
                if text is not None:
                    yield from text
                    return
        write = self._fields if stmt.buffer in self.scope.layouts else self._computed
        for width in self._widths(stmt, count):
            text = write(stmt, element, count, width)
            if text is not None:
                yield from text
                return
        here = self._at(stmt, element(Var(ELEMENT)))
        yield from self._loop(count, list(self._element(here)))

    def _widths(self, stmt: Assign, count: int) -> list[int]:
        """Numbers of elements that may move at once, the widest first. Those below a byte take one in memory;
        readers look at their bits alone, and nobody outside reads shared memory."""
        to = self.scope.buffer(stmt.buffer)
        size = to.dtype
        if size.sub_byte and to.scope != "shared":
            return []
        most = WIDEST // size.bytes
        return [w for w in (16, 8, 4, 2) if w <= most and count % w == 0]

    def _move(self, stmt: Assign) -> BitMove | None:
        """The assignment as a copy of bits; None where it computes."""
        value, register = stmt.value, stmt.buffer in self.scope.layouts
        there, zero = stmt.valid, register and stmt.valid != TRUE
        if isinstance(value, Select) and isinstance(value.condition, Bool) and all_bits_zero(value.other):
            if there != TRUE and not register:
                return None
            there, zero, value = all_of(there, value.condition), True, value.then
        if not isinstance(value, Read) or value.dtype != self.scope.buffer(stmt.buffer).dtype:
            return None
        if not is_plain(value.index):
            return None
        layouts = [self.scope.layouts[n] for n in (stmt.buffer, value.tensor) if n in self.scope.layouts]
        if any(x.in_fields or (x.operand is not None and x.operand.distinct) for x in layouts):
            return None
        return BitMove(value, there, zero)

    def _neighbours(self, name: str, index: tuple[Int, ...], lane: str, at: Callable[[Int], Int], width: int) -> bool:
        """Whether elements `width * u … + width - 1` lie together, on a multiple of their size."""
        scope = self.scope
        if name in scope.layouts:
            return index[-1] == Var(lane)
        buffer = scope.buffer(name)

        def offset(v: Int) -> Int:
            return flat_offset(buffer, at_lane(index, lane, at(v)))

        first = Var(GROUP) * width
        base = scope.simplifier.sum(offset(first))
        if scope.simplifier.multiple(base.node()) % width:
            return False
        for x in range(1, width):
            apart = scope.simplifier.sum(offset(first + x)).plus(base, -1)
            if apart.terms or apart.constant != x:
                return False
        return True

    def _uniform(self, condition: Bool, lane: str, at: Callable[[Int], Int], width: int) -> Bool | None:
        """The condition for all of a group's elements; None where they differ."""
        if condition == TRUE:
            return condition
        first = Var(GROUP) * width
        parts = {
            self.scope.simplifier.condition(substitute_bool(condition, {lane: at(first + x)})) for x in range(width)
        }
        return parts.pop() if len(parts) == 1 else None

    def _moved(
        self, stmt: Assign, move: BitMove, at: Callable[[Int], Int], count: int, width: int
    ) -> list[str] | None:
        """Copies of `width` elements at once; None where that cannot be."""
        assert stmt.lane is not None
        scope, lane, read = self.scope, stmt.lane.var, move.read
        groups = count // width
        with scope.ranged({GROUP: (0, groups - 1)}):
            if not self._neighbours(stmt.buffer, stmt.index, lane, at, width):
                return None
            if not self._neighbours(read.tensor, plain(read.tensor, read.index), lane, at, width):
                return None
            there = self._uniform(move.there, lane, at, width)
            if there is None:
                return None
            size = width * scope.buffer(stmt.buffer).dtype.bytes
            here = _placed(replace(stmt, value=read), lane, at(Var(GROUP) * width), scope, Var(GROUP) * width)
            to = self._address(here.buffer, here.index)
            source = here.value
            assert isinstance(source, Read)
            from_ = self._address(source.tensor, plain(source.tensor, source.index))
            if to is None or from_ is None:
                return None
            inside = scope.buffer(source.tensor).scope in ("shared", PEER)  # `cp.async` reads global memory alone
            running = scope.running and size >= 4 and scope.buffer(stmt.buffer).scope == "shared" and not inside
            scope.used.headers.add("copy")
            verb = "start_copy" if running else "copy"
            if there == TRUE:
                lines = [f"{verb}<{size}>({to}, {from_});"]
            elif move.zero:
                lines = [f"{verb}_or_zero<{size}>({to}, {from_}, {scope.index.condition(there)});"]
            else:
                lines = list(self._guarded(there, [f"copy<{size}>({to}, {from_});"]))
            return list(self._loop(groups, lines, GROUP))

    def _address(self, name: str, index: tuple[Int, ...]) -> str | None:
        """Where a group begins, in memory or in registers."""
        layout = self.scope.layouts.get(name)
        if layout is None:
            return self.scope.address(name, index)
        per = layout.registers.bits // layout.field_bits if layout.packed else 1
        number = self.scope.simplifier.sum(index[-1])
        if any(c % per for c in (*number.terms.values(), number.constant)):
            return None
        text = self.scope.index.number(number.divided(per).node())
        array = self.scope.array(layout, index)
        return array if text == "0" else f"&{array}[{text}]"

    def _computed(self, stmt: Assign, at: Callable[[Int], Int], count: int, width: int) -> list[str] | None:
        """Values of `width` elements, then one copy of them to memory; None where that cannot be."""
        assert stmt.lane is not None
        scope, lane = self.scope, stmt.lane.var
        groups = count // width
        with scope.ranged({GROUP: (0, groups - 1), INSIDE: (0, width - 1)}):
            if not self._neighbours(stmt.buffer, stmt.index, lane, at, width):
                return None
            there = self._uniform(stmt.valid, lane, at, width)
            if there is None:
                return None
            v = Var(GROUP) * width + Var(INSIDE)
            here = _placed(stmt, lane, at(v), scope, v)
            loads, at_hand = load_runs(scope, here.value, INSIDE, width, there == TRUE)
            with scope.holding(at_hand):
                value = scope.values.stored(here.value)
            to = scope.address(stmt.buffer, at_lane(stmt.index, lane, at(Var(GROUP) * width)))
            dtype = scope.buffer(stmt.buffer).dtype
            scope.used.headers.add("copy")
            body = [*loads, f"alignas({width * dtype.bytes}) {element_type(dtype)} row[{width}];"]
            body += self._loop(width, [f"row[{scope.spell(INSIDE)}] = {value};"], INSIDE)
            body += [f"copy<{width * dtype.bytes}>({to}, row);"]
            guarded = list(self._guarded(there, body))
            if groups == 1 and there == TRUE:
                guarded = ["{", *(f"    {line}" for line in body), "}"]
            return list(self._loop(groups, guarded, GROUP))

    def _fields(self, stmt: Assign, at: Callable[[Int], Int], count: int, width: int) -> list[str] | None:
        """Elements put into fields of registers, `width` of them from what is loaded at once; None where nothing is, or
        registers hold whole elements."""
        assert stmt.lane is not None
        scope, lane, groups = self.scope, stmt.lane.var, count // width
        if not scope.layouts[stmt.buffer].in_fields or scope.simplifier.condition(stmt.valid) != TRUE:
            return None
        with scope.ranged({GROUP: (0, groups - 1), INSIDE: (0, width - 1)}):
            v = Var(GROUP) * width + Var(INSIDE)
            here = _placed(stmt, lane, at(v), scope, v)
            loads, at_hand = load_runs(scope, here.value, INSIDE, width, always=True)
            if not at_hand:
                return None
            with scope.holding(at_hand):
                elements = list(self._element(here))
            body = [*loads, *self._loop(width, elements, INSIDE)]
            held = body if groups > 1 else ["{", *(f"    {line}" for line in body), "}"]
            return list(self._loop(groups, held, GROUP))

    def _element(self, stmt: Assign) -> Iterator[str]:
        """One element of one thread: its register subscript is the thread's own."""
        scope = self.scope
        layout = scope.layouts.get(stmt.buffer)
        value = scope.values.stored(stmt.value)
        valid = scope.simplifier.condition(stmt.valid)
        if layout is None:
            yield from self._guarded(valid, [f"{scope.element(stmt.buffer, stmt.index)} = {value};"])
            return
        if valid != TRUE:
            none = self._absent(layout, stmt)
            value = none if valid == FALSE else f"{scope.index.choice(valid)} ? {value} : {none}"
        last = stmt.index[-1]
        if layout.packed and layout.in_fields:
            scope.used.headers.add("fragment")
            array, number = scope.array(layout, stmt.index), scope.index.number(last)
            value = f"({value}) << {layout.shift}" if layout.shift else value
            yield f"put_element<{layout.field_bits}>({array}, {number}, {value});"
            return
        yield f"{scope.register(layout, stmt.index, last)} = {value};"

    def _absent(self, layout: Layout, stmt: Assign) -> str:
        """What a register holds in place of an element that the program does not have: zero, or numbers that differ
        where the instruction asks for that."""
        operand = layout.operand
        if operand is None or not operand.distinct or operand.fragment is None:
            return _zero(stmt.value)
        last = substitute_int(operand.fragment.coordinates[-1], {"t": Var(LANE), "v": stmt.index[-1]})
        return self.scope.index.number(last % operand.distinct, 13)

    # -- around --------------------------------------------------------------------------------------------------------

    def _guarded(self, guard: Bool, lines: list[str]) -> Iterator[str]:
        guard = self.scope.simplifier.condition(guard)
        if guard == FALSE:
            return
        if guard == TRUE:
            yield from lines
            return
        yield from under(f"if ({self.scope.index.condition(guard)})", lines, "    ", 95)

    def _loop(self, count: int, lines: list[str], var: str = ELEMENT) -> Iterator[str]:
        """An unrolled loop over a thread's own elements; the variable of a single trip has the range of one number."""
        if count == 1 or not lines:
            yield from lines
            return
        yield "#pragma unroll"
        yield from under(loop_head("int", self.scope.spell(var), count), lines, "    ", 100)


def _placed(stmt: Assign, lane: str, element: Int, scope: CudaScope, own: Int | None = None) -> Assign:
    """The assignment at lane `element`; registers are subscripted by the thread's own element, `own`."""
    mine = Var(ELEMENT) if own is None else own

    def index(name: str, parts: tuple[Int, ...]) -> tuple[Int, ...]:
        if name not in scope.layouts:
            return at_lane(parts, lane, element)
        *outer, last = parts
        if scope.layouts[name].lanes > 1 and last != Var(lane) and lane in free_vars(last):
            raise UsageError(f"{name} is read where another lane may hold it")
        inside = mine if last == Var(lane) else substitute_int(last, {lane: element})
        return (*at_lane(tuple(outer), lane, element), inside)

    value = _map_reads(stmt.value, lane, element, index)
    valid = substitute_bool(stmt.valid, {lane: element})
    return replace(stmt, index=index(stmt.buffer, stmt.index), value=value, valid=valid, lane=None)


def _map_reads(
    value: Value, lane: str, element: Int, index: Callable[[str, tuple[Int, ...]], tuple[Int, ...]]
) -> Value:
    """The value at one lane, subscripts of reads by `index`."""
    marked = ".lane's own"

    def on_int(node: Int) -> Int:
        return Var(marked) if node == Var(lane) else substitute_int(node, {lane: element})

    def on_value(node: Value) -> Value:
        if not isinstance(node, Read) or not is_plain(node.index):
            return node
        return replace(node, index=index(node.tensor, at_lane(node.index, marked, Var(lane))))

    found = map_value(value, on_value, on_int, lambda b: substitute_bool(b, {lane: element}))
    return map_value(found, on_int=lambda n: substitute_int(n, {marked: element}))


def _zero(value: Value) -> str:
    if not value.dtype.is_float or value.dtype.bits < 32:
        return "0"
    return "0.0" if value.dtype.name == "f64" else "0.0f"
