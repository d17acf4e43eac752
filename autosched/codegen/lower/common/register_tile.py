"""Emits one register tile: start the accumulators, run the reduction with unrolled intrinsic calls, store the
results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from math import gcd, prod

from autosched.codegen.lower.common.context import identifier
from autosched.codegen.lower.common.guarded_steps import (
    Spans,
    any_counts,
    counted_vectors,
    spans,
    stepped,
)
from autosched.codegen.lower.common.operands.computed_source import ComputedSource
from autosched.codegen.lower.common.operands.edges import without_guards
from autosched.codegen.lower.common.operands.left_behind import LeftBehind
from autosched.codegen.lower.common.operands.sources import MemorySource
from autosched.codegen.lower.common.positions import Position
from autosched.codegen.lower.common.prefetches import ahead
from autosched.codegen.lower.common.tile_finish import FinishingTile
from autosched.codegen.lower.common.tile_places import Places, Rows
from autosched.codegen.lower.common.tile_start import StartingTile
from autosched.codegen.lower.common.window_loads import WindowRegisters, shared_step
from autosched.codegen.passes.substitute import bind, decides
from autosched.codegen.tree.kernel import Assign, For, If, IntrinsicCall, RegisterRef, Stmt
from autosched.ir.value import Read
from autosched.logic import FALSE, TRUE, Bool, Const, Int, Var, all_of, maximum, minimum
from autosched.logic.walk import substitute_int
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.steps import APART, COLUMNS, DIRECT, PANEL, StreamedWindow
from autosched.tiling.steps.common.computed import group_units
from autosched.tiling.steps.cpu.edges import EDGES
from autosched.tiling.steps.cpu.prefetch import FAR, FAR_BYTES, NEXT, NO, PREFETCH
from autosched.tiling.steps.cpu.skip_guarded import settled, unrolled, visited


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
class RegisterTile(StartingTile, FinishingTile):
    """Emits register tiles of one part, from the start to the stores."""

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
            load = self.load(o.name, at)
            holds = load[0].value if o.state and isinstance(load[0], Assign) else None
            refs[o.name] = RegisterRef(self.registers[o.name], self.register_index(held), holds=holds)
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
        n, source = self.intrinsic.operands[operand].elements, self.sources[operand]
        value, valid = source.load(at, self.element(n))
        index = (*self.register_index(self.held(operand)), self.element(n))
        filled = Assign(self.registers[operand], index, value, self.lane(n), valid)
        if not isinstance(source, ComputedSource) or (behind := source.behind) is None:
            return (filled,)
        register = Read(filled.buffer, index, behind.buffer.dtype)
        return (filled, Assign(behind.buffer.name, behind.index(at, self.element(n)), register, self.lane(n)))

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
        if isinstance(self.sources[operand], ComputedSource | LeftBehind):
            return ()  # `ask_narrow` does, or it is in the first cache
        return (ahead(self.nest, operand, self.sources[operand], at, self.far(operand, distance)),)

    def far(self, operand: str, distance: int) -> int:
        """Depth units ahead."""
        o, source = self.intrinsic.operands[operand], self.sources[operand]
        if distance != FAR or not isinstance(source, MemorySource) or source.kind not in (PANEL, COLUMNS):
            return distance
        registers = prod(self.ctx.values[self.names.register(a)] for a in self.own(operand))
        return max(distance, -(-FAR_BYTES // (registers * o.elements * o.dtype.bytes)))


def where_it_holds(condition: Bool, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Statements under a condition: in a branch, where that is not decided."""
    if condition == FALSE:
        return ()
    return body if condition == TRUE else (If(condition, body),)


def _formula(value: Bool | bool) -> Bool:
    if isinstance(value, bool):
        return TRUE if value else FALSE
    return value
