"""The reductions of a scalar stage in registers: start, loops, and the store of what has been accumulated.

A register holds a vector of results, or (`across`) partial results of one, along the innermost reduction axis: several
such accumulators run independently, and at the end they and then their lanes are combined in a tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from autosched.codegen.lower.common.context import identifier
from autosched.codegen.lower.common.invariant import split_invariant
from autosched.codegen.lower.common.positions import LANE
from autosched.codegen.lower.scalar.producer_fusion import FusedProducer
from autosched.codegen.lower.scalar.scalar_stage import ScalarStage
from autosched.codegen.lower.scalar.shape import Ats, guard_formula, under
from autosched.codegen.passes.register_transpose import Exchange, exchanged
from autosched.codegen.tree.kernel import Assign, For, If, Lane, Stmt
from autosched.codegen.tree.rename import place, place_condition, place_index
from autosched.codegen.tree.update import accumulated, combine, guarded
from autosched.ir.dtypes import DType
from autosched.ir.nodes import Axis
from autosched.ir.value import Arith, Comparison, Literal, Read, Select, Value
from autosched.logic import TRUE, Bool, Const, Int, Var, all_of, free_vars, maximum
from autosched.logic.walk import substitute_bool, substitute_int
from autosched.tiling.plans.guards import spatial_formulas
from autosched.tiling.plans.scalar_parts import is_constant

Pair = tuple[str, str]
"""The register of numbers and that of NaN; there is no such register where an extreme does not keep them apart."""
Places = tuple[Int, ...]
SIGNS = {"max=": ">", "min=": "<"}
"""Which of two numbers an extreme keeps."""


@dataclass
class Reduction:
    """Emits the reduction loops `axes` of a stage for all copies of the body around them; the stage before it,
    its `producer`, is computed on the way."""

    of: ScalarStage
    axes: tuple[Axis, ...]
    ats: Ats
    vectored: bool
    producer: FusedProducer | None = None

    def __post_init__(self) -> None:
        self.stage, self.shape = self.of.stage, self.of.shape
        self.dtype = self.stage.assign.value.dtype
        self.each = self.shape.unroll if self.shape.across else 1
        """Accumulators of one copy."""
        wide = self.vectored or self.shape.across
        self.lane = self.shape.lane if wide else None
        self.element: Int = Var(LANE) if wide else Const(0)
        self.width = self.shape.width if wide else 1
        name = f"{self.stage.assign.tensor}_acc"
        self.acc = self.register(name, self.dtype, len(self.ats) * self.each)
        self.op = "+=" if self.shape.across and self.stage.assign.op == "-=" else self.stage.assign.op
        self.value = self.stage.assign.value
        self.kept: set[str] = set()
        self.halves: dict[int, Pair] = {}
        self.pair: Pair = "", ""
        # An extreme of floats that passes NaN on is three operations, one waiting for the other. Of partial results the
        # numbers and the NaN are kept apart, and meet at the end.
        extreme = self.op in SIGNS and self.dtype.name in ("f32", "f64")
        self.nan = ""
        if extreme and self.shape.across and not self.stage.guards:
            self.nan = self.register(f"{self.stage.assign.tensor}_nan", self.dtype, len(self.ats) * self.each)
            self.now = self.register(f"{self.stage.assign.tensor}_now", self.dtype, len(self.ats) * self.each)

    def register(self, name: str, dtype: DType, count: int) -> str:
        return self.of.ctx.declare(name, dtype, (count, self.width), "register").name

    def held(self, number: int) -> Read:
        return Read(self.acc, (Const(number), self.element), self.dtype)

    def emit(self) -> tuple[Stmt, ...]:
        before = self.invariants()
        # An initial value is given to all elements, guarded or not; without one, guarded elements are not touched.
        guards = () if self.stage.init is not None else spatial_formulas(self.stage)
        touched = [all_of(*(substitute_bool(g, at) for g in guards)) for at in self.ats]
        if self.merges_rows() and all(t == TRUE for t in touched) and (row := consecutive(self.ats)) is not None:
            begins = [s for copy in range(len(self.ats)) for s in self.neutral(copy)]
            return (*before, *begins, *self.loops(0, self.ats), *self.rows_stored(row))
        starts: list[Stmt] = []
        stores: list[Stmt] = []
        by_lane = self.vectored and any(LANE in free_vars(t) for t in touched)
        for copy, at in enumerate(self.ats):
            start, store = self.ends(copy, at, touched[copy] if by_lane else TRUE)
            if not by_lane and touched[copy] != TRUE:
                store = [If(touched[copy], tuple(store))]
                start = [*self.zeros(copy), If(touched[copy], tuple(start))]
            starts += start
            stores += store
        loops = self.loops(0, self.ats)
        if len(self.ats) == 1 and not by_lane and touched[0] != TRUE:
            plain = self.ends(0, self.ats[0], TRUE)
            return (If(touched[0], (*before, *plain[0], *loops, *plain[1])),)
        return (*before, *starts, *loops, *stores)

    def running(self, axis: Axis) -> tuple[Stmt, ...]:
        """The sums along a spatial axis, each of which goes on where the one before ended
        (`tiling.analysis.running_sums`)."""
        assign, (summed,) = self.stage.assign, self.axes
        along, over = Var(identifier(axis.name)), Var(identifier(summed.name))
        lower, upper = substitute_int(summed.lower, self.ats[0]), substitute_int(summed.upper, self.ats[0])
        before = substitute_int(upper, {axis.name: along - 1})
        end = substitute_int(upper, {axis.name: along})
        starts = [self.ends(n, at | {axis.name: axis.lower}, TRUE)[0] for n, at in enumerate(self.ats)]
        added = self.updates(tuple(at | {summed.name: over} for at in self.ats), 1, None)
        ahead = substitute_int(before, {along.name: axis.lower})
        stores = [
            Assign(assign.tensor, place_index(assign.index, at | {axis.name: along}), self.held(n), self.lane)
            for n, at in enumerate(self.ats)
        ]
        first = For(over.name, lower, ahead, added)
        rest = For(over.name, maximum(lower, before), end, added)
        loop = For(along.name, axis.lower, axis.upper, (rest, *stores))
        return (*(s for start in starts for s in start), first, loop)

    def zeros(self, copy: int) -> list[Stmt]:
        """Something in the registers of a row that is not touched: nobody looks at what is added to it."""
        zero = Literal(0.0 if self.dtype.is_float else 0, self.dtype)
        return [Assign(self.acc, self.place(n), zero, self.lane) for n in self.numbers(copy)]

    def numbers(self, copy: int) -> range:
        return range(copy * self.each, (copy + 1) * self.each)

    def place(self, number: int) -> tuple[Int, ...]:
        return (Const(number), self.element)

    def ends(self, copy: int, at: dict[str, Int], valid: Bool) -> tuple[list[Stmt], list[Stmt]]:
        """What comes before and after the loops for one copy."""
        assign = self.stage.assign
        index = place_index(assign.index, at)
        stored = Read(assign.tensor, index, self.dtype)
        start: Value = stored if self.stage.init is None else place(self.stage.init, at)
        first = copy * self.each
        if not self.shape.across:
            begin = Assign(self.acc, self.place(first), start, self.lane, valid)
            return [begin], [Assign(assign.tensor, index, self.held(first), self.lane, valid)]
        stmts = self.one_register(first)
        narrowed, held, number = self.narrowed((self.acc, self.nan), Const(first), 1)
        total = self.total(held, number, Const(0))
        return self.neutral(copy), [*stmts, *narrowed, Assign(assign.tensor, index, combine(assign.op, start, total))]

    def neutral(self, copy: int) -> list[Stmt]:
        """What the accumulators of one copy start from."""
        neutral = Literal(identity(self.op, self.dtype), self.dtype)
        begins: list[Stmt] = [Assign(self.acc, self.place(n), neutral, self.lane) for n in self.numbers(copy)]
        if self.nan:
            none = Literal(-0.0, self.dtype)  # leaves every number as it is, -0 too
            begins += [Assign(self.nan, self.place(n), none, self.lane) for n in self.numbers(copy)]
        return begins

    def total(self, held: Pair, number: Int, element: Int) -> Value:
        """An element of a register of results."""
        acc, nan = (Read(name, (number, element), self.dtype) for name in held)
        return Arith("+", acc, nan, self.dtype) if self.nan else acc

    def one_register(self, first: int) -> list[Stmt]:
        """All accumulators of one copy into the first."""
        stmts: list[Stmt] = []
        held, count = (self.acc, self.nan), self.each
        while count > 1:
            count //= 2
            for n in range(first, first + count):
                stmts += self.joined(held, self.place(n), held, (self.place(n), self.place(n + count)), self.lane)
        return stmts

    def narrowed(self, held: Pair, number: Int, left: int) -> tuple[list[Stmt], Pair, Int]:
        """A register's lanes combined, halves onto halves, into narrower registers; with the one that has so many lanes
        `left`, and its number."""
        stmts: list[Stmt] = []
        width = self.width
        while width > left:
            width //= 2
            lane, e = (Lane(LANE, width), Var(LANE)) if width > 1 else (None, Const(0))
            half = self.half(width)
            stmts += self.joined(half, (Const(0), e), held, ((number, e), (number, e + width)), lane)
            held, number = half, Const(0)
        return stmts, held, number

    # -- rows side by side --------------------------------------------------------------------------------------------

    def merges_rows(self) -> bool:
        """Whether the lanes of several rows are combined together: two shuffles for each row but one and log2(lanes a
        row), in place of log2(lanes) for each row."""
        rows = len(self.ats)
        return self.shape.across and rows & (rows - 1) == 0 and 1 < rows <= self.width

    def rows_stored(self, row: str) -> list[Stmt]:
        """The accumulators of all copies combined, a row in each lane of one register, and stored. Two registers of
        rows become one where the first lanes of pairs, and the second ones, meet: its lanes belong to both in turn."""
        stmts = [s for copy in range(len(self.ats)) for s in self.one_register(copy * self.each)]
        numbers, bit = [copy * self.each for copy in range(len(self.ats))], 0
        while len(numbers) > 1:
            stage = Exchange(0, bit, max(bit, 1) if self.width > 2 else bit)
            for low, high in zip(numbers[::2], numbers[1::2], strict=True):
                stmts += self.exchanged(stage, (low, high))
            numbers, bit = numbers[::2], bit + 1
        narrowed, held, number = self.narrowed((self.acc, self.nan), Const(0), len(self.ats))
        lanes = self.ats[0] | {row: self.ats[0][row] + Var(LANE)}
        index = place_index(self.stage.assign.index, lanes)
        start = Read(self.stage.assign.tensor, index, self.dtype)
        first = start if self.stage.init is None else place(self.stage.init, lanes)
        total = self.total(held, number, Var(LANE))
        value = combine(self.stage.assign.op, first, total)
        return [*stmts, *narrowed, Assign(self.stage.assign.tensor, index, value, Lane(LANE, len(self.ats)))]

    def exchanged(self, stage: Exchange, numbers: tuple[int, int]) -> list[Stmt]:
        """Two registers exchange lanes and are combined into the first."""
        stmts: list[Stmt] = []
        into = self.acc, self.nan
        for name, other in zip(into, self.paired(), strict=True):
            if name:
                held = [Read(name, self.place(n), self.dtype) for n in numbers]
                stmts += exchanged([stage], held, Lane(LANE, self.width), (other, other))[0]
        both = self.place(0), self.place(1)
        return [*stmts, *self.joined(into, self.place(numbers[0]), self.paired(), both, self.lane)]

    def paired(self) -> Pair:
        """Registers of two vectors."""
        if not self.pair[0]:
            names = self.acc, self.nan
            acc, nan = (n and self.register(f"{n}_pair", self.dtype, 2) for n in names)
            self.pair = acc, nan
        return self.pair

    def half(self, width: int) -> Pair:
        """Registers of one vector of so many lanes."""
        if width not in self.halves:
            shape, declare = (1, width), self.of.ctx.declare
            acc, nan = (n and declare(f"{n}_{width}", self.dtype, shape, "register").name for n in (self.acc, self.nan))
            self.halves[width] = acc, nan
        return self.halves[width]

    def joined(
        self, into: Pair, index: Places, held: Pair, both: tuple[Places, Places], lane: Lane | None
    ) -> list[Stmt]:
        """Two vectors of the accumulators combined, in a register."""
        one, other = (tuple(Read(name, place, self.dtype) for name in held) for place in both)
        if not self.nan:
            return [Assign(into[0], index, combine(self.op, one[0], other[0]), lane)]
        return [
            Assign(into[0], index, self.greater(other[0], one[0]), lane),
            Assign(into[1], index, Arith("+", one[1], other[1], self.dtype), lane),
        ]

    def greater(self, new: Value, held: Value) -> Value:
        """The extreme of two numbers; `held` where `new` is NaN."""
        return Select(Comparison(SIGNS[self.op], new, held), new, held, self.dtype)

    # -- loops --------------------------------------------------------------------------------------------------

    def loops(self, k: int, ats: Ats) -> tuple[Stmt, ...]:
        if k == len(self.axes):
            return self.updates(ats, 1, None)
        axis = self.axes[k]
        if self.shape.across and k == len(self.axes) - 1:
            return self.chunks(axis, ats)
        var = Var(identifier(axis.name))
        lower, upper = substitute_int(axis.lower, ats[0]), substitute_int(axis.upper, ats[0])
        return (For(var.name, lower, upper, self.loops(k + 1, tuple(at | {axis.name: var} for at in ats))),)

    def chunks(self, axis: Axis, ats: Ats) -> tuple[Stmt, ...]:
        """The innermost reduction: a vector for each accumulator, then single vectors, then a part of one."""
        var, w = Var(identifier(axis.name)), self.shape.width
        low, high = substitute_int(axis.lower, ats[0]), substitute_int(axis.upper, ats[0])
        length = Const(axis.extent) if is_constant(axis) else maximum(high - low, 0)
        done: Int = Const(0)
        stmts: list[Stmt] = []
        for count in dict.fromkeys((self.each, 1)):
            step = w * count
            end = done + (length - done) // step * step
            if end != done:
                here = tuple(at | {axis.name: var + (Var(LANE) + u * w)} for at in ats for u in range(count))
                stmts.append(For(var.name, low + done, low + end, self.updates(here, count, None), step=step))
            done = end
        rest = length - done
        if rest != Const(0):
            here = tuple(at | {axis.name: Var(LANE) + (low + done)} for at in ats)
            stmts += self.updates(here, 1, rest)
        return tuple(stmts)

    def updates(self, ats: Ats, count: int, only: Int | None) -> tuple[Stmt, ...]:
        """One update for each place; `count` of them belong to each copy. `only`: so many lanes, where not all."""
        stmts: list[Stmt] = []
        for n, at in enumerate(ats):
            copy, u = divmod(n, count)
            held = self.held(copy * self.each + u)
            term = place(self.value, at, partial(self.of_copy, copy=copy))
            if self.producer is not None:
                stmts += self.producer.stored(at, n, copy, TRUE if only is None else Var(LANE) < only)
                term = self.producer.taken(term, n)
            if self.nan:
                stmts += self.apart(copy * self.each + u, term, only)
                continue
            new = accumulated(self.op, held, term, self.of.part.fused)
            value = guarded(tuple(place_condition(g, at) for g in self.stage.guards), new, held)
            if only is not None:
                value = Select(Var(LANE) < only, value, held, self.dtype)
            stmt = Assign(self.acc, self.place(copy * self.each + u), value, self.lane)
            stmts += under(guard_formula(self.stage, at), stmt, held)
        return tuple(stmts)

    def apart(self, number: int, term: Value, only: Int | None) -> list[Stmt]:
        """The update of an extreme: the greater number, and the term where it is NaN. `only`: so many lanes."""
        place, held = self.place(number), self.held(number)
        now = Read(self.now, place, self.dtype)
        new, valid = self.greater(now, held), TRUE if only is None else Var(LANE) < only
        if only is not None:
            new = Select(valid, new, held, self.dtype)
        unknown = Select(Comparison("!=", now, now), now, Read(self.nan, place, self.dtype), self.dtype)
        return [
            Assign(self.now, place, term, self.lane, valid),
            Assign(self.acc, place, new, self.lane),
            Assign(self.nan, place, unknown, self.lane),
        ]

    # -- what the loops leave alone -----------------------------------------------------------------------------

    def invariants(self) -> tuple[Stmt, ...]:
        """Parts of the value that the loops do not change, in registers; `value` then reads them."""
        if self.stage.guards or not all(is_constant(a) and a.extent > 0 for a in self.axes):
            return ()
        inner = frozenset(a.name for a in self.axes)
        split = split_invariant(self.value, inner, self.stage.assign.tensor)
        stmts: list[Stmt] = []
        held: list[Value] = []
        for part in split.parts:
            name = self.register(f"{self.stage.assign.tensor}_inv", part.dtype, len(self.ats))
            for copy, at in enumerate(self.ats):
                stmts.append(Assign(name, self.place(copy), place(part, at), self.lane))
            self.kept.add(name)
            held.append(Read(name, (Const(0), self.element), part.dtype))
        self.value = split.with_parts(tuple(held))
        return tuple(stmts)

    def of_copy(self, read: Read, copy: int) -> Read:
        """A read of an invariant's register as that of one copy."""
        return Read(read.tensor, self.place(copy), read.dtype) if read.tensor in self.kept else read


def consecutive(ats: Ats) -> str | None:
    """The axis along which the copies lie side by side, one after the other; None where there is none, or one copy."""
    moving = [name for name in ats[0] if any(at[name] != ats[0][name] for at in ats)]
    if len(moving) != 1 or any(at[moving[0]] != ats[0][moving[0]] + n for n, at in enumerate(ats)):
        return None
    return moving[0]


def identity(op: str, dtype: DType) -> int | float:
    """What leaves every other number as it is under the combination of an update."""
    match op:
        case "+=":
            return 0.0 if dtype.is_float else 0
        case "*=":
            return 1.0 if dtype.is_float else 1
        case "max=":
            return float("-inf") if dtype.is_float else dtype.limits[0]
        case "min=":
            return float("inf") if dtype.is_float else dtype.limits[1]
        case _:
            raise AssertionError(op)
