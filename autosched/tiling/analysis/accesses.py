"""Which elements each statement of a program touches: the input of dependence analysis.

Statements are taken from the program's body, so a stage with an initial value has two: the initialisation, in the
loops it stands in, and the update.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from autosched.ir.nodes import Assign, Axis, Guard, Loop, Stage
from autosched.ir.nodes import Statement as Node
from autosched.ir.program import Program
from autosched.ir.value import Condition, Index, Read, Select, Value, children, reads
from autosched.logic import TRUE, Bool, Int, all_of


@dataclass(frozen=True)
class TensorAccess:
    """One element touched by each instance of a statement. A subscript is None where it depends on data. `update` is
    the read and write of an accumulation (`+=`, `max=` …); `when` is known to hold where the access happens."""

    tensor: str
    index: tuple[Int | None, ...]
    write: bool = False
    update: bool = False
    when: Bool = TRUE

    def __str__(self) -> str:
        return f"{self.tensor}[{', '.join('?' if i is None else str(i) for i in self.index)}]"


@dataclass(frozen=True)
class Statement:
    """An assignment: its loops (outermost first), the formula of its guards (data-dependent ones are left out, as if
    they might hold), and what it touches. `position` is its place in the text."""

    position: int
    stage: str
    axes: tuple[Axis, ...]
    guard: Bool
    accesses: tuple[TensorAccess, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.axes)


def statements(program: Program) -> tuple[Statement, ...]:
    """All statements in textual order, each with the name of its stage."""
    found = list(_assigns(program.body, (), ()))
    owners = _owners(found, program.stages)
    return tuple(
        Statement(n, stage.name, axes, _known(guards), tuple(_touched(assign, guards)))
        for n, ((assign, axes, guards), stage) in enumerate(zip(found, owners, strict=True))
    )


Found = tuple[Assign, tuple[Axis, ...], tuple[Condition, ...]]


def _assigns(body: tuple[Node, ...], axes: tuple[Axis, ...], guards: tuple[Condition, ...]) -> Iterator[Found]:
    for node in body:
        match node:
            case Loop(axis, inner):
                yield from _assigns(inner, (*axes, axis), guards)
            case Guard(condition, inner):
                yield from _assigns(inner, axes, (*guards, condition))
            case Assign():
                yield node, axes, guards


def _owners(found: list[Found], stages: tuple[Stage, ...]) -> list[Stage]:
    """The stage of each assignment: its own, or the next one that writes the same tensor, which it initialises."""
    owners: list[Stage] = []
    waiting = list(stages)
    for assign, axes, _ in found:
        stage = next(s for s in waiting if s.assign.tensor == assign.tensor)
        owners.append(stage)
        if assign == stage.assign and axes == stage.axes:
            waiting.remove(stage)
    return owners


def _known(guards: tuple[Condition, ...]) -> Bool:
    return all_of(*(g for g in guards if isinstance(g, Bool)))


def _touched(assign: Assign, guards: tuple[Condition, ...]) -> Iterator[TensorAccess]:
    for part in (*guards, *assign.index, assign.value):
        if not isinstance(part, Int | Bool):
            yield from _reads(part, TRUE)
    yield TensorAccess(assign.tensor, _subscripts(assign.index), write=True, update=assign.op != "=")


def _reads(value: Value, when: Bool) -> Iterator[TensorAccess]:
    """Reads of a value; one on a side of a choice happens only where the choice falls on it."""
    match value:
        case Select(condition, then, other, _):
            if isinstance(condition, Bool):
                yield from _reads(then, all_of(when, condition))
                yield from _reads(other, all_of(when, ~condition))
            else:
                yield from (r for v in (condition, then, other) for r in _reads(v, when))
        case _:
            if isinstance(value, Read):
                yield TensorAccess(value.tensor, _subscripts(value.index), when=when)
            for child in children(value):
                yield from _reads(child, when)


def _subscripts(index: tuple[Index, ...]) -> tuple[Int | None, ...]:
    return tuple(i if isinstance(i, Int) else None for i in index)


def all_reads(stage: Stage) -> list[Read]:
    """Every read of a stage, its initial value's too, and its own element's where it updates that."""
    own = [stage.target] if stage.init is None and stage.assign.op != "=" else []
    return [*own, *stage.reads, *(reads(stage.init) if stage.init is not None else ())]
