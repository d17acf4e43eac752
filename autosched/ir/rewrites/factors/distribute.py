"""`distributed`: a program's statements, some stages of them left out, as what runs before those and what runs after.

A loop that holds a stage to leave out is distributed: each other stage gets loops of its own. That is right where an
iteration reads what the same iteration wrote, and nothing is written twice.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from autosched.ir.nodes import Assign, Axis, Guard, Loop, Stage, Statement
from autosched.ir.prepared import assigns
from autosched.ir.program import Program
from autosched.ir.rewrites.names import FreeNames
from autosched.ir.rewrites.nesting import nested, under
from autosched.ir.rewrites.refusal import NotRewritten
from autosched.ir.value import (
    Read,
    reads,
    substitute,
    substitute_condition,
    substitute_index,
)
from autosched.logic import Int, Var
from autosched.logic.walk import substitute_int


def distributed(
    program: Program, out: frozenset[str], inlined: frozenset[str], used: Mapping[str, Collection[str]]
) -> tuple[tuple[Statement, ...], tuple[Statement, ...]]:
    """Without the stages that write `out`: what needs none of these, and what does. Intermediates among `inlined` that
    nothing else reads are left out too. `used` is what each of `out` reads where it is computed now. Raises
    NotRewritten where the order would change what is computed."""
    stages = program.stages
    needs = _needs(stages)
    gone = set(out)
    while more := [
        n
        for n in inlined - gone
        if program.tensors[n].intermediate
        and not any(r.tensor == n for s in stages for r in _reads(s) if s.assign.tensor not in gone)
    ]:
        gone |= set(more)
    before: list[Statement] = []
    after: list[Statement] = []
    for statement in program.body:
        written = {a.tensor for a in assigns(statement)}
        own = [s for s in stages if any(a is s.assign for a in assigns(statement))]
        if not written & gone and len({bool(needs[n] & out) for n in written}) == 1:
            (after if needs[next(iter(written))] & out else before).append(statement)
            continue
        _refuse_other_orders(own)
        for stage in own:
            if stage.assign.tensor not in gone:
                (after if needs[stage.assign.tensor] & out else before).extend(nest_of(stage))
    place = {n: 1 if n in gone else 2 if needs[n] & out else 0 for n in needs}
    _refuse_moved(stages, place, used)
    names, taken = FreeNames(program), set[str]()
    return tuple(own_names(s, names, taken, {}) for s in before), tuple(own_names(s, names, taken, {}) for s in after)


def own_names(statement: Statement, names: FreeNames, taken: set[str], to: dict[str, Int]) -> Statement:
    """With axes that no other loop has the names of: nests that come from one loop had its own."""
    match statement:
        case Loop(axis, body):
            name = names(axis.name) if axis.name in taken else axis.name
            taken.add(axis.name)
            inner = to | {axis.name: Var(name)} if name != axis.name else to
            bounds = Axis(name, substitute_int(axis.lower, to), substitute_int(axis.upper, to))
            return Loop(bounds, tuple(own_names(s, names, taken, inner) for s in body))
        case Guard(condition, body):
            return Guard(substitute_condition(condition, to), tuple(own_names(s, names, taken, to) for s in body))
    if not to:
        return statement
    index = tuple(substitute_index(i, to) for i in statement.index)
    return Assign(statement.tensor, index, statement.op, substitute(statement.value, to))


def nest_of(stage: Stage) -> tuple[Statement, ...]:
    """The stage in loops of its own."""
    update = under(stage.guards, stage.assign)
    if stage.init is None:
        return nested(stage.axes, update)
    start = Assign(stage.assign.tensor, stage.assign.index, "=", stage.init)
    return nested(stage.spatial, start, *nested(stage.reduction, update))


def _needs(stages: tuple[Stage, ...]) -> dict[str, set[str]]:
    """For each tensor that is written, which tensors its values come from, in any number of steps."""
    found: dict[str, set[str]] = {}
    for stage in stages:
        used = found.setdefault(stage.assign.tensor, set())
        for tensor in {r.tensor for r in _reads(stage)}:
            used |= {tensor} | found.get(tensor, set())
    return found


def _reads(stage: Stage) -> list[Read]:
    return [*stage.reads, *(reads(stage.init) if stage.init is not None else ())]


def _refuse_other_orders(stages: list[Stage]) -> None:
    """An iteration may read what the same one writes, and of these stages nothing else."""
    for k, stage in enumerate(stages):
        name = stage.assign.tensor
        if sum(s.assign.tensor == name for s in stages) > 1:
            text = f"several statements of one loop write {name}; the later ones need a tensor of their own"
            raise NotRewritten("DEPENDS", text, stage.name)
        for n, other in enumerate(stages):
            for read in (r for r in _reads(other) if r.tensor == name):
                shared = [a.name for a, b in zip(stage.axes, other.axes, strict=False) if a == b]
                places = {i.name: d for d, i in enumerate(stage.assign.index) if isinstance(i, Var)}
                same = all(a in places and read.index[places[a]] == Var(a) for a in shared)
                if n != k and not same:
                    text = f"{other.name} reads elements of {name} that other iterations of a shared loop write"
                    raise NotRewritten("DEPENDS", text, other.name)


def _refuse_moved(stages: tuple[Stage, ...], place: Mapping[str, int], used: Mapping[str, Collection[str]]) -> None:
    """Of two stages that touch one tensor, one of which writes it, the first of the text stays the first: `place` is 0
    before the stages left out, 1 with them, 2 after. Among those left out a later one may read an earlier one."""
    touched = [_touched(s, used) for s in stages]
    for k, (first, read) in enumerate(zip(stages, touched, strict=True)):
        mine = first.assign.tensor
        for second, read_later in zip(stages[k + 1 :], touched[k + 1 :], strict=True):
            other = second.assign.tensor
            if place[mine] < place[other] or (place[mine] == place[other] != 1):
                continue
            together = place[mine] == place[other]
            if other in read or (not together and (mine in read_later or mine == other)):
                tensor = other if other in read else mine
                text = f"{first.name} comes before {second.name} in the program, and both use {tensor}"
                raise NotRewritten("DEPENDS", text, second.name)


def _touched(stage: Stage, used: Mapping[str, Collection[str]]) -> set[str]:
    """What a stage reads, where it is computed now."""
    name = stage.assign.tensor
    if name in used and stage.assign.op != "=":
        return set(used[name]) - {name}
    return {r.tensor for r in _reads(stage)}
