"""`Value` trees as LLVM values. A value without the lane stays scalar until an operation needs it in every lane.

`mask` says which lanes are wanted, None for all: memory is touched for wanted lanes only. A
condition without the lane guards its reads by a branch, one with the lane by masked loads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import assert_never

from autosched.codegen.llvm.accesses.addresses import Addresses
from autosched.codegen.llvm.accesses.memory import MemoryPrinter
from autosched.codegen.llvm.emitter import Emitter
from autosched.codegen.llvm.lanes import Lanes
from autosched.codegen.llvm.masks import Mask
from autosched.codegen.llvm.ops import Ops
from autosched.codegen.llvm.special_functions import Words
from autosched.codegen.llvm.tables import four_bits
from autosched.codegen.llvm.types import Val, constant, scalar, typed
from autosched.codegen.passes.memory_constants import memory_constants
from autosched.codegen.passes.small_floats import Conversion
from autosched.codegen.tree.kernel import Lane
from autosched.ir.dtypes import BOOL, DTYPES
from autosched.ir.formula import Formula
from autosched.ir.value import (
    Arith,
    Call,
    Cast,
    Comparison,
    Condition,
    FromIndex,
    Index,
    Literal,
    Logical,
    Read,
    Scalar,
    Select,
    Unary,
    Value,
    blank,
    reads,
)
from autosched.logic import Bool, Int, all_of, free_vars
from autosched.tiling.analysis.nontemporal import LINE_BYTES

F32, S64 = DTYPES["f32"], DTYPES["s64"]
_Side = Callable[[Mask | None], Val]
"""One side of a choice, evaluated under a mask."""


class LlvmValuePrinter:
    """Evaluation at the current place of a function."""

    def __init__(
        self,
        emitter: Emitter,
        indexing: Addresses,
        ops: Ops,
        memory: MemoryPrinter,
        formulas: Mapping[str, Formula],
        scarce: bool = False,
    ) -> None:
        """`scarce`: vector registers are, so that constants of formulas are loaded where they are used."""
        self.out = emitter
        self.indexing = indexing
        self.ops = ops
        self.memory = memory
        self.formulas = formulas
        self.scarce = scarce
        self.words = Words(ops)
        self.steps: dict[str, Val] = {}  # argument and steps of the formula that is being printed
        self.features: frozenset[str] = frozenset()  # what that formula requires
        self.loaded: dict[Literal, int] = {}  # its constants that are loaded, and in how many lanes
        memory.places.index_value = self.subscript
        ops.convert.evaluate = self._converted

    def value(self, v: Value, lane: Lane | None, mask: Mask | None = None) -> Val:
        """The value in every lane (or one for all)."""
        match v:
            case Literal(number, dtype):
                if v in self.loaded:
                    return self._loaded(v, self.loaded[v])
                return self.ops.literal(number, dtype)
            case Read(tensor, index, _):
                return self.memory.read(self.memory.buffers[tensor], index, lane, mask)
            case Scalar(name, dtype):
                return self.steps.get(name) or Val(f"%{name}", dtype)
            case FromIndex(index, dtype):
                return self.ops.convert.cast(self._integer(index, lane), dtype)
            case Unary(op, operand, _):
                return self.ops.unary(op, self.value(operand, lane, mask))
            case Arith(op, left, right, _):
                return self.ops.arith(op, self.value(left, lane, mask), self.value(right, lane, mask))
            case Comparison(op, left, right, _):
                return self.ops.compare(op, self.value(left, lane, mask), self.value(right, lane, mask))
            case Logical(op, parts, _):
                return self._logical(op, parts, lane, mask)
            case Select():
                return self._select(v, lane, mask)
            case Call(function, (argument,), _) if function in self.formulas:
                return self._formula(self.formulas[function], self.value(argument, lane, mask))
            case Call("scalb", (x, k), _):
                one, power = self.ops.together(self.value(x, lane, mask), self.value(k, lane, mask))
                return self.words.scalb(one, power, self.features)
            case Call("lookup", (index, *numbers), dtype):
                texts = [constant(n.value, dtype) for n in numbers if isinstance(n, Literal)]
                return self.words.lookup(self.value(index, lane, mask), texts, self.features)
            case Call(function, args, _):
                return self.ops.call(function, tuple(self.value(a, lane, mask) for a in args))
            case Cast(operand, dtype, _) if dtype == F32 and (found := self._out_of_table(operand, lane, mask)):
                return found
            case Cast(operand, dtype, saturate):
                return self.ops.convert.cast(self.value(operand, lane, mask), dtype, saturate)
            case _:
                assert_never(v)

    def _out_of_table(self, number: Value, lane: Lane | None, mask: Mask | None) -> Val | None:
        """A number of four bits as f32 where one instruction takes all lanes out of a table of them."""
        found = four_bits(number)
        tables = self.ops.convert.tables
        if found is None or lane is None or not tables.hold_words(lane.width, found[0].dtype):
            return None
        return tables.by_words(self.value(found[0], lane, mask), found[1])

    def _formula(self, formula: Formula, argument: Val) -> Val:
        """The formula's steps in place; they touch no memory, so no mask concerns them."""
        outer = self.steps, self.features, self.loaded
        self.steps, self.features = {formula.argument: argument}, formula.requires
        several = self.scarce and argument.lanes > 1
        self.loaded = dict.fromkeys(memory_constants(formula), argument.lanes) if several else {}
        for name, step in formula.steps:
            self.steps[name] = self.value(step, None)
        result = self.value(formula.result, None)
        self.steps, self.features, self.loaded = outer
        return result

    def _converted(self, conversion: Conversion, argument: Val) -> Val:
        """The conversion's steps in place."""
        outer = self.steps, self.loaded
        self.steps, self.loaded = {conversion.argument.name: argument}, {}
        for name, step in conversion.steps:
            self.steps[name] = self.value(step, None)
        result = self.value(conversion.result, None)
        self.steps, self.loaded = outer
        return result

    def _loaded(self, v: Literal, lanes: int) -> Val:
        """A constant as a vector in memory."""
        held = self.ops.literal(v.value, v.dtype, lanes)
        align = min(LINE_BYTES, 1 << (lanes * v.dtype.bytes - 1).bit_length())
        address = self.out.declarations.number(held.text, align)
        return Val(self.out.let(f"load {held.type}, ptr {address}, align {align}"), v.dtype, lanes)

    def subscript(self, part: Index, lane: Lane | None, mask: Mask | None) -> Val:
        """A data-dependent subscript as s64."""
        assert not isinstance(part, Int)
        return self.ops.convert.cast(self.value(part, lane, mask), S64)

    def _integer(self, node: Int, lane: Lane | None) -> Val:
        if lane is None or lane.var not in free_vars(node):
            return Val(self.indexing.operand(self.indexing.linear(node)), S64)
        return Val(self.indexing.lanes(node, lane), S64, lane.width)

    def condition(self, c: Condition, lane: Lane | None, mask: Mask | None = None) -> bool | Val:
        """Decided, or a truth value."""
        if not isinstance(c, Bool):
            return self.value(c, lane, mask)
        found = self.indexing.mask(c, lane)
        if isinstance(found, bool):
            return found
        if isinstance(found, Lanes):
            assert lane is not None
            return Val(found.name, BOOL, lane.width)
        return Val(found, BOOL)

    def _logical(self, op: str, parts: tuple[Condition, ...], lane: Lane | None, mask: Mask | None) -> Val:
        first = self.condition(parts[0], lane, mask)
        if op == "not":
            if isinstance(first, bool):
                return self._truth(not first)
            return self.ops.logical("not", first)
        for position, part in enumerate(parts[1:], 1):
            absorbing = op == "or"
            if isinstance(first, bool):
                if first == absorbing:
                    return self._truth(first)
                first = self.condition(part, lane, mask)
            elif isinstance(part, Bool) or not reads(part):
                second = self.condition(part, lane, mask)
                first = first if isinstance(second, bool) and second != absorbing else self._join(op, first, second)
            else:
                # What follows reads memory: only where the conditions so far leave it open, as Python does.
                rest: Condition = part if position == len(parts) - 1 else Logical(op, parts[position:])
                return self._choose(first, absorbing, rest, lane, mask)
        return self._truth(first) if isinstance(first, bool) else first

    def _truth(self, value: bool) -> Val:
        return Val(str(value).lower(), BOOL)

    def _join(self, op: str, a: Val, b: Val | bool) -> Val:
        return self.ops.logical(op, a, self._truth(b) if isinstance(b, bool) else b)

    def _choose(self, first: Val, absorbing: bool, rest: Condition, lane: Lane | None, mask: Mask | None) -> Val:
        constant = self._truth(absorbing)
        assert not isinstance(rest, Bool)

        def other(inner: Mask | None) -> Val:
            return self.value(rest, lane, inner)

        if absorbing:
            return self._either(first, None, lambda _: constant, other, False, True, mask)
        return self._either(first, None, other, lambda _: constant, True, False, mask)

    def _select(self, v: Select, lane: Lane | None, mask: Mask | None) -> Val:
        if mask is None and isinstance(v.condition, Bool) and v.other == blank(v.other.dtype):
            words = self._words(v.then, lane, v.condition)
            if words is not None:
                return words
        condition = self.condition(v.condition, lane, mask)
        if isinstance(condition, bool):
            return self.value(v.then if condition else v.other, lane, mask)
        return self._either(
            condition,
            v.condition if isinstance(v.condition, Bool) else None,
            lambda m: self.value(v.then, lane, m),
            lambda m: self.value(v.other, lane, m),
            self._touches(v.then),
            self._touches(v.other),
            mask,
        )

    def _words(self, v: Value, lane: Lane | None, condition: Bool) -> Val | None:
        """A read that is zero where its condition does not hold, as words: what no load brings is zero by itself."""
        if not isinstance(v, Read) or self.memory.buffers[v.tensor].scope == "register":
            return None
        return self.memory.loads.words(self.memory.buffers[v.tensor], v.index, lane, condition)

    def _touches(self, v: Value) -> bool:
        """Whether a value reads memory (registers are always there)."""
        return any(self.memory.buffers[r.tensor].scope != "register" for r in reads(v))

    def _either(
        self,
        condition: Val,
        formula: Bool | None,
        then: _Side,
        other: _Side,
        then_reads: bool,
        other_reads: bool,
        mask: Mask | None,
    ) -> Val:
        """`then if condition else other`; a side that reads memory is evaluated for the lanes that choose it only."""
        if condition.lanes > 1:
            a = then(self._narrow(mask, condition, formula) if then_reads else mask)
            if other_reads:
                inverse = self.ops.logical("not", condition)
                mask = self._narrow(mask, inverse, None if formula is None else ~formula)
            return self.ops.select(condition, a, other(mask))
        if not (then_reads or other_reads):
            return self.ops.select(condition, then(mask), other(mask))
        yes, no, join = self.out.label("then"), self.out.label("else"), self.out.label("join")
        self.out.branch_if(condition.name, yes, no)
        self.out.start(yes)
        a = then(mask)
        kept = len(self.out.lines)
        end_yes = self.out.block
        self.out.start(no)
        b = other(mask)
        lanes = max(a.lanes, b.lanes)
        b = self.ops.splat(b, lanes)
        end_no = self.out.block
        self.out.branch(join)
        tail = self.out.lines
        if a.lanes != lanes:  # the first side turned out narrower: widen it at its own end
            rest, self.out.lines = tail[kept:], tail[:kept]
            a = self.ops.splat(a, lanes)
            self.out.branch(join)
            self.out.lines += rest
        else:
            tail.insert(kept, f"  br label %{join}")
        self.out.start(join)
        kind = typed(scalar(a.dtype), lanes)
        return Val(self.out.let(f"phi {kind} [ {a.name}, %{end_yes} ], [ {b.name}, %{end_no} ]"), a.dtype, lanes)

    def _narrow(self, mask: Mask | None, condition: Val, formula: Bool | None) -> Mask:
        if mask is None:
            return Mask(condition.name, formula)
        both = None if formula is None or mask.formula is None else all_of(mask.formula, formula)
        return Mask(self.out.let(f"and <{condition.lanes} x i1> {mask.name}, {condition.name}", "m"), both)
