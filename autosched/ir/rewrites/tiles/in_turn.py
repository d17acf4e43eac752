"""`in_turn`: sums of finished sums, a tile of them at a time, each part added up as soon as it is finished.

    for g, i, j: G[g, i, j] = Σ A[i, g * 32 + q] * B[g * 32 + q, j]
    for i, j: Y[i, j] = Σ G[g, i, j] * D[g, j]

    for t, u: for i, j in tile: S[t, u, i, j] = 0
              for g: for i, j in tile: P[t, u, i, j] = Σ A[t * 64 + i, g * 32 + q] * B[g * 32 + q, u * 128 + j]
                     for i, j in tile: S[t, u, i, j] += P[t, u, i, j] * D[g, u * 128 + j]
              for i, j in tile: Y[t * 64 + i, u * 128 + j] = S[t, u, i, j]

All that a tile hands on is a tile itself. No sum changes its order, so no value changes by a bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from autosched.ir.nodes import Assign, Axis, Stage, Statement, Tensor
from autosched.ir.prepared import assigns
from autosched.ir.program import Program
from autosched.ir.rewrites.factors.distribute import own_names
from autosched.ir.rewrites.names import FreeNames
from autosched.ir.rewrites.nesting import nested, under
from autosched.ir.value import Index, Read, Value, map_value, reads, substitute, substitute_condition, substitute_index
from autosched.logic import Const, Int, Var
from autosched.logic.walk import substitute_int


def in_turn(program: Program, part: str, tile: Sequence[int]) -> Program | None:
    """The program with the sums `part` and the sums of these in tiles of this shape, over the last axes of the results.
    None where one nest does not compute all of `part` and the next one all of its sums, or tiles do not divide the
    results."""
    found = _found(program, part)
    if found is None:
        return None
    place, first, last = found
    inside = last.spatial[-len(tile) :]
    if len(inside) < len(tile) or any(a.extent % t for a, t in zip(inside, tile, strict=True)):
        return None
    sizes = {a.name: t for a, t in zip(inside, tile, strict=True)}
    return _InTurn(program, place, first, last, sizes).after()


@dataclass
class _InTurn:
    """The rewrite of the nests of `first`, at `place`, and `last`. `sizes`: of a tile, by axis of `last`; along its
    other axes a tile is one element. `to`: where each axis of `last` is, in a tile; `own`: the subscripts of what a
    tile keeps."""

    before: Program
    place: int
    first: Stage
    last: Stage
    sizes: Mapping[str, int]
    names: FreeNames = field(init=False)
    around: list[Axis] = field(init=False)
    within: list[Axis] = field(init=False)
    to: dict[str, Int] = field(init=False)
    own: tuple[Index, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.names, axes = FreeNames(self.before), self.last.spatial
        self.around = [
            Axis(self.names(f"{a.name}_tile"), Const(0), Const(a.extent // self.sizes.get(a.name, 1))) for a in axes
        ]
        self.within = [replace(a, upper=Const(self.sizes[a.name])) for a in axes if a.name in self.sizes]
        self.to = {
            a.name: Var(t.name) * self.sizes[a.name] + Var(a.name) if a.name in self.sizes else Var(t.name)
            for a, t in zip(axes, self.around, strict=True)
        }
        self.own = tuple(Var(a.name) for a in (*self.around, *self.within))

    def after(self) -> Program:
        name, tensors = self.first.assign.tensor, dict(self.before.tensors)
        part = self.kept(tensors.pop(name))
        total = self.kept(tensors[self.last.assign.tensor])
        tensors |= {part.name: part, total.name: total}
        turns = nested(self.last.reduction, *self.sums(part), *self.added(part, total))
        (loops,) = nested(self.around, *self.start(total), *turns, *self.result(total))
        body = list(self.before.body)
        body[self.place : self.place + 2] = [own_names(loops, self.names, set(), {})]
        return replace(self.before, body=tuple(body), tensors=tensors, source="")

    def kept(self, like: Tensor) -> Tensor:
        """The same of a tile, for each tile."""
        shape = tuple(a.upper for a in (*self.around, *self.within))
        return Tensor(self.names(f"{like.name}_tile"), like.dtype, shape, intermediate=True)

    def start(self, total: Tensor) -> tuple[Statement, ...]:
        assert self.last.init is not None
        return nested(self.within, Assign(total.name, self.own, "=", substitute(self.last.init, self.to)))

    def sums(self, part: Tensor) -> tuple[Statement, ...]:
        """One turn's part of a tile."""
        stage, to = self.first, dict[str, Int]()
        for axis, at in zip(stage.assign.index, _read_of(stage, self.last).index, strict=True):
            if isinstance(axis, Var) and isinstance(at, Int):
                to[axis.name] = substitute_int(at, self.to)
        assert stage.init is not None
        start = Assign(part.name, self.own, "=", substitute(stage.init, to))
        return nested(self.within, start, *nested(stage.reduction, self.moved(stage, part, to)))

    def added(self, part: Tensor, total: Tensor) -> tuple[Statement, ...]:
        """The part, added to a tile's sums."""

        def taken(value: Value) -> Value:
            whole = isinstance(value, Read) and value.tensor == self.first.assign.tensor
            return Read(part.name, self.own, part.dtype) if whole else value

        return nested(self.within, self.moved(self.last, total, self.to, taken))

    def moved(
        self, stage: Stage, tensor: Tensor, to: Mapping[str, Int], also: Callable[[Value], Value] = lambda v: v
    ) -> Statement:
        """A stage's update in a tile, of its own tensor there."""
        value = map_value(substitute(stage.assign.value, to), also)
        update = replace(stage.assign, tensor=tensor.name, index=self.own, value=value)
        return under([substitute_condition(g, to) for g in stage.guards], update)

    def result(self, total: Tensor) -> tuple[Statement, ...]:
        """The finished sums, as results."""
        index = tuple(substitute_index(i, self.to) for i in self.last.assign.index)
        return nested(self.within, Assign(self.last.assign.tensor, index, "=", Read(total.name, self.own, total.dtype)))


def _read_of(first: Stage, last: Stage) -> Read:
    return next(r for r in last.reads if r.tensor == first.assign.tensor)


def _found(program: Program, part: str) -> tuple[int, Stage, Stage] | None:
    """The place of the nest that computes `part`, its stage, and the stage of the next nest, which adds it up."""
    places = [k for k, top in enumerate(program.body) if any(a.tensor == part for a in assigns(top))]
    if len(places) != 1 or places[0] + 1 == len(program.body) or not program.tensors[part].intermediate:
        return None
    (place,) = places
    stages = [s for s in program.stages if any(a is s.assign for k in (0, 1) for a in assigns(program.body[place + k]))]
    if len(stages) != 2 or [s for s in program.stages if part in {r.tensor for r in s.reads}] != stages[1:]:
        return None
    first, last = stages
    used = {r for s in stages for r in (*s.reads, *(() if s.init is None else reads(s.init)))}
    own = [r for r in used if r.tensor in (part, last.assign.tensor)]
    boxed = all(a.lower == Const(0) and isinstance(a.upper, Const) for s in stages for a in s.axes)
    sums = all(s.init is not None and s.reduction for s in stages) and len(last.reduction) == 1
    return (place, first, last) if boxed and sums and len(own) == 1 and _each_once(first, last, own[0]) else None


def _each_once(first: Stage, last: Stage, read: Read) -> bool:
    """Whether the one stage computes an element for each iteration of the other, which reads that one alone."""
    extents = {a.name: a.extent for s in (first, last) for a in s.axes}
    indices = first.assign.index, read.index, last.assign.index
    mine, theirs, results = ([i.name for i in index if isinstance(i, Var)] for index in indices)
    axes = [sorted(a.name for a in some) for some in (first.spatial, last.axes, last.spatial)]
    plain = all(len(names) == len(index) for names, index in zip((mine, theirs, results), indices, strict=True))
    if not plain or [sorted(names) for names in (mine, theirs, results)] != axes:
        return False
    return read.tensor == first.assign.tensor and [extents[a] for a in mine] == [extents[a] for a in theirs]
