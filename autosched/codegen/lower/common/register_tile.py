"""Emits one register tile: start the accumulators, run the reduction with unrolled intrinsic calls, store the
results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import gcd, prod
from types import MappingProxyType

from autosched.codegen.lower.common.context import Context, identifier
from autosched.codegen.lower.common.fused_stages import epilogue, fused_start
from autosched.codegen.lower.common.guarded_steps import (
    Parts,
    Spans,
    all_count,
    any_counts,
    counted_vectors,
    spans,
    stepped,
)
from autosched.codegen.lower.common.operands.computed_source import ComputedSource
from autosched.codegen.lower.common.operands.edges import without_guards
from autosched.codegen.lower.common.operands.sources import MemorySource, OperandSource
from autosched.codegen.lower.common.positions import LANE, Position, elements
from autosched.codegen.lower.common.prefetches import NextBlock, ahead
from autosched.codegen.lower.common.sums import Sums
from autosched.codegen.lower.common.transposed_stores import StoreTransposer
from autosched.codegen.lower.common.window_loads import WindowRegisters, shared_step
from autosched.codegen.passes.substitute import bind, decides
from autosched.codegen.tree.kernel import Assign, For, If, IntrinsicCall, Lane, Prefetch, RegisterRef, Stmt
from autosched.codegen.tree.rename import place, place_index
from autosched.ir.value import Literal, Read, Select, Value
from autosched.logic import FALSE, TRUE, Bool, Const, Int, Var, all_of, free_vars, maximum, minimum
from autosched.logic.walk import substitute_bool, substitute_int
from autosched.tensorize.intrinsic import Intrinsic, Operand
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.plan import TensorPart
from autosched.tiling.steps import APART, COLUMNS, DIRECT, PANEL, StepNames, StreamedWindow
from autosched.tiling.steps.common.computed import group_units
from autosched.tiling.steps.cpu.edges import EDGES
from autosched.tiling.steps.cpu.prefetch import FAR, FAR_BYTES, NEXT, NO, PREFETCH, PREFETCH_OUT
from autosched.tiling.steps.cpu.skip_guarded import settled, unrolled, visited

Places = dict[str, Position]
Rows = Mapping[str, tuple[Int, Int]]
"""The first row of a tile and the one after the last, by axis."""


@dataclass(frozen=True)
class DepthRange:
    """The units of the blocked reduction axis (on a CPU `nest.blocked_reduction`, else the depth) that this visit of
    the register tile covers; whether it is the first and the last visit. `whole`: operands hold zeros beyond the axis's
    end, so its last unit is like any other."""

    lower: Int
    upper: Int
    first: Bool | bool
    last: Bool | bool
    whole: bool = False

    def of_all(self) -> bool:
        """Whether this visit covers the axis from end to end."""
        return self.first is True and self.last is True


@dataclass(frozen=True, eq=False)
class RegisterTile:
    """Emits register tiles of one part; `tile_registers.declared` makes one, whose registers all variants share.

    `tiled`: the axes of the tile. `owner`: the worker, where accumulators outlive one loop over workers and each has
    its own. `sums`: where accumulators wait between visits, if not in the output. `waiting`: where they wait for a loop
    over the tile's rows that computes the fused stages behind, if not in registers. `hold_all`: there are registers for
    all units of every operand. `left`: the guards that leave steps out here. `alike`: for axes whose units keep the
    same rows, one of them. `computed_from`: the unit with which calls begin, of axes where that is not 0."""

    part: TensorPart
    sources: Mapping[str, OperandSource]
    ctx: Context
    tiled: tuple[NestAxis, ...]
    acc: str
    registers: Mapping[str, str]
    owner: tuple[Int, ...] = ()
    sums: Sums | None = None
    waiting: Sums | None = None
    hold_all: bool = False
    window: StreamedWindow | None = None
    kept_sums: str = ""
    left: Parts = ()
    alike: Places = field(default_factory=dict)
    computed_from: Mapping[str, int] = field(default_factory=dict)
    unroll: int = 1
    skips: NestAxis | None = None
    next: NextBlock | None = None
    transposer: StoreTransposer | None = None

    @property
    def nest(self) -> Nest:
        return self.part.nest

    @property
    def names(self) -> StepNames:
        return self.part.names

    @property
    def intrinsic(self) -> Intrinsic:
        return self.nest.intrinsic

    @property
    def accumulator(self) -> Operand:
        return self.intrinsic.accumulator

    @property
    def cut(self) -> NestAxis | None:
        """The reduction axis that blocks cut."""
        return self.nest.blocked_reduction if self.part.scheme == "cpu" else self.nest.depth

    def own(self, operand: str) -> tuple[NestAxis, ...]:
        return tuple(a for a in self.tiled if a in self.nest.operand_axes(operand))

    def held(self, operand: str) -> tuple[NestAxis, ...]:
        """Axes over which all the operand's registers are kept: those it has, unless they are the outermost ones."""
        return held_axes(self.nest, operand, self.tiled, self.hold_all)

    def emit(self, at: Places, counts: dict[str, int], depth: DepthRange | None) -> tuple[Stmt, ...]:
        """The whole life of one register tile; `counts` gives its size in units along each tiled axis."""
        first, last = (depth.first, depth.last) if depth else (True, True)
        at = at | {a.name: Position(None, Const(0)) for a in self.nest.reduction}
        return (
            *self.prefetch_out(at, counts),
            *self.start(at, counts, _formula(first)),
            *self.counted(at, counts, depth),
            *self.drop(at, counts, _formula(first)),
            *self.finish(at, counts, _formula(last)),
        )

    def counted(self, at: Places, counts: dict[str, int], depth: DepthRange | None) -> tuple[Stmt, ...]:
        """The reduction where guards over spatial axes let some sum count, of no vectors behind the last of these, nor
        in front of the first."""
        counted, made = any_counts(self.nest, at, counts), list[Stmt]()
        if self.part.scheme != "cpu":
            return where_it_holds(counted, self.reduce(at, counts, depth))
        for some in counted_vectors(self.nest, at, counts):
            tile = replace(self, computed_from=some.first) if some.first and not self.window else self
            made += where_it_holds(all_of(counted, some.where), tile.reduce(at, some.counts, depth))
        return tuple(made)

    # -- where things are ------------------------------------------------------------------------------------------

    def register_index(self, axes: tuple[NestAxis, ...]) -> tuple[Int, ...]:
        return tuple(Var(f"{identifier(a.name)}r") for a in axes)

    def acc_index(self) -> tuple[Int, ...]:
        return (*self.owner, *self.register_index(self.tiled))

    def over(
        self,
        axes: tuple[NestAxis, ...],
        counts: dict[str, int],
        body: tuple[Stmt, ...],
        kept: Rows = MappingProxyType({}),
    ) -> tuple[Stmt, ...]:
        """Unrolled loops over units of the register tile; over those in `kept` alone where it names an axis."""
        for axis in reversed(axes):
            var, n = f"{identifier(axis.name)}r", counts[axis.name]
            lower, upper = kept.get(axis.name, (Const(0), Const(n)))
            body = bind(body, {var: Const(0)}) if n == 1 else (For(var, lower, upper, body, "unrolled"),)
        return body

    def output(self, at: Places, lanes: Mapping[str, Int] | None = None) -> tuple[dict[str, Int], Bool]:
        """Program axes of an accumulator's lane, and which lanes the stage writes."""
        positions = elements(self.nest, at, self.lane_coordinates() if lanes is None else lanes)
        valid = all_of(*(positions[a.name] < a.extent for a in self.nest.spatial if at[a.name].partial))
        axes = self.nest.at(positions)
        return axes, all_of(valid, substitute_bool(self.nest.written, axes))

    def lane_coordinates(self) -> dict[str, Int]:
        """The intrinsic's axes at an accumulator's lane."""
        return self.nest.lane_coordinates(self.accumulator.name, self.element(self.accumulator.elements))

    @staticmethod
    def element(count: int) -> Int:
        return Var(LANE) if count > 1 else Const(0)

    def lane(self, count: int) -> Lane | None:
        return Lane(LANE, count) if count > 1 else None

    def acc_read(self) -> Read:
        index = (*self.acc_index(), self.element(self.accumulator.elements))
        return Read(self.acc, index, self.accumulator.dtype)

    # -- start ------------------------------------------------------------------------------------------------------

    def prefetch_out(self, at: Places, counts: dict[str, int]) -> tuple[Stmt, ...]:
        if not PREFETCH_OUT.of(self.names, self.ctx.values):
            return ()
        axes, _ = self.output(at)
        target = self.nest.stage.assign
        first = tuple(substitute_int(i, {LANE: Const(0)}) for i in place_index(target.index, axes))
        return self.over(self.tiled, counts, (Prefetch(target.tensor, first, write=True),))

    def start(self, at: Places, counts: dict[str, int], first: Bool) -> tuple[Stmt, ...]:
        """Accumulators take the initial value on the first visit, the stored partial sums on later ones; none where
        the intrinsic overwrites them."""
        if not self.intrinsic.accumulates:
            self.ctx.tensor(self.nest.stage.assign.tensor)
            return ()
        return self.started(at, counts, first, lambda value: value)

    def drop(self, at: Places, counts: dict[str, int], first: Bool) -> tuple[Stmt, ...]:
        """Where a guard over spatial axes does not hold, accumulators take back what they started with."""
        if self.nest.accumulate_mask == TRUE:
            return ()
        axes, _ = self.output(at)
        counted = substitute_bool(self.nest.accumulate_mask, axes)
        if LANE not in free_vars(counted) and not self.owner:
            return self.started(at, counts, first, lambda value: value, ~counted)
        taken = self.started(at, counts, first, lambda v: Select(counted, self.acc_read(), v, v.dtype))
        some = ~all_count(self.nest, at, counts) if self.part.scheme == "cpu" else TRUE
        return taken if some == TRUE else (If(some, taken),)

    def started(
        self, at: Places, counts: dict[str, int], first: Bool, taken: Callable[[Value], Value], only: Bool = TRUE
    ) -> tuple[Stmt, ...]:
        """Accumulators take `taken` of the value that this visit starts with, `only` where that holds."""
        stage, n = self.nest.stage, self.accumulator.elements
        axes, valid = self.output(at)
        self.ctx.tensor(stage.assign.tensor)
        index = (*self.acc_index(), self.element(n))
        stored = Read(stage.assign.tensor, place_index(stage.assign.index, axes), self.accumulator.dtype)

        def assign(value: Value, valid: Bool) -> tuple[Stmt, ...]:
            stmt: Stmt = Assign(self.acc, index, taken(value), self.lane(n), valid)
            return self.over(self.tiled, counts, (stmt if only == TRUE else If(only, (stmt,)),))

        if self.part.start is not None:
            initial = assign(fused_start(self.part.start, axes, self.ctx), valid)
        elif stage.init is None:
            initial = assign(stored, valid)
        else:
            initial = assign(place(stage.init, axes), TRUE if isinstance(stage.init, Literal) else valid)
        if first == TRUE or (stage.init is None and self.part.start is None and self.sums is None):
            return initial
        if self.sums is not None:
            stored = replace(stored, tensor=self.sums.buffer, index=self.sums.index(at, index))
        return (If(first, initial), If(~first, assign(stored, valid)))

    # -- reduce -----------------------------------------------------------------------------------------------------

    def reduce(self, at: Places, counts: dict[str, int], depth: DepthRange | None) -> tuple[Stmt, ...]:
        """The reduction loops; where tiles at the edges are apart, once more for those that need no guard."""
        checked = self.reduction_loops(at, counts, depth)
        if EDGES.of(self.names, self.ctx.values) != APART:
            return checked
        free, needed = without_guards(self.nest, self.sources, at, counts)
        if needed == TRUE:
            return checked
        return (If(needed, replace(self, sources=free).reduction_loops(at, counts, depth)), If(~needed, checked))

    def reduction_loops(self, at: Places, counts: dict[str, int], depth: DepthRange | None) -> tuple[Stmt, ...]:
        others = [a for a in self.nest.reduction if a is not self.nest.depth]
        if self.window is not None:
            others = [a for a in others if a not in self.window.axes]

        apart = unrolled(self.nest, self.skips) if self.skips and not at[self.skips.name].inside else ()
        inner = self.unguarded(at, counts, others)

        def loop(k: int, at: Places, alike: Places) -> tuple[Stmt, ...]:
            if k == len(others):
                if self.window:
                    return self.whole(at, counts, self.window)
                return inner.standing(alike).depth_loop(at, counts, depth)
            axis, var = others[k], f"{identifier(others[k].name)}u"
            inside = at | {axis.name: Position(None, Var(var), axis.extent % axis.unit != 0)}
            if axis.units == 1:
                return bind(loop(k + 1, inside, alike), {var: Const(0)})
            lower, upper = visited(self.nest, axis, self.single(at, counts, others[:k]), Const(0), axis.units)
            if axis is self.cut and depth is not None and not depth.of_all():
                lower, upper = maximum(lower, depth.lower), minimum(upper, depth.upper)
            if axis not in apart:
                return (For(var, lower, upper, loop(k + 1, inside, alike)),)

            def one(u: int) -> Places:
                return {**alike, axis.name: Position(None, Const(u))}

            def asked(u: int) -> tuple[Bool, Rows]:
                return all_of(lower <= u, upper > u), self.kept(at | one(u), counts)

            each: list[Stmt] = []
            for (condition, _), units in groupby(range(axis.units), asked):
                run = list(units)
                if len(run) > 1 and condition == TRUE:
                    body = loop(k + 1, inside, one(run[0]))
                    if not decides(var, body):
                        each.append(For(var, Const(run[0]), Const(run[-1] + 1), body))
                        continue
                body = loop(k + 1, inside, alike)
                for u in run:
                    each += bind((If(all_of(lower <= u, upper > u), body),), {var: Const(u)})
            return tuple(each)

        return loop(0, at, {})

    def standing(self, alike: Places) -> RegisterTile:
        """This tile where a loop runs over units of the window for which the same rows are kept: `alike` has one of
        them for each such axis."""
        return replace(self, alike=alike) if alike else self

    def single(self, at: Places, counts: dict[str, int], outer: list[NestAxis]) -> dict[str, Int]:
        """Axes with one position in this tile and in the reduction loops `outer`; none where workers share loops."""
        if self.owner:
            return {}
        fixed = [a for a in (*self.nest.rows, *outer) if a.unit == 1 and counts.get(a.name, 1) == 1]
        return {a.name: substitute_int(at[a.name].unit, {f"{identifier(a.name)}r": Const(0)}) for a in fixed}

    def kept(self, at: Places, counts: dict[str, int]) -> Rows:
        """The first of the tile's rows, or vectors, that guards do not rule out here, and the one after the last."""
        some: Rows = {n: (Const(first), Const(counts[n])) for n, first in self.computed_from.items()}
        row = self.skips
        if row is None or counts[row.name] == 1 or at[row.name].inside:
            return some
        at = at | self.alike
        window = {a.name: at[a.name].unit for a in unrolled(self.nest, row)}
        first = substitute_int(at[row.name].unit, {f"{identifier(row.name)}r": Const(0)})
        return {**some, row.name: visited(self.nest, row, window, first, counts[row.name])}

    def unguarded(self, at: Places, counts: dict[str, int], loops: list[NestAxis]) -> RegisterTile:
        """This tile with direct reads free of guards that its loops already see to."""
        single = frozenset(self.single(at, counts, []))
        rows = frozenset({self.skips.name} if self.skips and counts[self.skips.name] > 1 else ())
        over = frozenset(a.name for a in loops if a.units > 1)
        free = {
            name: replace(source, inside=True)
            for name, source in self.sources.items()
            if isinstance(source, MemorySource)
            and source.kind == DIRECT
            and not self.owner
            and settled(self.nest, name, single, rows, over)
        }
        return replace(self, sources={**self.sources, **free}) if free else self

    def keep(self, at: Places, counts: dict[str, int]) -> tuple[Stmt, ...]:
        """Fills registers with the parts of computed operands that stay from here on."""
        stmts: list[Stmt] = []
        for o in self.intrinsic.inputs:
            source = self.sources[o.name]
            if isinstance(source, ComputedSource):
                for there, value, valid in source.keep(at, self.element(o.elements)):
                    index = tuple(i for i in there.index if isinstance(i, Int))
                    stmt = Assign(there.tensor, index, value, self.lane(o.elements), valid)
                    stmts += self.over(self.own(o.name), counts, (stmt,))
        return tuple(stmts)

    def depth_loop(self, at: Places, counts: dict[str, int], depth: DepthRange | None) -> tuple[Stmt, ...]:
        """The depth, after what stays all along it."""
        if self.group > 1:
            return self.depth_units(at, counts, depth)
        return (*self.keep(at, counts), *self.depth_units(at, counts, depth))

    def depth_units(self, at: Places, counts: dict[str, int], depth: DepthRange | None) -> tuple[Stmt, ...]:
        axis = self.nest.depth
        if axis is None or depth is None:
            return self.step(at, counts, None)
        if axis is not self.cut:
            depth = DepthRange(Const(0), Const(axis.units), True, True, depth.whole)
        var = f"{identifier(axis.name)}u"
        full, rest = (axis.units, 0) if depth.whole else (axis.full_units, axis.extent % axis.unit)
        stmts: list[Stmt] = []
        found = spans(self.nest, self.left, axis, at, counts)
        if self.left and found.asked != self.left:
            return self.visited_depth(at, counts, axis, depth, found)
        if (group := self.group) > 1:
            return self.groups(at, counts, axis, depth, group)
        if full:
            upper = depth.upper if not rest else minimum(depth.upper, full)
            body = self.unrolled_steps(at, counts, axis, var, depth.lower)
            if (
                isinstance(depth.lower, Const)
                and isinstance(upper, Const)
                and upper.value - depth.lower.value == self.unroll
            ):
                stmts += bind(body, {var: depth.lower})
            else:
                stmts.append(For(var, depth.lower, upper, body, "serial", self.unroll))
        if rest:
            here = Position(None, Const(full), partial=True)
            tail = self.step(at | {axis.name: here}, counts, None)
            reached = depth.upper > full
            stmts += tail if reached == TRUE else (If(reached, tail),)
        return tuple(stmts)

    @property
    def group(self) -> int:
        """Depth units that are taken together, since some of what operands are computed from stays for them."""
        return gcd(*(g for o in self.nest.computed if (g := group_units(self.nest, o)) > 1))

    def groups(
        self, at: Places, counts: dict[str, int], axis: NestAxis, depth: DepthRange, group: int
    ) -> tuple[Stmt, ...]:
        """The depth in groups of units, each in a loop of its own: what stays for a group is loaded once there."""
        var, number = f"{identifier(axis.name)}u", Var(f"{identifier(axis.name)}g")
        start = number * group
        upper: Int = Const(group) if axis.units % group == 0 else minimum(group, Const(axis.units) - start)
        body = self.unrolled_steps(at, counts, axis, var, Const(0), start)
        inner: tuple[Stmt, ...] = (For(var, Const(0), upper, body, "serial", self.unroll),)
        if upper == Const(self.unroll):
            inner = bind(body, {var: Const(0)})
        inner = (*self.keep(at | {axis.name: Position(None, start, group=start)}, counts), *inner)
        first, last = depth.lower // group, (depth.upper + (group - 1)) // group
        note = f"groups of {group} units of {axis.name}"
        return (For(number.name, first, last, inner, note=note),)

    def visited_depth(
        self, at: Places, counts: dict[str, int], axis: NestAxis, depth: DepthRange, found: Spans
    ) -> tuple[Stmt, ...]:
        """The depth where guards bound it: what they exclude is not visited, where they hold for the whole tile they
        are not asked. Bounds are moved out to whole trips of the loop."""
        trip, lower, upper = self.unroll, depth.lower, depth.upper
        var = f"{identifier(axis.name)}u"
        plain = replace(self, left=found.asked)

        def whole(bound: Int, up: int) -> Int:
            return lower + (bound - lower + (trip - 1) * up) // trip * trip

        (first, last), (begin, end) = found.reached, found.plain
        low = lower if first is None else maximum(lower, whole(first, 0))
        high = upper if last is None else minimum(upper, whole(last, 1))
        begins = low if begin is None else maximum(low, whole(begin, 1))
        stops = high if end is None else maximum(begins, minimum(high, whole(end, 0)))

        def loop(tile: RegisterTile, start: Int, stop: Int) -> tuple[Stmt, ...]:
            body = tile.unrolled_steps(at, counts, axis, var, lower)
            return (For(var, start, stop, body, "serial", trip),)

        return (
            *(() if begin is None else loop(self, low, minimum(begins, high))),
            *loop(plain, begins, stops),
            *(() if end is None else loop(self, stops, high)),
        )

    def unrolled_steps(
        self,
        at: Places,
        counts: dict[str, int],
        axis: NestAxis,
        var: str,
        start: Int,
        group: Int | None = None,
    ) -> tuple[Stmt, ...]:
        """One trip: `var`, the number of its first unit, counts from where its `group` begins."""
        before = Const(0) if group is None else group
        inner = f"{identifier(axis.name)}v"
        unit = Var(var) + Var(inner) if self.unroll > 1 else Var(var)
        step = (before + Var(var), Var(inner)) if self.unroll > 1 else None
        here = Position(None, before + unit, group=group, step=step, trip=self.unroll)
        body = self.step(at | {axis.name: here}, counts, axis)
        if self.unroll > 1:
            body = (For(inner, Const(0), Const(self.unroll), body, "unrolled"),)
        body = (*self.ask_narrow(at | {axis.name: Position(None, before + Var(var))}, counts, axis), *body)
        if self.next is None:
            return body
        first = at | {axis.name: Position(None, Var(var))}
        return (*self.next.ask(self.sources[self.next.operand], first, counts, start), *body)

    def step(self, at: Places, counts: dict[str, int], ahead: NestAxis | None) -> tuple[Stmt, ...]:
        """All intrinsic calls of one depth unit, each operand loaded as far out as it can be."""
        loads: dict[int, list[Stmt]] = {}
        refs: dict[str, RegisterRef] = {}
        kept = self.kept(at, counts)
        for o in self.intrinsic.inputs:
            if (there := self.in_place(o.name, at)) is not None:
                refs[o.name] = there
                continue
            own, held = self.own(o.name), self.held(o.name)
            refs[o.name] = RegisterRef(self.registers[o.name], self.register_index(held))
            load = self.load(o.name, at)
            if held:
                asked = self.ask_ahead(o.name, at, ahead)
                loads.setdefault(0, []).extend(self.over(held, counts, (*load, *asked), kept))
            else:
                asked = self.ask_ahead(o.name, at, ahead) if own == self.tiled else ()  # it streams: no register reused
                loads.setdefault(len(own), []).extend((*load, *asked))
        refs[self.accumulator.name] = RegisterRef(self.acc, self.acc_index())
        call = IntrinsicCall(self.intrinsic, refs, self.zero_init(at))
        body = self.called(at, tuple(loads.get(len(self.tiled), ())), call)
        for level in reversed(range(len(self.tiled))):
            body = (*loads.get(level, ()), *self.over((self.tiled[level],), counts, body, kept))
        return body

    def in_place(self, operand: str, at: Places) -> RegisterRef | None:
        """Where the intrinsic itself takes an operand from; None for one that is loaded into registers."""
        return None

    def zero_init(self, at: Places) -> Bool:
        """Where a call is the first of its sum, and starts from zero itself."""
        return FALSE

    def called(self, at: Places, loads: tuple[Stmt, ...], call: IntrinsicCall) -> tuple[Stmt, ...]:
        """The call after its loads, less the steps that guards leave out."""
        if not self.left:
            return (*loads, call)
        lane = self.lane(self.accumulator.elements)
        return stepped(self.nest, self.left, at, loads, call, self.acc_read(), self.kept_sums, lane)

    def whole(self, at: Places, counts: dict[str, int], window: StreamedWindow) -> tuple[Stmt, ...]:
        """All calls of the innermost reduction loops, each register loaded once."""
        registers = WindowRegisters(self.registers, self.acc, self.acc_index())
        tile = [(a, counts[a.name]) for a in self.tiled]
        return shared_step(window, self.intrinsic, self.sources, registers, at, tile)

    def load(self, operand: str, at: Places) -> tuple[Stmt, ...]:
        n = self.intrinsic.operands[operand].elements
        value, valid = self.sources[operand].load(at, self.element(n))
        index = (*self.register_index(self.held(operand)), self.element(n))
        return (Assign(self.registers[operand], index, value, self.lane(n), valid),)

    def ask_narrow(self, at: Places, counts: dict[str, int], axis: NestAxis) -> tuple[Stmt, ...]:
        """What a trip asks for ahead of operands that are computed in the load: many registers share a line."""
        if PREFETCH.of(self.names, self.ctx.values) != FAR:
            return ()
        found = (self.sources[o.name] for o in self.intrinsic.inputs if axis in self.nest.operand_axes(o.name))
        asked = (s.ahead(at, counts, self.unroll) for s in found if isinstance(s, ComputedSource))
        return tuple(p for stmts in asked for p in stmts)

    def ask_ahead(self, operand: str, at: Places, axis: NestAxis | None) -> tuple[Stmt, ...]:
        distance = PREFETCH.of(self.names, self.ctx.values)
        if axis is None or distance in (NO, NEXT) or axis not in self.nest.operand_axes(operand):
            return ()
        if isinstance(self.sources[operand], ComputedSource):
            return ()  # `ask_narrow`
        return (ahead(self.nest, operand, self.sources[operand], at, self.far(operand, distance)),)

    def far(self, operand: str, distance: int) -> int:
        """Depth units ahead."""
        o, source = self.intrinsic.operands[operand], self.sources[operand]
        if distance != FAR or not isinstance(source, MemorySource) or source.kind not in (PANEL, COLUMNS):
            return distance
        registers = prod(self.ctx.values[self.names.register(a)] for a in self.own(operand))
        return max(distance, -(-FAR_BYTES // (registers * o.elements * o.dtype.bytes)))

    # -- finish -----------------------------------------------------------------------------------------------------

    def finish(self, at: Places, counts: dict[str, int], last: Bool) -> tuple[Stmt, ...]:
        """Partial or final sums go to memory where they are needed; fused stages follow on the last visit."""
        axes, valid = self.output(at)
        target, n = self.nest.stage.assign, self.accumulator.elements
        store = Assign(target.tensor, place_index(target.index, axes), self.acc_read(), self.lane(n), valid)
        stored = final = self.stores(counts, (store,))
        inside = [stage.stage.assign.tensor == target.tensor for stage in self.part.epilogue]
        whole: tuple[Stmt, ...]
        fused: list[Stmt] = []
        if self.waiting is not None:
            fused, whole = self.row_by_row(at, counts, self.waiting, axes, store)
        else:
            for k, stage in enumerate(self.part.epilogue):
                behind = epilogue(stage, target, self.acc_read(), axes, self.lane(n), valid, self.ctx)
                if self.transposer and self.part.keep and inside[k] and k == len(inside) - 1:
                    # As one, so that its reads turn.
                    final = self.stores(counts, (replace(store, value=behind[0].value),))
                else:
                    fused += self.stores(counts, behind)
            whole = (*fused, *(final if self.part.keep else ()))
        if last == TRUE:
            return whole
        if self.sums is not None:
            place_of_tile = self.sums.index(at, (*self.acc_index(), self.element(n)))
            there = Assign(self.sums.buffer, place_of_tile, self.acc_read(), self.lane(n), valid)
            return (If(~last, self.over(self.tiled, counts, (there,))), If(last, whole))
        if any(inside) or not self.part.keep:
            return (If(~last, stored), *((If(last, whole),) if whole else ()))
        return (*stored, *((If(last, tuple(fused)),) if fused else ()))

    def row_by_row(
        self, at: Places, counts: dict[str, int], waiting: Sums, axes: dict[str, Int], store: Assign
    ) -> tuple[list[Stmt], tuple[Stmt, ...]]:
        """The fused stages in a loop over the tile's rows, and the same with the `store` of what must reach memory."""
        n, row = self.accumulator.elements, self.tiled[0]
        place_of_tile = waiting.index(at, (*self.acc_index(), self.element(n)))
        held = replace(self.acc_read(), tensor=waiting.buffer, index=place_of_tile)
        hold = Assign(waiting.buffer, place_of_tile, self.acc_read(), self.lane(n))
        target = self.nest.stage.assign
        stages = [
            stmt
            for stage in self.part.epilogue
            for stmt in epilogue(stage, target, held, axes, self.lane(n), store.valid, self.ctx)
        ]

        def rows(behind: list[Assign]) -> Stmt:
            body = tuple(s for stmt in behind for s in self.over(self.tiled[1:], counts, (stmt,)))
            return For(f"{identifier(row.name)}r", Const(0), Const(counts[row.name]), body)

        together = self.over(self.tiled, counts, (hold,))
        fused = [*together, rows(stages)]
        kept = [replace(store, value=held)] if self.part.keep else []
        return fused, (*together, rows([*stages, *kept]))

    def stores(self, counts: dict[str, int], stores: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The tile's stores to memory, turned where that leaves fewer of them."""
        found: list[Stmt] = []
        for store in stores:
            transposed = self.transposer.stores(store, counts) if self.transposer else ()
            row = self.transposer.row if self.transposer and transposed else None
            found += self.over(tuple(a for a in self.tiled if a is not row), counts, transposed or (store,))
        return tuple(found)


def where_it_holds(condition: Bool, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Statements under a condition: in a branch, where that is not decided."""
    if condition == FALSE:
        return ()
    return body if condition == TRUE else (If(condition, body),)


def held_axes(
    nest: Nest, operand: str, tiled: tuple[NestAxis, ...], hold_all: bool = False
) -> tuple[NestAxis, ...]:
    """Axes of a tile over which all of an operand's registers are kept."""
    own = tuple(a for a in tiled if a in nest.operand_axes(operand))
    return own if hold_all or own != tiled[: len(own)] else ()


def _formula(value: Bool | bool) -> Bool:
    if isinstance(value, bool):
        return TRUE if value else FALSE
    return value
