"""What may move is what is proved independent: dependences between iterations of a stage, and between stages.

An axis is `independent` when no two instances of the stage that differ in it touch one element, at least one of them
writing. If all conflicts lie within equal values of the independent axes, those loops may be placed, split and run in
any order, as long as the serial axes keep their order among themselves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, combinations_with_replacement, pairwise, product
from typing import Literal

from autosched.ir.program import Program
from autosched.tiling.analysis.accesses import Statement, TensorAccess, statements
from autosched.tiling.analysis.conflicts import Meeting, Point, Question, Sizes, meeting, sizes_of

Kind = Literal["independent", "reduction", "serial"]


@dataclass(frozen=True)
class Conflict:
    """Two accesses to one element, the earlier instance first; `example` is a pair of iterations, None where the
    conflict is assumed because a subscript depends on data (or the solver gave up)."""

    tensor: str
    first: TensorAccess
    second: TensorAccess
    example: tuple[Point, Point] | None = None

    def __str__(self) -> str:
        if self.example is None:
            return f"{self.first} and {self.second} may be one element (that depends on data)"
        (x, y), (a, b) = self.example, (self.first, self.second)
        return f"{a}, {_verb(a)} at {_at(x)}, is {_verb(b)} at {_at(y)} as {b}"


@dataclass(frozen=True)
class AxisDependence:
    """`in_place`: whether the axis may run in any order where it stands, inside its outer loops at fixed iterations
    (the stage's own accumulation aside); true of every axis that is not serial, and of some serial ones."""

    axis: str
    kind: Kind
    conflict: Conflict | None = None
    in_place: bool = True

    def __str__(self) -> str:
        match self.kind:
            case "independent":
                return f"{self.axis} is independent"
            case "reduction":
                return f"{self.axis} is a reduction: only the accumulation itself meets across its iterations"
            case _:
                return f"{self.axis} is serial: {self.conflict}"


@dataclass(frozen=True)
class StageDependences:
    """The axes of one stage, outermost first."""

    stage: str
    axes: tuple[AxisDependence, ...]

    def axis(self, name: str) -> AxisDependence:
        """KeyError where the stage has no such axis."""
        return {a.axis: a for a in self.axes}[name]

    def of_kind(self, kind: Kind) -> tuple[str, ...]:
        return tuple(a.axis for a in self.axes if a.kind == kind)

    def __str__(self) -> str:
        return "\n".join(f"{self.stage}: {a}" for a in self.axes)


@dataclass(frozen=True)
class Carried:
    """The later stage, in an earlier iteration of the loops that both share, meets the earlier stage in a later one:
    the two cannot become separate loops one after the other."""

    earlier: str
    later: str
    conflict: Conflict

    def __str__(self) -> str:
        return f"{self.earlier} and {self.later} stay in one loop: {self.conflict}"


@dataclass(frozen=True)
class Dependences:
    """The dependences of `program`. Each is analysed at its first use. Each tuple of `whole` names
    neighbouring stages that stay in one group: dependences between them are not asked for."""

    program: Program = field(repr=False, compare=False)
    whole: tuple[tuple[str, ...], ...] = ()
    _found: dict[str, StageDependences] = field(default_factory=dict, repr=False, compare=False)

    @property
    def stages(self) -> tuple[StageDependences, ...]:
        """One for each stage, in textual order."""
        return tuple(self.stage(s.name) for s in self.program.stages)

    def stage(self, name: str) -> StageDependences:
        """KeyError where the program has no such stage."""
        if name not in self._found:
            stage = self.program.stage(name)
            axes = tuple(_axes(self._statements[name], tuple(a.name for a in stage.axes), self._sizes))
            self._found[name] = StageDependences(name, axes)
        return self._found[name]

    @cached_property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Stages in textual order; those of one group stay in their shared loops, groups may be separated. A stage
        between two that stay together stays with them, so that the text's order is kept."""
        names = [s.name for s in self.program.stages]
        tied: set[int] = set()  # k: the stage of this number and the next
        for run in self.whole:
            tied |= {*range(names.index(run[0]), names.index(run[-1]))}
        for distance in range(len(names) - 1, 0, -1):  # the furthest first: what they tie needs no question
            for first in range(len(names) - distance):
                between = {*range(first, first + distance)}
                if not between <= tied and self._backward(names[first], names[first + distance]) is not None:
                    tied |= between
        ends = [n for n in range(len(names)) if n not in tied]
        return tuple(tuple(names[a + 1 : b + 1]) for a, b in pairwise((-1, *ends)))

    @cached_property
    def carried(self) -> tuple[Carried, ...]:
        """What keeps pairs of stages in one loop: all of them."""
        pairs = combinations([s.name for s in self.program.stages], 2)
        found = ((one, other, self._backward(one, other)) for one, other in pairs)
        return tuple(Carried(one, other, conflict) for one, other, conflict in found if conflict is not None)

    @cached_property
    def together(self) -> tuple[StageDependences, ...]:
        """For each group of several stages, what its shared loops are for all of it (`stage` joins the names)."""
        found = []
        for group in self.groups:
            if len(group) > 1:
                members = tuple(s for s in self._every if s.stage in group)
                shared = tuple(n for n in members[0].names if all(n in s.names for s in members))
                found.append(StageDependences(", ".join(group), tuple(_axes(members, shared, self._sizes))))
        return tuple(found)

    def distributable(self, first: str, second: str) -> bool:
        """Whether one of two stages may run completely before the other, in the order that the text has them."""
        return not any(first in g and second in g for g in self.groups)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.stages), *map(str, self.carried), *map(str, self.together)])

    def _backward(self, earlier: str, later: str) -> Conflict | None:
        return _backward(self._statements[earlier], self._statements[later], self._sizes)

    @cached_property
    def _every(self) -> tuple[Statement, ...]:
        return statements(self.program)

    @cached_property
    def _statements(self) -> dict[str, tuple[Statement, ...]]:
        return {s.name: tuple(t for t in self._every if t.stage == s.name) for s in self.program.stages}

    @cached_property
    def _sizes(self) -> Sizes:
        return sizes_of(self.program)


def analyse(program: Program, whole: Sequence[tuple[str, ...]] = ()) -> Dependences:
    """All dependences, over the program's sizes (symbolic ones over their whole range)."""
    return Dependences(program, tuple(whole))


def together(program: Program, stages: Collection[str], axes: tuple[str, ...]) -> tuple[AxisDependence, ...]:
    """The verdict on loops that these stages share, for all of them as one body."""
    members = tuple(s for s in statements(program) if s.stage in stages)
    return tuple(_axes(members, axes, sizes_of(program)))


def independent(parts: tuple[Statement, ...], axis: str, sizes: Sizes) -> bool:
    """Whether no two iterations of a loop around these statements touch one element, at least one of them writing."""
    return all(_within(parts, axis, (), sizes, updates=updates) is None for updates in (False, True))


def _axes(parts: tuple[Statement, ...], names: tuple[str, ...], sizes: Sizes) -> Iterator[AxisDependence]:
    """The verdict on each of the loops `names`, outermost first, for these statements as one body."""
    for n, axis in enumerate(names):
        conflict = _within(parts, axis, (), sizes, updates=False)
        if conflict is not None:
            in_place = n > 0 and _within(parts, axis, names[:n], sizes, updates=False) is None
            yield AxisDependence(axis, "serial", conflict, in_place)
            continue
        update = _within(parts, axis, (), sizes, updates=True)
        yield AxisDependence(axis, "independent" if update is None else "reduction", update)


def _within(
    parts: tuple[Statement, ...], axis: str, equal: tuple[str, ...], sizes: Sizes, *, updates: bool
) -> Conflict | None:
    """A conflict between two instances of these statements that differ in `axis` and agree in `equal`; `updates` asks
    for meetings of a statement's own accumulation, else for all others."""
    for s, t in combinations_with_replacement([p for p in parts if axis in p.names], 2):
        pairs = combinations_with_replacement(s.accesses, 2) if s is t else product(s.accesses, t.accesses)
        for a, b in pairs:
            if _meet(a, b) and (s is t and a.update and b.update) == updates:
                found = meeting(Question(s, a, t, b, equal=equal, differ=axis), sizes)
                if found is not None:
                    return _conflict(s, a, t, b, found)
    return None


def _backward(earlier: tuple[Statement, ...], later: tuple[Statement, ...], sizes: Sizes) -> Conflict | None:
    for s, t in product(earlier, later):
        shared = tuple(n for n, m in zip(s.names, t.names, strict=False) if n == m)
        above = t.position < s.position  # an initialisation of the later stage may stand above the earlier stage
        if not shared and not above:
            continue
        for a, b in product(s.accesses, t.accesses):
            if _meet(a, b):
                found = meeting(Question(s, a, t, b, before=shared, or_same=above), sizes)
                if found is not None:
                    return _conflict(s, a, t, b, found)
    return None


def _meet(a: TensorAccess, b: TensorAccess) -> bool:
    return a.tensor == b.tensor and (a.write or b.write)


def _conflict(s: Statement, a: TensorAccess, t: Statement, b: TensorAccess, found: Meeting) -> Conflict:
    if found.first is None or found.second is None:
        return Conflict(a.tensor, a, b)
    x, y = found.first, found.second
    shared = [n for n in s.names if n in t.names]
    # Of one instance, reads come before the write; of two, the loops decide.
    swap = ([y[n] for n in shared], t.position) < ([x[n] for n in shared], s.position)
    return Conflict(a.tensor, b, a, (y, x)) if swap else Conflict(a.tensor, a, b, (x, y))


def _verb(access: TensorAccess) -> str:
    return "accumulated" if access.update else "written" if access.write else "read"


def _at(point: Point) -> str:
    return ", ".join(f"{n}={v}" for n, v in point.items()) or "its only iteration"
