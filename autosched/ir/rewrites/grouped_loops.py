"""`split_groups`: loops whose iterations share elements group by group, each as a loop over groups and one inside.

    for b in range(32): for j, p:                S[b, j] += Q[b, p] * K[b // 4, j, p]

    for b in range(8): for c in range(4):
        for j, p:                                S[b * 4 + c, j] += Q[b * 4 + c, p] * K[b, j, p]

The loop inside is an axis that K does not have, as the rows of a product are one that its columns do not have: a tile
may hold several of its iterations, which share what they read. All iterations run in the order in which they ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise

from autosched.ir.nodes import Assign, Axis, Guard, Loop, Stage, Statement
from autosched.ir.program import Program
from autosched.ir.rewrites.elements import elements_read, elements_written
from autosched.ir.rewrites.names import FreeNames
from autosched.ir.rewrites.rewrite import Rewrite
from autosched.ir.value import substitute, substitute_condition, substitute_index
from autosched.logic import Binary, Const, Int, Var
from autosched.logic.walk import substitute_int


def split_groups(program: Program) -> Rewrite | None:
    """The program with each loop over members of groups in two, and with it the loops of other statements over the same
    elements, so that these still follow on each result. None where no loop from 0 to a constant has whole groups."""
    axes = {a.name: a for a in _axes(program.body)}
    groups = _along_tensors(program, axes, _groups(program.body, axes))
    if not groups:
        return None
    names = FreeNames(program)
    members = {name: names(f"{name}_member") for name in groups}
    places: dict[str, Int] = {name: Var(name) * size + Var(members[name]) for name, size in groups.items()}

    def visit(stmt: Statement) -> Statement:
        match stmt:
            case Loop(axis, body):
                inner = tuple(map(visit, body))
                size = groups.get(axis.name)
                if size is None:
                    bounds = (substitute_int(bound, places) for bound in (axis.lower, axis.upper))
                    return Loop(Axis(axis.name, *bounds), inner)
                inside = Loop(Axis(members[axis.name], Const(0), Const(size)), inner)
                return Loop(replace(axis, upper=Const(axis.extent // size)), (inside,))
            case Guard(condition, body):
                return Guard(substitute_condition(condition, places), tuple(map(visit, body)))
            case Assign():
                index = tuple(substitute_index(i, places) for i in stmt.index)
                return replace(stmt, index=index, value=substitute(stmt.value, places))

    after = replace(program, body=tuple(map(visit, program.body)), source="")
    proof = tuple(f"{name} takes the values {places[name]} in their order, each once" for name in groups)
    return Rewrite("split groups", program, after, proof)


def split_axes(before: Stage, after: Stage) -> list[Axis]:
    """The loops over groups of a stage that `split_groups` has restated, each with its members as the next loop."""
    known = {a.name for a in before.axes}
    return [outer for outer, member in pairwise(after.axes) if member.name not in known]


def _groups(body: tuple[Statement, ...], axes: Mapping[str, Axis]) -> dict[str, int]:
    """The members of a group, by the loop over all members: `b // 4` in the subscript of what is read; of several sizes
    the greatest."""
    found: dict[str, int] = {}
    for read in elements_read(body):
        for index in read.index:
            for name, size in _quotients(index) if isinstance(index, Int) else ():
                if _whole(axes.get(name), size):
                    found[name] = max(size, found.get(name, 0))
    return found


def _along_tensors(program: Program, axes: Mapping[str, Axis], groups: Mapping[str, int]) -> dict[str, int]:
    """`groups`, with the loops of other statements that count the same dimension of an intermediate."""
    found = dict(groups)
    touched = (*elements_read(program.body), *elements_written(program.body))
    places = [r for r in touched if program.tensors[r.tensor].intermediate]
    counted = {((r.tensor, d), i.name) for r in places for d, i in enumerate(r.index) if isinstance(i, Var)}
    while True:
        along = {dimension: found[name] for dimension, name in counted if name in found}
        more = {name: along[dimension] for dimension, name in counted if dimension in along and name not in found}
        more = {name: size for name, size in more.items() if _whole(axes.get(name), size)}
        if not more:
            return found
        found |= more


def _whole(axis: Axis | None, size: int) -> bool:
    """Whether a loop runs over several groups of so many members, and no part of one."""
    constant = axis is not None and axis.lower == Const(0) and isinstance(axis.upper, Const)
    return constant and axis is not None and axis.extent > size > 1 and axis.extent % size == 0


def _quotients(node: Int) -> Iterator[tuple[str, int]]:
    """The quotients of a loop's variable by a constant in a subscript."""
    match node:
        case Binary("//", Var(name), Const(size)):
            yield name, size
        case Binary(_, left, right):
            yield from (*_quotients(left), *_quotients(right))


def _axes(body: tuple[Statement, ...]) -> Iterator[Axis]:
    for stmt in body:
        if isinstance(stmt, Loop):
            yield stmt.axis
        if not isinstance(stmt, Assign):
            yield from _axes(stmt.body)
