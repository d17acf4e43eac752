"""Loops that data choose by outermost: for all that is inside of them a subscript from data is one number.

    for i, j, p in grid(512, 64, 64):             for i_block in range(16):
        Y[i, j] += X[i, p] * W[E[i // 32], p, j]      for i, j, p in grid(32, 64, 64):
                                                          Y[i_block * 32 + i, j] += … * W[E[i_block], p, j]

Whether iterations may run in that order is the caller's to prove.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

from autosched.ir.nodes import Assign, Axis, Stage, Statement
from autosched.ir.prepared import assigns
from autosched.ir.program import Program
from autosched.ir.rewrites.names import FreeNames
from autosched.ir.rewrites.nesting import nested, under
from autosched.ir.rewrites.quotients import fold_quotients
from autosched.ir.stages import stages_of
from autosched.ir.value import (
    Comparison,
    FromIndex,
    Index,
    Logical,
    Read,
    Value,
    is_value,
    substitute,
    substitute_condition,
    substitute_index,
    walk,
)
from autosched.logic import Binary, Const, Int, Var, affine, free_vars


@dataclass(frozen=True)
class ChoiceBlock:
    """So many neighbouring iterations of an axis for which a subscript is the same: 1 where it is another for each."""

    axis: str
    size: int


def chosen_reads(value: Value) -> Iterator[Read]:
    """The reads of a value that have subscripts from data, and those inside such subscripts that have."""
    for node in walk(value):
        if isinstance(node, Read) and any(is_value(i) for i in node.index):
            yield node


def blocks_of(stage: Stage, read: Read | None) -> tuple[ChoiceBlock, ...] | None:
    """The axes that subscripts from data of a read, and bounds from data in the stage's guards, depend on, in the
    stage's order; None where one is no loop of constant bounds, or its blocks are not whole."""
    axes = {a.name: a for a in stage.axes}
    found: dict[str, int] = {}
    parts = [part for part in read.index if is_value(part)] if read is not None else []
    for value in (*parts, *(b for g in stage.guards if is_value(g) for b in _bounds(g))):
        for node in walk(value):
            inside: Sequence[Index] = node.index if isinstance(node, Read) else ()
            for index in (node.index,) if isinstance(node, FromIndex) else inside:
                if isinstance(index, Int) and not _sizes(index, axes, found):
                    return None
    return tuple(ChoiceBlock(name, found[name]) for name in axes if name in found)


def _bounds(guard: Value) -> Iterator[Value]:
    """What a condition on data compares axes with; all of a condition of another kind."""
    match guard:
        case Logical("and", parts):
            for part in parts:
                yield from _bounds(part) if is_value(part) else ()
        case Comparison("<" | ">=", FromIndex(), bound) | Comparison("<=" | ">", bound, FromIndex()):
            yield bound
        case _:
            yield guard


def _sizes(index: Int, axes: Mapping[str, Axis], found: dict[str, int]) -> bool:
    """Adds the sizes of blocks in which a subscript is the same; False where they are not whole."""
    match index:
        case Binary("//", inner, Const(by)) if (size := _whole(inner, by, axes)) is not None:
            names, block = free_vars(inner), size
        case Binary(_, left, right):
            return _sizes(left, axes, found) and _sizes(right, axes, found)
        case _:
            names, block = free_vars(index), 1
    for name in names:
        axis = axes.get(name)
        if axis is None or not isinstance(axis.lower, Const) or not isinstance(axis.upper, Const):
            return False
        found[name] = gcd(block, found.get(name, block))
    return True


def _whole(inner: Int, by: int, axes: Mapping[str, Axis]) -> int | None:
    """How many iterations of its only axis divide to one number, where these are whole blocks of that axis."""
    form = affine(inner)
    if form is None or len(form.coefficients) != 1:
        return None
    ((name, step),) = form.coefficients.items()
    axis = axes.get(name)
    if axis is None or not isinstance(axis.lower, Const) or not isinstance(axis.upper, Const):
        return None
    first = form.constant + step * axis.lower.value
    size = by // step if step > 0 and by % step == 0 else 1
    return size if size > 1 and first % by == 0 and axis.extent % size == 0 else None


def chosen_blocks(
    program: Program, stage: Stage, blocks: Sequence[ChoiceBlock]
) -> tuple[Program, tuple[str, ...]] | None:
    """The program with the blocks' loops around the rest of a stage, and the names of these loops, outermost first.
    None for a stage that stands in one statement with others.

    Loops that reduce go outside of a statement that begins no sum: where the stage does, it begins in a statement of
    its own then.
    """
    number = next((k for k, s in enumerate(program.body) if stages_of((s,)) and stage.assign in assigns(s)), None)
    if number is None or any(is_value(i) for i in stage.assign.index):
        return None
    found = assigns(program.body[number])
    begins = len(found) == 2 and found[0].tensor == stage.assign.tensor and stage.init is not None
    if (len(found) > 1 and not begins) or any(not _constant(a) for a in stage.axes):
        return None
    names = FreeNames(program)
    sizes = {b.axis: b.size for b in blocks}
    spatial = {a.name for a in stage.spatial}
    around: list[Axis] = []
    inside: list[Axis] = []
    to: dict[str, Int] = {}
    for axis in stage.axes:
        size = sizes.get(axis.name)
        if size is None:
            inside.append(axis)
        elif size == 1:
            around.append(axis)
        else:
            outer = Axis(names(f"{axis.name}_block"), Const(0), Const(axis.extent // size))
            around.append(outer)
            inside.append(Axis(axis.name, Const(0), Const(size)))
            to[axis.name] = Var(outer.name) * size + Var(axis.name) + axis.lower
    core = under([substitute_condition(g, to) for g in stage.guards], _moved(stage.assign, to))
    body: tuple[Statement, ...]
    kept = [a for a in inside if a.name in spatial]
    reduced = [a for a in inside if a.name not in spatial]
    if not begins:
        body = nested([*around, *inside], core)
    elif sizes.keys() <= spatial:
        body = nested([*around, *kept], _moved(found[0], to), *nested(reduced, core))
    else:
        fresh = {a.name: Axis(names(a.name), a.lower, a.upper) for a in stage.spatial}
        own = {name: Var(a.name) for name, a in fresh.items()}
        body = (*nested([*fresh.values()], _moved(found[0], own)), *nested([*around, *inside], core))
    after = replace(program, body=(*program.body[:number], *body, *program.body[number + 1 :]))
    folded = fold_quotients(after)
    return (folded[0] if folded else after), tuple(a.name for a in around)


def _constant(axis: Axis) -> bool:
    return isinstance(axis.lower, Const) and isinstance(axis.upper, Const)


def _moved(assign: Assign, to: Mapping[str, Int]) -> Assign:
    index = tuple(substitute_index(i, to) for i in assign.index)
    return replace(assign, index=index, value=substitute(assign.value, to))
