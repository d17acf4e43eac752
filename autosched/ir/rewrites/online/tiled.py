"""`Tiled`: rows in tiles that share blocks, and the stages that only the pass reads computed inside it.

    for tile: for block:
        for row, q: S[row, q] = Σ Q K          was a stage of its own, for all of the axis
        for row, q: M[row] = max(M[row], S[row, q])
        …
        for row, e, q: O[row, e] += P[row, q] * V[q, e]

Every statement stands in loops over the tile's rows of its own, so products are products of matrices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from autosched.ir.dtypes import DTYPES
from autosched.ir.nodes import Assign, Axis, Guard, Loop, Stage, Statement
from autosched.ir.program import Program
from autosched.ir.rewrites.nesting import under
from autosched.ir.rewrites.online.block_runs import BlockRun, Reach, block_runs, has_room, runs_by_whole_blocks
from autosched.ir.rewrites.online.consumers import Consumer, consumer
from autosched.ir.rewrites.online.empty_rows import no_number_where
from autosched.ir.rewrites.online.extremes import extremes
from autosched.ir.rewrites.online.fused import WITHIN, Make, Moving, Pass, Places, StateUpdate, stem
from autosched.ir.rewrites.online.masks import Masked
from autosched.ir.rewrites.online.members import Cascade, Member, Stages
from autosched.ir.rewrites.online.states import MemberStates, replaced
from autosched.ir.value import (
    Arith,
    Comparison,
    Condition,
    Index,
    Literal,
    Logical,
    Read,
    Select,
    reads,
    substitute,
    substitute_condition,
    substitute_index,
)
from autosched.ir.variables import index_vars
from autosched.logic import Bool, Const, Int, Var, all_of, ceil_div, conjuncts, free_vars, interval, maximum
from autosched.logic.walk import substitute_int

NOTHING = {"=": 0.0, "+=": 0.0, "max=": -float("inf"), "min=": float("inf")}
"""What an update adds nothing with, by operator; a block that is filled holds zeros."""
SMALLEST, SMALLER = 16, 64
"""Elements of a block that some rows have a part of: between these, a power of two, no more than a tile has rows."""
FIRST, ROW = "first row of a tile", "row of a tile"
"""Stand for these rows; no axis of a program has such names."""


@dataclass(frozen=True)
class Sunk:
    """A stage that is computed block by block: `read` is how the members read it, `axes` what its own stand for."""

    stage: Stage
    read: Read
    axes: dict[str, Int]


def can_tile(cascade: Cascade) -> bool:
    """Whether the last of the rows has bounds that are known, on which no other row's depend."""
    last = cascade.rows[-1]
    return isinstance(last.lower, Const) and isinstance(last.upper, Const)


def sunk(program: Program, cascade: Cascade) -> tuple[Sunk, ...]:
    """Intermediates that nothing but the cascade reads, an element for each row and point of the axis."""
    stages = Stages.of(program)
    if len(cascade.axes) != 1:
        return ()
    found = []
    terms = [r for m in cascade.members for r in (*reads(m.term), *reads(m.init))]
    inner = _inside(program, cascade)
    for name in dict.fromkeys(r.tensor for r in terms):
        stage = stages.single.get(name)
        if stage is None or stage.guards or name in inner or not _only_for(program, name, inner):
            continue
        index = {r.index for r in terms if r.tensor == name}
        if len(index) == 1 and (stage.init is not None or stage.assign.op == "="):
            read = next(r for r in terms if r.tensor == name)
            places = _places(cascade, stage, read)
            if places is not None:
                found.append(Sunk(stage, read, places))
    return tuple(found)


def _inside(program: Program, cascade: Cascade) -> frozenset[str]:
    """The members, and the stages in their terms that nothing else reads, in the end: none that another one reads which
    stays as it is."""
    inner = cascade.names | cascade.inlined
    while outside := {n for n in inner - cascade.names if not _only_for(program, n, inner)}:
        inner -= outside
    return inner


def _only_for(program: Program, name: str, readers: Collection[str]) -> bool:
    """Whether a tensor is an intermediate, and the stages that read it write some of `readers`."""
    using = (
        s.assign.tensor
        for s in program.stages
        for r in (*s.reads, *(reads(s.init) if s.init is not None else ()))
        if r.tensor == name
    )
    return program.tensors[name].intermediate and set(using) <= set(readers)


def _places(cascade: Cascade, stage: Stage, read: Read) -> dict[str, Int] | None:
    """What the stage's own axes stand for, where the address is of rows and of the axis, each once."""
    allowed = {a.name for a in (*cascade.rows, *cascade.axes)}
    places: dict[str, Int] = {}
    for own, at in zip(stage.assign.index, read.index, strict=True):
        if not isinstance(own, Var) or not isinstance(at, Var) or at.name not in allowed:
            return None
        places[own.name] = at
    once = len(set(places.values())) == len(places)
    return places if once and Var(cascade.axes[0].name) in places.values() else None


@dataclass
class Tiled(Pass):
    """Builds the pass over tiles of rows."""

    tile: int = 1
    branches: bool = False
    """Whether a choice costs little: a tile is asked whether any of its results is not finite, and only then its rows;
    sums of stages that masks leave out are not computed."""
    skips: bool = True
    """Whether sums leave out what a mask does; else those of a block that it cuts are computed whole."""
    stages: tuple[Sunk, ...] = ()
    kept: dict[Read, Read] = field(default_factory=dict)
    stored: Masked | None = None
    """What is skipped, with reads of whole stages."""
    interior: bool = False
    """Whether blocks are under way that all rows have whole."""
    consumers: tuple[Consumer, ...] = ()
    peeled: bool = False
    """Whether what is left of the axis behind whole blocks is a block of its own."""
    tiles: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Loops over tiles, with the first and the last."""

    def taking(self, after: tuple[Statement, ...]) -> tuple[Statement, ...]:
        rows = {m.name: m.target.index for m in self.cascade.members}
        left = list(after)
        while left and (found := consumer(left[0], rows, self.cascade, self.program)) is not None:
            rows[found.assign.tensor] = found.assign.index
            self.consumers = (*self.consumers, found)
            left.pop(0)
        return tuple(left)

    def statements(self) -> tuple[Statement, ...]:
        self.sink()
        return super().statements()

    def sink(self) -> None:
        """Blocks of stages take the place of these."""
        self.stored = self.stored or self.skipped
        self.keep_blocks()
        members = tuple(
            replace(c, states=tuple(replace(s, term=replaced(s.term, self.kept)) for s in c.states))
            for c in self.stored.members
        )
        self.skipped = replace(self.stored, members=members)

    def keep_blocks(self) -> None:
        """New blocks of stages."""
        self.kept = {each.read: self.block_of_stage(each) for each in self.stages}

    def over_rows(self, *makes: Make) -> tuple[Statement, ...]:
        *outer, last = self.cascade.rows
        self.tile = min(self.tile, last.extent)
        count, rest = divmod(last.extent, self.tile)

        def tiles(make: Make, to: Places) -> tuple[Statement, ...]:
            name = self.names(f"{stem(last.name)}_tile")
            self.tiles[name] = 0, count - 1
            inner = make(to | {FIRST: Var(name) * self.tile + last.lower})
            return (Loop(Axis(name, Const(0), Const(count)), inner),)

        def left(make: Make, to: Places) -> tuple[Statement, ...]:
            return make(to | {FIRST: last.lower + count * whole})

        whole = self.tile
        body = tuple(s for make in makes for s in self.nest(tuple(outer), {}, partial(tiles, make)))
        if rest:
            self.tile = rest
            body += tuple(s for make in makes for s in self.nest(tuple(outer), {}, partial(left, make)))
        return body

    def inside(self, to: Places, make: Make) -> tuple[Statement, ...]:
        last = self.cascade.rows[-1]
        if last.name in to:
            return make(to)
        name = self.names(last.name)
        at = substitute_int(Var(FIRST), to) + Var(name)
        return (Loop(Axis(name, Const(0), Const(self.tile)), make(to | {last.name: at})),)

    def in_blocks(self, moving: Moving) -> bool:
        return True

    def whole_span(self, to: Places) -> tuple[Int, Int]:
        whole = self.cascade.axes[0]
        lower, upper = self.ends(to)
        return lower[0] if lower else whole.lower, upper[1] if upper else whole.upper

    def ends(self, to: Places) -> tuple[tuple[Int, Int] | None, tuple[Int, Int] | None]:
        """Between which expressions the lower bounds of a tile's rows lie, and the upper ones."""
        first = substitute_int(Var(FIRST), to)
        bounds = self.span(to | {self.cascade.rows[-1].name: Var(ROW)})
        lower, upper = (extremes(bound, ROW, first, first + (self.tile - 1)) for bound in bounds)
        return lower, upper

    def has_one_block(self, to: Places) -> bool:
        whole = self.cascade.axes[0]
        if not isinstance(whole.lower, Const) or not isinstance(whole.upper, Const):
            return False
        base, length = self.stretch(to)
        return 0 < length <= self.block and self.whole_span(to) == (base, base + length)

    def blocks(self, to: Places, moving: Moving) -> tuple[Statement, ...]:
        """Loops over blocks none of which reaches beyond the axis, then what is left of it behind them. Bounds that
        depend on rows say which blocks there are, and masks which of their points; blocks that all rows have whole
        are without masks."""
        (_, upper), whole = self.whole_span(to), self.cascade.axes[0]
        if not isinstance(whole.lower, Const) or not isinstance(whole.upper, Const):
            self.peeled = False
            return super().blocks(to, moving)
        self.peeled = True
        base, length = self.stretch(to)
        size, body, runs = self.block, list[Statement](), self.runs(to)
        for run in runs:
            self.interior, self.block = run.whole, run.size
            body += self.loop(run.first, run.end, base, to, moving)
        self.interior = False
        full, rest = divmod(length, self.block)
        if rest:
            step, self.block = self.block, rest
            moving.factors.clear()
            left = tuple(self.block_steps(Const(0), base + full * step, to, moving))
            name, stop = self.names(f"{stem(whole.name)}_rest"), ceil_div(upper - base, step)
            if upper == base + length:
                body += left
            elif not (isinstance(stop, Const) and stop.value <= full):
                body.append(Loop(Axis(name, self.from_block(runs[-1].first, full), stop), left))
        self.block = size
        return tuple(body)

    def runs(self, to: Places) -> tuple[BlockRun, ...]:
        """The blocks of the axis; where masks cut them, those that all rows have whole apart from smaller ones."""
        (lower, upper), (base, length) = self.whole_span(to), self.stretch(to)
        begun, reached = lower == base, upper == base + length
        reach = Reach(None if begun else lower - base, None if reached else upper - base)
        smaller = max(SMALLEST, min(SMALLER, 1 << (self.tile.bit_length() - 1)))
        known = self.ends(to)
        (least, greatest) = known[0] or (lower, None), known[1] or (None, upper)
        behind, before = least[1], greatest[0]
        cut = self.skipped.cuts_blocks and self.cuts_apart(begun) and not (begun and reached)
        if not cut or behind is None or before is None or self.block % smaller or self.block > length:
            return block_runs(reach, length, self.block)
        inner = Reach(None if begun else behind - base, None if reached else self.not_negative(before - base))
        if not has_room(inner, self.block, self.tiles):
            return block_runs(reach, length, smaller)
        return runs_by_whole_blocks(reach, inner, length, self.block, smaller)

    def cuts_apart(self, begun: bool) -> bool:
        """Whether blocks that masks cut are apart from others; `begun`: no mask cuts off what is in front."""
        return True

    def not_negative(self, count: Int) -> Int:
        """So many elements, or none: rows may end in front of the axis."""
        known = free_vars(count) <= self.tiles.keys() and interval(count, self.tiles)[0] >= 0
        return count if known else maximum(count, 0)

    def stretch(self, to: Places) -> tuple[Int, int]:
        """Where blocks begin, and how many elements there are from there on."""
        whole = self.cascade.axes[0]
        return whole.lower, whole.extent

    def from_block(self, first: Int, full: int) -> Int:
        """Number of the block that is left of the axis behind `full` blocks, of those from `first` on."""
        return Const(full)

    def loop(self, first: Int, end: Int, base: Int, to: Places, moving: Moving) -> list[Statement]:
        """A loop over whole blocks, the first of all of which begins at `base`; none where it has no iteration."""
        length = end - first
        if free_vars(length) <= self.tiles.keys() and interval(length, self.tiles)[1] <= 0:
            return []
        moving.factors.clear()
        if not self.moves:
            return self.block_steps(Const(0), base, to, moving)
        count = self.names(f"{stem(self.cascade.axes[0].name)}_block")
        return [Loop(Axis(count, first, end), tuple(self.block_steps(Var(count), base, to, moving)))]

    def begins_inside(self, start: Int, lower: Int) -> bool:
        whole = self.peeled and not self.skipped.cuts_blocks  # blocks are counted from the beginning of the axis
        return whole or self.interior or super().begins_inside(start, lower)

    def bounds_of_points(self, at: Int, start: Int, to: Places) -> list[Bool]:
        """Where blocks do not reach beyond the axis, those of its bounds need no asking."""
        asked, whole = super().bounds_of_points(at, start, to), self.cascade.axes[0]
        if not self.peeled:
            return asked
        kept = (at >= whole.lower, at < whole.upper)
        return [part for condition in asked for part in conjuncts(condition) if part not in kept]

    def whole_blocks(self, start: Int, upper: Int) -> bool:
        ends = self.interior or upper == self.cascade.axes[0].upper
        return (self.peeled and ends) or super().whole_blocks(start, upper)

    def within(self, bounds: Sequence[Bool], guards: Sequence[Condition], update: StateUpdate, to: Places) -> Statement:
        """What the axis has no point for adds nothing: then only products have a guard, and leave such steps out. Where
        blocks may begin or end outside the axis, guards keep them from reading there."""
        nothing = NOTHING.get(update.op)
        if not self.peeled or guards or nothing is None or not update.value.dtype.is_float:
            return super().within(bounds, guards, update, to)
        if not bounds or (update.vanishes and update.op == "+="):
            product = len(update.target.index) > len(self.cascade.rows)
            return under(bounds if product and self.skips else (), self.updated(update, to))
        value = substitute(update.value, to)
        chosen = Select(all_of(*bounds), value, Literal(nothing, value.dtype), value.dtype)
        index = tuple(substitute_index(i, to) for i in update.target.index)
        return Assign(update.target.tensor, index, update.op, chosen)  # not `put`: new names may be those of old axes

    def results(self, states: Mapping[int, Read], to: Places) -> Iterator[Statement]:
        """As of one row, each step in loops of its own; rows are asked whether any of their elements is not finite."""
        for carried in self.skipped.members:
            if self.is_done(carried):
                continue
            if total := self.total(carried, states):
                yield from self.each(carried, to, partial(self.put, carried.member.target, "=", total))
            flag = self.like(carried.member.target, "as_written", DTYPES["s32"])
            none = Literal(0, flag.dtype)
            row = self.of_row(carried.member, flag) if carried.member.extra else flag
            asks_tile = self.branches and self.tile > 1
            if carried.member.extra or asks_tile:
                yield from self.one(row, "=", none, to)
            if not asks_tile:
                yield from self.asked_rows(carried, row, to)
                continue
            whole = self.of_tile(carried.member, flag)
            yield self.put(whole, "=", none, to)
            yield from self.each(carried, to, partial(self.flagged, carried, whole, "max="))
            yield self.guarded(Comparison("!=", whole, none), to, tuple(self.asked_rows(carried, row, to)))
        for each in self.consumers:
            yield from self.inside(to, partial(self.consumed, each))

    def asked_rows(self, carried: MemberStates, row: Read, to: Places) -> Iterator[Statement]:
        """A member's rows, each asked by its flag whether any of its results is not finite."""
        if carried.member.extra:
            yield from self.each(carried, to, partial(self.flagged, carried, row, "max="))
            yield from self.inside(to, partial(self.some, carried, row))
        else:
            yield from self.each(carried, to, partial(self.flagged, carried, row, "="))
            yield from self.inside(to, partial(self.alone, carried, row))

    def consumed(self, each: Consumer, to: Places) -> tuple[Statement, ...]:
        """One row of a stage that reads results."""
        return self.nest(each.extra, to, lambda p: (self.put(each.target, "=", each.assign.value, p),))

    def alone(self, carried: MemberStates, flag: Read, to: Places) -> tuple[Statement, ...]:
        """One element as the program writes it, where its flag is set."""
        asked = Comparison("!=", flag, Literal(0, flag.dtype))
        return self.unless_empty(carried, asked, to, (), self.again(carried, to))

    def some(self, carried: MemberStates, row: Read, to: Places) -> tuple[Statement, ...]:
        """All elements of a row as the program writes them, where any flag of the row is set: what they share is
        computed once."""
        member = self.cascade.member(carried.member.name)
        extra = member.extra
        shared = [e for e in self.stages if e.read in reads(member.term)]
        asked = Comparison("!=", row, Literal(0, row.dtype))
        if any(index_vars(e.read.index) & {a.name for a in extra} for e in shared):
            return self.unless_empty(carried, asked, to, extra, self.nest(extra, to, partial(self.again, carried)))
        own = replace(member, term=replaced(member.term, self.kept))

        def point(p: Places) -> tuple[Statement, ...]:
            here = p | {WITHIN: Const(0)}
            guards = [substitute_condition(g, here) for g in member.guards]
            needed = (s for e in shared for s in self.computed(e, here))
            return (*needed, *self.nest(extra, here, partial(super(Tiled, self).as_written, own, guards)))

        start = self.nest(extra, to, lambda p: (self.put(member.target, "=", member.init, p),))
        return self.unless_empty(carried, asked, to, extra, (*start, *self.nest(self.cascade.axes, to, point)))

    def unless_empty(
        self, carried: MemberStates, asked: Condition, to: Places, extra: tuple[Axis, ...], exact: tuple[Statement, ...]
    ) -> tuple[Statement, ...]:
        """`exact` where `asked` says so; what is no number without computing it, at once."""
        member = self.cascade.member(carried.member.name)
        start = no_number_where(self.cascade, member)
        if start is None:
            return (self.guarded(asked, to, exact),)
        infinite = Literal(float("inf"), member.term.dtype)
        none = Arith("-", infinite, infinite, infinite.dtype)
        filled = self.nest(extra, to, lambda p: (self.put(member.target, "=", none, p),))
        init = self.cascade.member(start.tensor).init
        empty, full = (Logical("and", (asked, Comparison(op, start, init))) for op in ("==", "!="))
        return self.guarded(empty, to, filled), self.guarded(full, to, exact)

    def guarded(self, condition: Condition, to: Places, body: tuple[Statement, ...]) -> Statement:
        return Guard(substitute_condition(condition, to), body)

    def of_row(self, member: Member, read: Read) -> Read:
        """A new intermediate with one element where another has those of a row."""
        return self.without_extra(member, read, "row")

    def of_tile(self, member: Member, read: Read) -> Read:
        """The element of a new intermediate at the first row of a tile."""
        made = self.without_extra(member, read, "tile")
        first = {self.cascade.rows[-1].name: Var(FIRST)}
        return replace(made, index=tuple(substitute_index(i, first) for i in made.index))

    def without_extra(self, member: Member, read: Read, what: str) -> Read:
        """A new intermediate without the dimensions along which a row has several results."""
        extra = {a.name for a in member.extra}
        tensor = self.tensors[read.tensor]
        kept = [d for d, i in enumerate(read.index) if not index_vars((i,)) & extra]
        name = self.names(f"{read.tensor}_{what}")
        self.tensors[name] = replace(tensor, name=name, shape=tuple(tensor.shape[d] for d in kept))
        return replace(read, tensor=name, index=tuple(read.index[d] for d in kept))

    def first_steps(self, block: Int, to: Places) -> Iterator[Statement]:
        start = self.whole_span(to)[0]
        for each in self.stages:
            yield from self.inside(to, partial(self.block_of_elements, each, block, start))

    def block_of_elements(self, each: Sunk, block: Int, start: Int, to: Places) -> tuple[Statement, ...]:
        """A block of one stage; the first block begins at `start`."""
        axis = self.cascade.axes[0]
        within = self.names(axis.name)
        at = block + Var(within)
        upper = substitute_int(axis.upper, to)
        even = self.whole_blocks(start, upper)
        own = [] if isinstance(axis.lower, Const) else [at >= substitute_int(axis.lower, to)]
        guards: list[Condition] = [*own, *([] if even else [at < upper])]
        sums = self.branches and self.skips and each.stage.init is not None and not guards
        read = self.bounds_of_points(at, start, to) if sums else []
        inner = self.computed(each, to | {axis.name: at, WITHIN: Var(within)}, read)
        return (Loop(Axis(within, Const(0), Const(self.block)), tuple(under(guards, s) for s in inner)),)

    def computed(self, each: Sunk, to: Places, read: Sequence[Bool] = ()) -> tuple[Statement, ...]:
        """One element of a stage; its sum only where it is `read`."""
        stage, target = each.stage, self.kept[each.read]
        places = {own: substitute_int(at, to) for own, at in each.axes.items()}
        index: tuple[Index, ...] = tuple(substitute_index(i, to) for i in target.index)

        def update(p: Places) -> tuple[Statement, ...]:
            return (under(read, Assign(target.tensor, index, stage.assign.op, substitute(stage.assign.value, p))),)

        if stage.init is None:
            return update(places)
        start = Assign(target.tensor, index, "=", substitute(stage.init, places))
        return (start, *self.nest(stage.reduction, places, update))

    def block_of_stage(self, each: Sunk) -> Read:
        """Where a block of a stage is kept: as the stage, but for the axis, of which there is one block."""
        axis = Var(self.cascade.axes[0].name)
        made = self.like(each.read, "block")
        tensor = self.tensors[made.tensor]
        shape = tuple(Const(self.block) if i == axis else n for i, n in zip(made.index, tensor.shape, strict=True))
        self.tensors[made.tensor] = replace(tensor, shape=shape)
        return replace(made, index=tuple(Var(WITHIN) if i == axis else i for i in made.index))

    def as_written(self, member: Member, guards: list[Condition], to: Places) -> tuple[Statement, ...]:
        here = to | {WITHIN: Const(0)}
        needed = [s for e in self.stages if e.read in reads(member.term) for s in self.computed(e, here)]
        own = replace(member, term=replaced(member.term, self.kept))
        return (*needed, *super().as_written(own, guards, here))
