"""`Cascade`: stages that reduce over the same axes and read each other's results, in the names of the first of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from autosched.ir.nodes import Axis, Stage
from autosched.ir.program import Program
from autosched.ir.rewrites.algebra.cases import is_infinite
from autosched.ir.rewrites.refusal import NotRewritten
from autosched.ir.value import (
    Condition,
    Read,
    Select,
    Unary,
    Value,
    is_value,
    map_value,
    reads,
    substitute,
    substitute_condition,
)
from autosched.ir.variables import value_vars
from autosched.logic import Const, Int, Var
from autosched.logic.walk import substitute_int

UPDATES = {"+=": "+", "-=": "+", "max=": "max", "min=": "min"}
"""Reducers whose factors are known; a difference is a sum of negated terms."""


@dataclass(frozen=True)
class Member:
    """A reduction of a cascade. `term` is what it reduces, with the results of other members as `Read`s; `extra` are
    its axes beyond the cascade's rows; `op` is `+`, `min` or `max`."""

    stage: Stage
    op: str
    term: Value
    extra: tuple[Axis, ...]
    guards: tuple[Condition, ...]
    init: Value
    target: Read

    @property
    def name(self) -> str:
        return self.stage.assign.tensor

    @property
    def used(self) -> frozenset[str]:
        """The tensors that it reads: in its term, its guards and its start."""
        guards = (r for g in self.guards if is_value(g) for r in reads(g))
        return frozenset(r.tensor for r in (*reads(self.term), *reads(self.init), *guards))


@dataclass(frozen=True)
class Cascade:
    """`members` in the order of the text, the first of which reads none of the others; all of them reduce over `axes`,
    for each of `rows`. `inlined` are the elementwise stages that their terms have in them."""

    rows: tuple[Axis, ...]
    axes: tuple[Axis, ...]
    members: tuple[Member, ...]
    inlined: frozenset[str]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(m.name for m in self.members)

    def member(self, name: str) -> Member:
        return {m.name: m for m in self.members}[name]

    def kind(self, value: Value) -> str:
        """Whether an element or another atom depends on a member's result or on what the axes count, as `separate`
        asks."""
        reference = any(r.tensor in self.names for r in reads(value))
        data = bool(value_vars(value) & {a.name for a in self.axes})
        return "both" if reference and data else "reference" if reference else "data" if data else "neither"


@dataclass(frozen=True)
class Stages:
    """A program's stages by the tensor they write, where a single one does."""

    program: Program
    single: dict[str, Stage]

    @classmethod
    def of(cls, program: Program) -> Stages:
        written: dict[str, list[Stage]] = {}
        for stage in program.stages:
            written.setdefault(stage.assign.tensor, []).append(stage)
        single = {}
        for name, stages in written.items():
            found = stages[0] if len(stages) == 1 else _started_apart(stages)
            if found is not None and _one_each(found):
                single[name] = found
        return cls(program, single)

    def earlier(self, one: Stage, other: Stage) -> bool:
        """Whether a stage stands before another in the text."""
        place = {id(s.assign): k for k, s in enumerate(self.program.stages)}
        return place[id(one.assign)] < place[id(other.assign)]

    def reduction(self, name: str) -> Stage | None:
        """The reduction that computes a tensor, or None."""
        stage = self.single.get(name)
        return stage if stage is not None and stage.reduction and stage.init is not None else None

    def elementwise(self, name: str) -> Stage | None:
        """The statement that computes each element of a tensor at once, or None."""
        stage = self.single.get(name)
        plain = stage is not None and not stage.reduction and stage.assign.op == "=" and not stage.guards
        return stage if plain else None


def cascades_of(program: Program) -> Iterator[Cascade | NotRewritten]:
    """The cascades of a program, each with all its stages; or why stages that look like one are none."""
    stages = Stages.of(program)
    found: list[Cascade] = []
    for stage in reversed(program.stages):
        last = stages.reduction(stage.assign.tensor)
        taken = any(stage.assign.tensor in c.names for c in found)
        if taken or last is None or last.assign is not stage.assign:
            continue
        try:
            cascade = _cascade(stages, last)
        except NotRewritten as refused:
            yield refused
            continue
        if cascade is not None:
            joined = ((k, _together(stages, one, cascade)) for k, one in enumerate(found))
            place, whole = next(((k, c) for k, c in joined if c is not None), (len(found), cascade))
            found[place:] = [whole, *found[place + 1 :]]
    yield from found


def without(cascade: Cascade, stage: str) -> Cascade | None:
    """The cascade without a stage and those that need its result; None where that leaves none that reads another."""
    gone: set[str] = set()
    for member in cascade.members:
        if member.stage.name == stage or gone & {r.tensor for r in reads(member.term)}:
            gone.add(member.name)
    left = tuple(m for m in cascade.members if m.name not in gone)
    names = {m.name for m in left}
    reading = any(names & {r.tensor for r in reads(m.term)} for m in left)
    return replace(cascade, members=left) if gone and reading else None


def _started_apart(stages: list[Stage]) -> Stage | None:
    """A reduction whose start is a nest of its own before it."""
    if len(stages) != 2:
        return None
    start, update = stages
    plain = start.assign.op == "=" and not start.reduction and not start.guards and update.init is None
    index, other = start.assign.index, update.assign.index
    if not plain or update.assign.op == "=" or not _plain_vars(index) or not _plain_vars(other):
        return None
    mine = {a.name: a for a in start.axes}
    theirs = {a.name: a for a in update.axes}
    for a, b in zip(index, other, strict=True):
        assert isinstance(a, Var)
        assert isinstance(b, Var)
        x, y = mine[a.name], theirs[b.name]
        if not all(isinstance(v, Const) for v in (x.lower, x.upper)) or (x.lower, x.upper) != (y.lower, y.upper):
            return None
    to = {a.name: b for a, b in zip(index, other, strict=True) if isinstance(a, Var) and isinstance(b, Int)}
    if any(r.tensor == update.assign.tensor for r in start.reads):
        return None
    return replace(update, init=substitute(start.assign.value, to))


def _plain_vars(index: tuple[object, ...]) -> bool:
    return all(isinstance(i, Var) for i in index) and len(set(index)) == len(index)


def _one_each(stage: Stage) -> bool:
    """Whether each of its elements is written by one iteration of the axes in its address, and reads none of them."""
    name = stage.assign.tensor
    own = any(r.tensor == name for r in stage.reads)
    return _plain_vars(stage.assign.index) and not own and not any(is_value(i) for i in stage.assign.index)


def _cascade(stages: Stages, last: Stage) -> Cascade | None:
    inlined: set[str] = set()
    terms: dict[str, tuple[Stage, Value, tuple[Condition, ...], dict[str, Int]]] = {}
    waiting: list[tuple[Stage, dict[str, Int]]] = [(last, {})]
    while waiting:
        stage, to = waiting.pop()
        name = stage.assign.tensor
        if name in terms:
            continue
        value = substitute(stage.assign.value, to)
        value = _inline(stages, value, stage, to, last, inlined)
        guards = tuple(substitute_condition(g, to) for g in stage.guards)
        terms[name] = (stage, value, guards, to)
        found = {r.tensor: r for r in reads(value) if _is_reference(stages, r, last)}
        for tensor in found:
            other = stages.reduction(tensor)
            assert other is not None
            waiting.append((other, _names(other, [r for r in reads(value) if r.tensor == tensor], last)))
    if len(terms) == 1:
        return None
    return _in_order(stages, last, terms, inlined)


def _is_reference(stages: Stages, read: Read, last: Stage) -> bool:
    """Whether it reads the result of a reduction over the axes that `last` reduces over."""
    other = stages.reduction(read.tensor)
    if other is None or other is last or not _plain_vars(read.index):
        return False
    names = {a.name for a in last.reduction}
    outside = not any(isinstance(i, Var) and i.name in names for i in read.index)
    return outside and len(other.reduction) == len(last.reduction)


def _names(other: Stage, found: list[Read], last: Stage) -> dict[str, Int]:
    """Its axes in the names of `last`: those of the address where all reads agree, and those it reduces over."""
    to: dict[str, Int] = {}
    for k, own in enumerate(other.assign.index):
        at = {r.index[k] for r in found}
        assert isinstance(own, Var)
        if len(at) == 1:
            (only,) = at
            assert isinstance(only, Var)
            to[own.name] = only
    for mine, theirs in zip(other.reduction, last.reduction, strict=True):
        to[mine.name] = Var(theirs.name)
    for mine, theirs in zip(other.reduction, last.reduction, strict=True):
        bounds = substitute_int(mine.lower, to), substitute_int(mine.upper, to)
        if bounds != (theirs.lower, theirs.upper):
            runs = f"{other.name} over {mine.name} in {mine.lower}..{mine.upper}"
            text = f"{runs}, {last.name} over {theirs.name} in {theirs.lower}..{theirs.upper}: the bounds differ"
            raise NotRewritten("DEPENDS", text, last.name)
    return to


def _inline(
    stages: Stages, value: Value, reader: Stage, to: dict[str, Int], last: Stage, inlined: set[str]
) -> Value:
    """The value with elementwise stages filled in that read a reference or are masks; `to` are the names that the axes
    of `reader`, whose term it is, have in it."""
    ranges = {}
    for axis in reader.axes:
        name = to.get(axis.name, Var(axis.name))
        if isinstance(name, Var):
            ranges[name.name] = substitute_int(axis.lower, to), substitute_int(axis.upper, to)

    def expanded(node: Value, done: frozenset[str], before: Stage) -> Value:
        if not isinstance(node, Read) or node.tensor in done:
            return node
        stage = stages.elementwise(node.tensor)
        if stage is None or not stages.earlier(stage, before) or not all(isinstance(i, Int) for i in node.index):
            return node
        names = {
            v.name: i
            for v, i in zip(stage.assign.index, node.index, strict=True)
            if isinstance(v, Var) and isinstance(i, Int)
        }
        if not _covers(stages, stage, names, ranges):
            return node
        inner = map_value(
            substitute(stage.assign.value, names), lambda v: expanded(v, done | {node.tensor}, stage)
        )
        if not any(_is_reference(stages, r, last) for r in reads(inner)) and not _masks(stage.assign.value):
            return node
        inlined.add(node.tensor)
        return inner

    return map_value(value, lambda v: expanded(v, frozenset(), reader))


def _masks(value: Value) -> bool:
    """Whether it is infinite where a condition does not hold: a mask, which may bound the loops."""
    return isinstance(value, Select) and (is_infinite(value.then) or is_infinite(value.other))


def _covers(stages: Stages, stage: Stage, names: dict[str, Int], ranges: dict[str, tuple[Int, Int]]) -> bool:
    """Whether it writes each element that is read: all there are, or those that an axis of the same bounds counts."""
    shape = stages.program.tensors[stage.assign.tensor].shape
    sizes = {v.name: n for v, n in zip(stage.assign.index, shape, strict=True) if isinstance(v, Var)}
    for axis in stage.axes:
        if axis.name not in sizes:
            return False
        at = names[axis.name]
        bounds = substitute_int(axis.lower, names), substitute_int(axis.upper, names)
        same = isinstance(at, Var) and ranges.get(at.name) == bounds
        if not same and bounds != (Const(0), sizes[axis.name]):
            return False
    return True


def _in_order(
    stages: Stages,
    last: Stage,
    terms: dict[str, tuple[Stage, Value, tuple[Condition, ...], dict[str, Int]]],
    inlined: set[str],
) -> Cascade:
    order = {s.assign.tensor: k for k, s in enumerate(stages.program.stages)}
    spatial = {a.name for a in last.spatial}
    common = set(spatial)
    for stage, _, _, to in terms.values():
        if stage is not last:
            common &= {v.name for k, v in to.items() if isinstance(v, Var)}
    rows = tuple(a for a in last.spatial if a.name in common)
    members = []
    for name, (stage, value, guards, to) in sorted(terms.items(), key=lambda item: order[item[0]]):
        mapped = {k for k, v in to.items() if isinstance(v, Var) and v.name in common}
        kept = {k: v for k, v in to.items() if k in mapped or k in {a.name for a in stage.reduction}}
        extra = tuple(a for a in stage.spatial if a.name not in (common if stage is last else mapped))
        if kept != to:
            value = _inline(stages, substitute(stage.assign.value, kept), stage, kept, last, inlined)
            guards = tuple(substitute_condition(g, kept) for g in stage.guards)
        op = UPDATES.get(stage.assign.op)
        if op is None:
            raise NotRewritten("UNSUPPORTED", f"no factor of {stage.assign.op} is known", stage.name)
        if stage.assign.op == "-=":
            value = Unary("-", value, value.dtype)
        index = tuple(substitute_int(i, kept) for i in stage.assign.index if isinstance(i, Int))
        assert stage.init is not None
        init = substitute(stage.init, kept)
        by_name = {a.name: a for a in rows}
        for own in stage.spatial:
            at = to.get(own.name) if own.name in mapped else None
            row = by_name[at.name] if isinstance(at, Var) else own
            if (substitute_int(own.lower, kept), substitute_int(own.upper, kept)) != (row.lower, row.upper):
                text = f"{stage.name} has rows {own.lower}..{own.upper}, {last.name} has {row.lower}..{row.upper}"
                raise NotRewritten("DEPENDS", text, last.name)
        members.append(Member(stage, op, value, extra, guards, init, Read(name, index, value.dtype)))
    cascade = Cascade(rows, last.reduction, tuple(members), frozenset(inlined))
    _refuse_unfinished(stages, cascade)
    return cascade


def _refuse_unfinished(stages: Stages, cascade: Cascade) -> None:
    """No element that a term reads besides the references may need a member's result."""
    below: dict[str, set[str]] = {}
    members = {id(m.stage.assign): m for m in cascade.members}
    for stage in stages.program.stages:
        name = stage.assign.tensor
        member = members.get(id(stage.assign))
        for tensor in sorted(member.used - cascade.names) if member is not None else ():
            if needed := below.get(tensor, set()) & cascade.names:
                text = f"{name} reads {tensor}, which needs all of {', '.join(sorted(needed))} first"
                raise NotRewritten("DEPENDS", text, stage.name)
        used = below.setdefault(name, set())
        for tensor in {r.tensor for r in (*stage.reads, *(() if stage.init is None else reads(stage.init)))}:
            used |= {tensor} | below.get(tensor, set())


def _together(stages: Stages, one: Cascade, other: Cascade) -> Cascade | None:
    """Two cascades that start with the same member, in the names of the first; None where they do not, or are of other
    rows."""
    root, theirs = one.members[0], other.members[0]
    if root.name != theirs.name:
        return None
    to: dict[str, Int] = {}
    for mine, their in zip(root.target.index, theirs.target.index, strict=True):
        if isinstance(mine, Var) and isinstance(their, Var):
            to[their.name] = mine
    if [to.get(a.name) for a in other.rows] != [Var(a.name) for a in one.rows]:
        return None
    to |= {b.name: Var(a.name) for a, b in zip(one.axes, other.axes, strict=True)}
    added = []
    for member in other.members:
        if member.name not in one.names:
            index = tuple(substitute_int(i, to) for i in member.target.index if isinstance(i, Int))
            added.append(
                replace(
                    member,
                    term=substitute(member.term, to),
                    guards=tuple(substitute_condition(g, to) for g in member.guards),
                    init=substitute(member.init, to),
                    target=replace(member.target, index=index),
                )
            )
    order = {s.assign.tensor: k for k, s in enumerate(stages.program.stages)}
    members = sorted((*one.members, *added), key=lambda m: order[m.name])
    return replace(one, members=tuple(members), inlined=one.inlined | other.inlined)
