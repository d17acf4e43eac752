"""`Tiled`: rows in tiles that share blocks, and the stages that only the pass reads computed inside it.

    for tile: for block:
        for row, q: S[row, q] = Σ Q K          was a stage of its own, for all of the axis
        for row, q: M[row] = max(M[row], S[row, q])
        …
        for row, e, q: O[row, e] += P[row, q] * V[q, e]

Every statement stands in loops over the tile's rows of its own, so products are products of matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from autosched.ir.nodes import Assign, Axis, Loop, Stage, Statement
from autosched.ir.program import Program
from autosched.ir.rewrites.online.fused import WITHIN, Moving, Pass, Places, stem, under
from autosched.ir.rewrites.online.masks import Masked
from autosched.ir.rewrites.online.members import Cascade, Member, Stages
from autosched.ir.rewrites.online.states import replaced
from autosched.ir.value import Condition, Index, Read, reads, substitute, substitute_index
from autosched.logic import Const, Int, Var, affine, maximum, minimum
from autosched.logic.walk import substitute_int

FIRST = "first row of a tile"
"""Stands for that row; no axis of a program has this name."""


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
    inner = cascade.names | {n for n in cascade.inlined if _only_for(program, n, cascade.names | cascade.inlined)}
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
    stages: tuple[Sunk, ...] = ()
    kept: dict[Read, Read] = field(default_factory=dict)

    def statements(self) -> tuple[Statement, ...]:
        for each in self.stages:
            self.kept[each.read] = self.block_of_stage(each)
        members = tuple(
            replace(c, states=tuple(replace(s, term=replaced(s.term, self.kept)) for s in c.states))
            for c in self.skipped.members
        )
        self.skipped = Masked(self.skipped.axes, members, self.skipped.lemmas)
        *outer, last = self.cascade.rows
        rows = _divisor(last, self.tile)

        def tiles(to: Places) -> tuple[Statement, ...]:
            name = self.names(f"{stem(last.name)}_tile")
            lower = substitute_int(last.lower, to)
            inner = self.row(to | {FIRST: Var(name) * rows + lower})
            return (Loop(Axis(name, Const(0), Const(last.extent // rows)), inner),)

        self.tile = rows
        return self.nest(tuple(outer), {}, tiles)

    def inside(self, to: Places, make: Callable[[Places], tuple[Statement, ...]]) -> tuple[Statement, ...]:
        last = self.cascade.rows[-1]
        if last.name in to:
            return make(to)
        name = self.names(last.name)
        at = substitute_int(Var(FIRST), to) + Var(name)
        return (Loop(Axis(name, Const(0), Const(self.tile)), make(to | {last.name: at})),)

    def in_blocks(self, moving: Moving) -> bool:
        return True

    def whole_span(self, to: Places) -> tuple[Int, Int]:
        first = substitute_int(Var(FIRST), to)
        name = self.cascade.rows[-1].name
        ends = [self.span(to | {name: at}) for at in (first, first + (self.tile - 1))]
        return _outer(minimum, ends[0][0], ends[1][0]), _outer(maximum, ends[0][1], ends[1][1])

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
        length = upper - start
        even = isinstance(length, Const) and length.value % self.block == 0
        own = [] if isinstance(axis.lower, Const) else [at >= substitute_int(axis.lower, to)]
        guards: list[Condition] = [*own, *([] if even else [at < upper])]
        inner = self.computed(each, to | {axis.name: at, WITHIN: Var(within)})
        return (Loop(Axis(within, Const(0), Const(self.block)), tuple(under(guards, s) for s in inner)),)

    def computed(self, each: Sunk, to: Places) -> tuple[Statement, ...]:
        """One element of a stage."""
        stage, target = each.stage, self.kept[each.read]
        places = {own: substitute_int(at, to) for own, at in each.axes.items()}
        index: tuple[Index, ...] = tuple(substitute_index(i, to) for i in target.index)

        def update(p: Places) -> tuple[Statement, ...]:
            return (Assign(target.tensor, index, stage.assign.op, substitute(stage.assign.value, p)),)

        if stage.init is None:
            return update(places)
        start = Assign(target.tensor, index, "=", substitute(stage.init, places))
        return (start, *self.nest(stage.reduction, places, update))

    def block_of_stage(self, each: Sunk) -> Read:
        """Where a block of a stage is kept: as the stage, but for the axis, of which there is one block."""
        axis = Var(self.cascade.axes[0].name)
        made = self.like(each.read, "block")
        tensor = self.tensors[made.tensor]
        shape = tuple(Const(self.block) if i == axis else n for i, n in zip(each.read.index, tensor.shape, strict=True))
        self.tensors[made.tensor] = replace(tensor, shape=shape)
        return replace(made, index=tuple(Var(WITHIN) if i == axis else i for i in each.read.index))

    def as_written(self, member: Member, guards: list[Condition], to: Places) -> tuple[Statement, ...]:
        here = to | {WITHIN: Const(0)}
        needed = [s for e in self.stages if e.read in reads(member.term) for s in self.computed(e, here)]
        own = replace(member, term=replaced(member.term, self.kept))
        return (*needed, *super().as_written(own, guards, here))


def _divisor(axis: Axis, most: int) -> int:
    """The greatest number of rows up to `most` that divides all of them."""
    return max(n for n in range(1, min(most, axis.extent) + 1) if axis.extent % n == 0)


def _outer(choose: Callable[..., Int], a: Int, b: Int) -> Int:
    """`choose(a, b)`, decided where they are a number apart."""
    form = affine(a - b)
    if form is None or form.coefficients:
        return choose(a, b)
    return a if (form.constant >= 0) == (choose is maximum) else b
