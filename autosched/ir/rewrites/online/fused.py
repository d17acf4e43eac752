"""The program with a cascade in one pass over its axis, in blocks:

    for each row:
        M = -inf; Z = 0
        for each block:
            before = M
            M = max(M, the block's S)
            moved = exp(before - M)                     the factor; M is taken as 0 while it is -inf
            Z = Z * moved + the block's sum of exp(S - M)
        if Z is not finite, or M is -inf: compute Z as the program writes it

The last line makes rows without a finite element, and rows whose sums overflow on the way, give what the program gives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.nodes import Assign, Axis, Guard, Loop, Statement, Tensor, is_zero
from autosched.ir.program import Program
from autosched.ir.rewrites.algebra.cases import is_infinite
from autosched.ir.rewrites.algebra.sums import RealSum
from autosched.ir.rewrites.algebra.text import times, value_of
from autosched.ir.rewrites.factors.distribute import distributed
from autosched.ir.rewrites.names import FreeNames
from autosched.ir.rewrites.nesting import under
from autosched.ir.rewrites.online.masks import Masked
from autosched.ir.rewrites.online.members import Cascade, Member
from autosched.ir.rewrites.online.staging import Found, Term, filled, staged, under_or_zero
from autosched.ir.rewrites.online.states import CarriedState, MemberStates, factor_of, replaced
from autosched.ir.value import (
    Arith,
    Call,
    Cast,
    Comparison,
    Condition,
    Index,
    Literal,
    Logical,
    Read,
    Scalar,
    Select,
    Value,
    converted,
    reads,
    substitute,
    substitute_condition,
    substitute_index,
    walk,
)
from autosched.logic import Bool, Const, Int, Var, ceil_div
from autosched.logic.walk import substitute_int

Places = dict[str, Int]
"""Axes of the cascade, and what stands for them here."""
Make = Callable[[Places], tuple[Statement, ...]]
"""Puts statements where axes are in these places."""
WITHIN = "within a block"
"""Stands for the place of a point in its block; no axis of a program has this name."""
UPDATE = {"+": "+=", "max": "max=", "min": "min="}


def fused(
    program: Program,
    cascade: Cascade,
    skipped: Masked,
    conditions: tuple[Value, ...],
    block: int,
    make: Callable[..., Pass] | None = None,
    inside: Mapping[str, Collection[str]] | None = None,
) -> Program:
    """The program with the cascade in one pass, `block` iterations of its outermost axis at a time, as `make` builds
    it. `inside` are stages that the pass computes, too, with what they read. Raises NotRewritten where its statements
    cannot be taken apart."""
    make = make or Pass
    used = {m.name: m.used for m in cascade.members} | dict(inside or {})
    before, after = distributed(program, frozenset(used), cascade.inlined, used)
    left = replace(program, body=(*before, *after))
    builder = make(program, cascade, skipped, conditions, block, FreeNames(left), {})
    after = builder.taking(after)
    body = (*before, *builder.statements(), *after)
    kept = {s.assign.tensor for s in replace(program, body=body).stages}
    tensors = program.tensors | builder.tensors  # some of statements that were left out in the end
    return replace(program, body=body, tensors={n: t for n, t in tensors.items() if not t.intermediate or n in kept})


@dataclass(frozen=True)
class Moving:
    """Where states are kept, by `id` of a state, and references so far; these before the block, and after it with 0 for
    infinite; the factors of this block."""

    states: dict[int, Read]
    running: dict[Read, Read]
    before: dict[Read, Read]
    so_far: dict[Read, Read]
    factors: dict[RealSum, Read]


@dataclass(frozen=True)
class StateUpdate:
    """`target op value`; `vanishes` says that the value is zero where the axis has no point, since a factor is."""

    target: Read
    op: str
    value: Value
    vanishes: bool = False


def vanishes(value: Value, zeros: Collection[Value]) -> bool:
    """Whether a value is zero where all of `zeros` are, if its other factors are finite."""
    match value:
        case Read():
            return value in zeros
        case Arith("*", left, right):
            return vanishes(left, zeros) or vanishes(right, zeros)
        case Cast(operand):
            return vanishes(operand, zeros)
    return False


@dataclass
class Pass:
    """Builds the statements of the pass; `tensors` are those it adds. `skipped` are the axes and members of the pass;
    what is computed again is the cascade's own."""

    program: Program
    cascade: Cascade
    skipped: Masked
    conditions: tuple[Value, ...]
    block: int
    names: FreeNames
    tensors: dict[str, Tensor]
    moves: bool = field(default=True, kw_only=True)
    """Whether there are several blocks, between which references move."""

    def taking(self, after: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """What is left of the statements behind the pass once it has taken those that it computes: here all."""
        return after

    def statements(self) -> tuple[Statement, ...]:
        return self.over_rows(self.row)

    def over_rows(self, *makes: Make) -> tuple[Statement, ...]:
        """What each of `makes` puts for a row, in loops over rows of its own."""
        return tuple(s for make in makes for s in self.nest(self.cascade.rows, {}, make))

    def nest(self, axes: tuple[Axis, ...], to: Places, make: Make) -> tuple[Statement, ...]:
        """Loops over copies of `axes` around what `make` puts inside."""
        if not axes:
            return make(to)
        first, *rest = axes
        name = self.names(first.name)
        axis = Axis(name, substitute_int(first.lower, to), substitute_int(first.upper, to))
        return (Loop(axis, self.nest(tuple(rest), to | {first.name: Var(name)}, make)),)

    def row(self, to: Places) -> tuple[Statement, ...]:
        """One row: starts, blocks, results."""
        moving, body = self.carry(to)
        return (*body, *self.results(moving.states, to))

    def results(self, states: Mapping[int, Read], to: Places) -> Iterator[Statement]:
        """What is left to do once the states are known."""
        for carried in self.skipped.members:
            if not self.is_done(carried):
                yield from self.elements(carried, partial(self.finish, carried, states), to)

    def is_done(self, carried: MemberStates) -> bool:
        """Whether a member's state is its result, whatever it is."""
        return carried.exact

    def inside(self, to: Places, make: Make) -> tuple[Statement, ...]:
        """What `make` puts, for each row that shares blocks with this one: here it has none."""
        return make(to)

    def one(self, target: Read, op: str, value: Value, to: Places) -> tuple[Statement, ...]:
        """A statement for each row that shares blocks."""
        return self.inside(to, lambda p: (self.put(target, op, value, p),))

    def first_steps(self, block: Int, to: Places) -> Iterator[Statement]:
        """What a block does before its members: here nothing."""
        return iter(())

    def in_blocks(self, moving: Moving) -> bool:
        """Whether the axis is taken in blocks: only where a reference moves."""
        return bool(moving.before)

    def whole_span(self, to: Places) -> tuple[Int, Int]:
        """Bounds of the outermost axis that hold those of each row that shares blocks."""
        return self.span(to)

    def carry(self, to: Places) -> tuple[Moving, list[Statement]]:
        """States and references along the axis: where they are kept, starts and blocks."""
        states = {id(s): self.state(c) for c in self.skipped.members for s in c.states}
        kept = {c.member.target: states[id(c.states[0])] for c in self.skipped.members if c.plain}
        watched = sorted({r for c in self.skipped.members for s in c.states for r in s.watched}, key=str)
        carried_by = {r for c in self.skipped.members for s in c.states for r in s.references}
        running = {r: kept[r] for r in watched}
        before = {r: self.like(r, "before") for r in watched}
        safe = {r for r in carried_by if self.may_be_infinite(r)}
        so_far = {r: self.like(r, "so_far") if r in safe else running[r] for r in watched}
        moving = Moving(states, running, before, so_far, {})
        self.moves = not self.has_one_block(to)
        body: list[Statement] = []
        for carried in self.skipped.members if self.moves else ():
            for state in carried.states:
                body += self.each(carried, to, partial(self.put, states[id(state)], "=", self.start(carried)))
        return moving, [*body, *self.blocks(to, moving)]

    def has_one_block(self, to: Places) -> bool:
        """Whether one block is all of the axis, so that no reference moves: here that is not asked."""
        return False

    def span(self, to: Places) -> tuple[Int, Int]:
        """The bounds of the outermost axis that blocks keep to here."""
        return _bounds_of(self.skipped.reach, to)

    def bounds(self, to: Places) -> tuple[Int, Int]:
        """What a point of a block has to lie in."""
        return _bounds_of(self.skipped.axes[0], to)

    def blocks(self, to: Places, moving: Moving) -> tuple[Statement, ...]:
        """The loop over blocks, or over the axis where no reference moves."""
        outer = self.skipped.axes[0]
        lower, upper = self.whole_span(to)
        count = self.names(f"{stem(outer.name)}_block" if self.in_blocks(moving) else outer.name)
        if not self.in_blocks(moving):
            return (Loop(Axis(count, lower, upper), tuple(self.block_steps(Var(count), lower, to, moving))),)
        steps = tuple(self.block_steps(Var(count), lower, to, moving))
        return (Loop(Axis(count, Const(0), ceil_div(upper - lower, self.block)), steps),)

    def block_steps(self, count: Int, lower: Int, to: Places, moving: Moving) -> list[Statement]:
        """The statements of block number `count`, of those that begin at `lower`."""
        steps = list(self.first_steps(count * self.block + lower, to))
        for r, now in moving.running.items() if self.moves else ():
            steps += self.one(moving.before[r], "=", now, to)
        once = staged(self.term(c, s, moving) for c, s in self.moved_states()) if moving.before else ()
        places: dict[Found, Read] = {}
        for carried in self.skipped.members:
            target = carried.member.target
            for state in carried.states:
                kept, term = moving.states[id(state)], state.term
                if state.carried.terms:
                    if self.moves:
                        steps += self.rescaled(carried, state, moving, to)
                    at = self.term(carried, state, moving)
                    for found in (f for f in staged((at, at)) if f in once and f not in places):
                        places[found] = self.block_of(state, found[0].dtype)
                        fill = StateUpdate(places[found], "=", under_or_zero(*found))
                        whole = replace(carried.member, guards=())  # kernels read elements that no sum asks for, too
                        steps += self.inside(to, partial(self.points, whole, fill, count, lower))
                    term = filled(at, places)
                if state.extreme is not None:
                    before, now = moving.before[state.extreme], moving.running[state.extreme]
                    if self.moves:
                        anew = Select(Comparison("==", before, now), kept, carried.member.init, kept.dtype)
                        steps += self.each(carried, to, partial(self.put, kept, "=", anew))
                    term = replaced(term, {state.extreme: now})
                update = StateUpdate(kept, UPDATE[carried.member.op], term, vanishes(term, set(places.values())))
                if self.in_blocks(moving):
                    make = partial(self.points, carried.member, update, count, lower)
                else:
                    make = partial(self.point, carried.member, update, count)
                steps += self.elements(carried, make if self.moves else self.started(carried, kept, make), to)
            if target in moving.running and moving.so_far[target] != moving.running[target]:
                finite = self.finite(target, moving.running[target])
                steps += self.one(moving.so_far[target], "=", finite, to)
        return steps

    def rescaled(self, carried: MemberStates, state: CarriedState, moving: Moving, to: Places) -> Iterator[Statement]:
        """A state relative to the references so far."""
        kept = moving.states[id(state)]
        if state.carried not in moving.factors:
            factor = self.like(min(state.references, key=str), "moved", state.term.dtype)
            moving.factors[state.carried] = factor
            value = factor_of(state, moving.before, moving.so_far, state.term.dtype)
            yield from self.one(factor, "=", value, to)
        yield from self.each(carried, to, partial(self.put, kept, "*=", moving.factors[state.carried]))

    def started(self, carried: MemberStates, kept: Read, make: Make) -> Make:
        """What `make` puts for an element, behind its start."""
        return lambda p: (self.put(kept, "=", self.start(carried), p), *make(p))

    def moved_states(self) -> list[tuple[MemberStates, CarriedState]]:
        """States that are relative to references, with their members."""
        return [(c, s) for c in self.skipped.members for s in c.states if s.carried.terms]

    def term(self, carried: MemberStates, state: CarriedState, moving: Moving) -> Term:
        """What a block adds to a state, relative to the references so far."""
        extra = frozenset(a.name for a in carried.member.extra)
        return Term(replaced(state.term, moving.so_far), carried.member.guards, extra)

    def block_of(self, state: CarriedState, dtype: DType) -> Read:
        """A new intermediate with an element for each row and each point of a block."""
        reference = min(state.references, key=str)
        made = self.like(reference, "term", dtype)
        tensor = self.tensors[made.tensor]
        inner = [Const(a.extent) for a in self.skipped.axes[1:]]
        self.tensors[made.tensor] = replace(tensor, shape=(*tensor.shape, Const(self.block), *inner))
        at = [Var(a.name) - a.lower for a in self.skipped.axes[1:]]
        return replace(made, index=(*made.index, Var(WITHIN), *at))

    def point(self, member: Member, update: StateUpdate, at: Int, to: Places) -> tuple[Statement, ...]:
        """A member's update at one point of the outermost axis: nothing moves, so no block is needed."""
        outer, *inner = self.skipped.axes

        def guarded(p: Places) -> tuple[Statement, ...]:
            return (under([substitute_condition(g, p) for g in member.guards], self.updated(update, p)),)

        return self.nest(tuple(inner), to | {outer.name: at}, guarded)

    def points(self, member: Member, update: StateUpdate, block: Int, start: Int, to: Places) -> tuple[Statement, ...]:
        """A member's update at each point of a block; the first block begins at `start`."""
        outer, *inner = self.skipped.axes
        within = self.names(outer.name)
        at = block * self.block + Var(within) + start
        bounds = self.bounds_of_points(at, start, to)

        def guarded(p: Places) -> tuple[Statement, ...]:
            return (self.within(bounds, [substitute_condition(g, p) for g in member.guards], update, p),)

        inside = self.nest(tuple(inner), to | {outer.name: at, WITHIN: Var(within)}, guarded)
        return (Loop(Axis(within, Const(0), Const(self.block)), inside),)

    def bounds_of_points(self, at: Int, start: Int, to: Places) -> list[Bool]:
        """Where a point `at` of blocks that begin at `start` is one of the axis."""
        lower, upper = self.bounds(to)
        own = [] if self.begins_inside(start, lower) else [at >= lower]
        return [*own, *([] if self.whole_blocks(start, upper) else [at < upper])]

    def each(self, carried: MemberStates, to: Places, make: Callable[[Places], Statement]) -> tuple[Statement, ...]:
        """A statement for each of a member's elements of this row."""
        return self.elements(carried, lambda p: (make(p),), to)

    def elements(self, carried: MemberStates, make: Make, to: Places) -> tuple[Statement, ...]:
        """What `make` puts, for each of a member's elements of these rows."""
        return self.inside(to, lambda p: self.nest(carried.member.extra, p, make))

    def begins_inside(self, start: Int, lower: Int) -> bool:
        """Whether blocks from `start` on lie behind `lower`."""
        return lower == start or (isinstance(lower, Const) and isinstance(start, Const) and start.value >= lower.value)

    def whole_blocks(self, start: Int, upper: Int) -> bool:
        """Whether blocks from `start` on end at `upper`."""
        length = upper - start
        return isinstance(length, Const) and length.value % self.block == 0

    def within(self, bounds: Sequence[Bool], guards: Sequence[Condition], update: StateUpdate, to: Places) -> Statement:
        """An update at a point that the axis has only inside `bounds`."""
        return under([*bounds, *guards], self.updated(update, to))

    def updated(self, update: StateUpdate, to: Places) -> Assign:
        return self.put(update.target, update.op, update.value, to)

    def put(self, target: Read, op: str, value: Value, to: Places) -> Assign:
        index: tuple[Index, ...] = tuple(substitute_index(i, to) for i in target.index)
        return Assign(target.tensor, index, op, substitute(value, to))

    def state(self, carried: MemberStates) -> Read:
        """Where a state is kept: the member's own tensor if that is all of it."""
        target = carried.member.target
        if carried.exact or (carried.direct and _is_identity(carried)):
            return target
        return self.like(target, "sum" if carried.member.op == "+" else carried.member.op, carried.member.term.dtype)

    def like(self, read: Read, what: str, dtype: DType | None = None) -> Read:
        """A new intermediate of the shape of another tensor."""
        name = self.names(f"{read.tensor}_{what}")
        dtype = dtype or self.program.tensors[read.tensor].dtype
        self.tensors[name] = Tensor(name, dtype, self.program.tensors[read.tensor].shape, intermediate=True)
        return replace(read, tensor=name, dtype=dtype)

    def start(self, carried: MemberStates) -> Value:
        """What a state starts from."""
        return carried.member.init if carried.exact else self.neutral(carried)

    def neutral(self, carried: MemberStates) -> Value:
        """The identity of a member's reducer."""
        dtype = carried.member.term.dtype
        return Literal({"+": 0.0, "max": -float("inf"), "min": float("inf")}[carried.member.op], dtype)

    def may_be_infinite(self, reference: Read) -> bool:
        return is_infinite(self.cascade.member(reference.tensor).init)

    def finite(self, reference: Read, now: Read) -> Value:
        """A reference's value `now`, or 0 while it is infinite: any number does, since what came so far is zero."""
        start = self.cascade.member(reference.tensor).init
        return Select(Comparison("!=", now, start), now, Literal(0.0, now.dtype), now.dtype)

    def finish(self, carried: MemberStates, states: Mapping[int, Read], to: Places) -> tuple[Statement, ...]:
        """The result from the states, and as the program writes it where that is not finite."""
        total = self.total(carried, states)
        done = (self.put(carried.member.target, "=", total, to),) if total is not None else ()
        return (*done, *self.checked(carried, to))

    def total(self, carried: MemberStates, states: Mapping[int, Read]) -> Value | None:
        """The result from the states; None where it is kept as it is."""
        member, dtype = carried.member, carried.member.term.dtype
        if states[id(carried.states[0])] == member.target:
            return None
        total: Value | None = None
        for state in carried.states:
            kept: Value = states[id(state)]
            if member.op == "+":
                kept = times(kept, state.deferred, dtype)
                total = kept if total is None else Arith("+", total, kept, dtype)
            else:
                kept = times(kept, carried.scale, dtype)
                total = Arith("+", kept, value_of(state.deferred, dtype), dtype) if state.deferred.terms else kept
        assert total is not None
        return total if _is_identity(carried) else Arith(member.op, total, member.init, dtype)

    def checked(self, carried: MemberStates, to: Places) -> tuple[Statement, ...]:
        """A result as the program writes it, where it is not finite."""
        flag = self.like(carried.member.target, "as_written", DTYPES["u8"])
        asked = substitute_condition(Comparison("!=", flag, Literal(0, flag.dtype)), to)
        return (self.flagged(carried, flag, "=", to), Guard(asked, self.again(carried, to)))

    def flagged(self, carried: MemberStates, flag: Read, op: str, to: Places) -> Statement:
        """`flag` is 1 where the result is not finite; with `max=`, where some result is not."""
        one, none = Literal(1, flag.dtype), Literal(0, flag.dtype)
        return self.put(flag, op, Select(self.holds(carried), none, one, flag.dtype), to)

    def again(self, carried: MemberStates, to: Places) -> tuple[Statement, ...]:
        """The result as the program writes it."""
        member = self.cascade.member(carried.member.name)

        def term(p: Places) -> tuple[Statement, ...]:
            return self.as_written(member, [substitute_condition(g, p) for g in member.guards], p)

        return (self.put(member.target, "=", member.init, to), *self.nest(self.cascade.axes, to, term))

    def as_written(self, member: Member, guards: list[Condition], to: Places) -> tuple[Statement, ...]:
        """A member's update as the program has it."""
        return (under(guards, self.put(member.target, UPDATE[member.op], member.term, to)),)

    def holds(self, carried: MemberStates) -> Condition:
        """That the states' result is finite, what is in a factor that was taken out is, references are, and what the
        proofs ask for is so: outside, 1 / inf is 0, which hides what it does to each term."""
        target = carried.member.target
        size: Value = Call("abs", (target,), target.dtype)
        parts: list[Condition] = [Comparison("<", size, Literal(float("inf"), target.dtype))]
        read = {r for r in reads(self.cascade.member(carried.member.name).term) if r.tensor in self.cascade.names}
        factors = {a for total in (carried.scale, *(s.deferred for s in carried.states)) for a in total.atoms}
        leaves = {v for a in factors for v in walk(a.value) if isinstance(v, Read | Scalar) and v.dtype.is_float}
        for leaf in sorted(leaves, key=str):
            size = Call("abs", (converted(leaf, target.dtype),), target.dtype)
            parts.append(Comparison("<", size, Literal(float("inf"), target.dtype)))
        for reference in sorted(read - leaves, key=str):
            if self.may_be_infinite(reference):
                start = self.cascade.member(reference.tensor).init
                parts.append(Comparison("!=", reference, start))
        order = [m.name for m in self.cascade.members]
        later = set(order[order.index(carried.member.name) :])  # no member needs a condition on what comes after it
        parts += [c for c in self.conditions if not later & {r.tensor for r in reads(c)}]
        return parts[0] if len(parts) == 1 else Logical("and", tuple(parts))


def _bounds_of(axis: Axis, to: Places) -> tuple[Int, Int]:
    return substitute_int(axis.lower, to), substitute_int(axis.upper, to)


def stem(name: str) -> str:
    return re.sub(r"_\d+$", "", name)


def _is_identity(carried: MemberStates) -> bool:
    """Whether the member's own start is its reducer's identity."""
    init = carried.member.init
    if carried.member.op == "+":
        return is_zero(init)
    return is_infinite(init) and (init.value < 0) == (carried.member.op == "max")  # type: ignore[union-attr]
