"""Temporaries of an instruction: tensors that only its own statements name, filled in where they are read.

    for i in range(16):                                   for i in range(16):
        t[i] = s32(a[i]) * s32(b[i])                          c[i] = s16((s32(a[i]) * s32(b[i]) + 16384) >> 15)
        c[i] = s16((t[i] + 16384) >> 15)

So several statements that say what happens to an element one after the other are one statement.
"""

from __future__ import annotations

import re
from dataclasses import replace

from autosched.errors import Location
from autosched.ir.nodes import Assign, Guard, Loop, Statement
from autosched.ir.program import Program
from autosched.ir.rewrites.reuse import Place, each_place, places_of
from autosched.ir.value import Index, Read, Value, is_plain, map_value, reads, substitute, substitute_index
from autosched.ir.variables import index_vars
from autosched.logic import Const, Int, Var

ELEMENT = "a temporary has one element for each turn of its loops: t[i] = …"
SUM = (
    "describe two instructions, which plans put together: the sum, of which {name} is the target, and what overwrites "
    "another operand with a function of {name}"
)


class NoTemporary(Exception):
    """Why a tensor is no temporary; `hint` says what would be one."""

    def __init__(self, message: str, hint: str | None, location: Location | None) -> None:
        super().__init__(message)
        self.message, self.hint, self.location = message, hint, location


def without_temporaries(program: Program, text: str) -> Program:
    """The program of `text` with its intermediates in the values that read them; NoTemporary for one that is more than
    an element's value. What loops are called in the text they are called then."""
    held: list[Assign] = []
    while (made := _first(program)) is not None:
        held.append(made.assign)
        program = _filled(program, made)
    written = {p.assign.tensor for p in places_of(program.body)}
    for assign in held:
        for read in reads(assign.value):
            if read.tensor in written and _sums(program, read.tensor):
                said = f"the temporary {assign.tensor!r} holds {read.tensor}, which changes while it is added to"
                raise NoTemporary(said, None, assign.location)
    return named_as_written(program, text) if held else program


def named_as_written(program: Program, text: str) -> Program:
    """Loops of later statements by the names that the text gives them (`i`, where the program has `i_2`)."""
    names = [a.name for p in places_of(program.body) for a in p.axes]
    to: dict[str, str] = {}
    for name in names:
        stem = re.sub(r"(?<=.)_\d+$", "", name)
        if not re.search(rf"\b{name}\b", text) and stem not in {*names, *program.tensors, *to.values()}:
            to[name] = stem

    def visit(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return tuple(map(renamed, body))

    def renamed(stmt: Statement) -> Statement:
        values = {old: Var(new) for old, new in to.items()}
        match stmt:
            case Loop(axis, inner):
                return Loop(replace(axis, name=to.get(axis.name, axis.name)), visit(inner))
            case Assign():
                index = tuple(substitute_index(i, values) for i in stmt.index)
                return replace(stmt, index=index, value=substitute(stmt.value, values))
            case Guard():
                return replace(stmt, body=visit(stmt.body))

    return replace(program, body=visit(program.body)) if to else program


def _first(program: Program) -> Place | None:
    """The first statement that fills an intermediate."""
    return next((p for p in places_of(program.body) if program.tensors[p.assign.tensor].intermediate), None)


def _sums(program: Program, tensor: str) -> bool:
    """Whether an element of the tensor is written more than once."""
    writers = [p for p in places_of(program.body) if p.assign.tensor == tensor]
    return len(writers) != 1 or {a.name for a in writers[0].axes} != set(index_vars(writers[0].assign.index))


def _filled(program: Program, made: Place) -> Program:
    """The program without the intermediate that `made` fills."""
    assign, name = made.assign, made.assign.tensor
    places = list(places_of(program.body))
    if fault := _fault(program, made, places):
        raise NoTemporary(f"the temporary {name!r} {fault[0]}", fault[1], assign.location)
    axes = [part.name for part in assign.index if isinstance(part, Var)]
    around = {a.name for a in made.axes}
    users = [p for p in places if any(r.tensor == name for r in p.reads)]
    if not users:
        raise NoTemporary(f"the temporary {name!r} is not used", "leave it out", assign.location)
    for user in users:
        shared = around & {a.name for a in user.axes}
        for read in (r for r in user.reads if r.tensor == name):
            own = {axis: part for axis, part in zip(axes, read.index, strict=True) if axis in shared}
            inside = is_plain(read.index) and all(part == Var(axis) for axis, part in own.items())
            if user.number <= made.number or not inside:
                said = f"the temporary {name!r} is read at an element that is not written yet"
                raise NoTemporary(said, "read the element of this turn, or write all of them first", assign.location)

    def element(v: Value) -> Value:
        if not (isinstance(v, Read) and v.tensor == name):
            return v
        return substitute(assign.value, dict(zip(axes, _plainly(v.index), strict=True)))

    def each(number: int, stmt: Assign) -> Assign | None:
        return None if number == made.number else replace(stmt, value=map_value(stmt.value, element))

    tensors = {n: t for n, t in program.tensors.items() if n != name}
    return replace(program, body=each_place(program.body, each), tensors=tensors, source="")


def _plainly(index: tuple[Index, ...]) -> tuple[Int, ...]:
    assert is_plain(index)
    return index


def _fault(program: Program, made: Place, places: list[Place]) -> tuple[str, str | None] | None:
    """(message, hint) of what keeps an intermediate from being an element's value."""
    assign = made.assign
    name, shape = assign.tensor, program.tensors[assign.tensor].shape
    writers = [p.assign for p in places if p.assign.tensor == name]
    if len(writers) > 1 and any(a.op != "=" or any(r.tensor == name for r in reads(a.value)) for a in writers):
        return "holds a sum that does more than start, add up and be copied to an operand", SUM.format(name=name)
    if len(writers) > 1:
        return "is written by more than one statement", ELEMENT
    if assign.op != "=" or any(r.tensor == name for r in made.reads):
        return "adds up what it holds, and nothing starts it", f"start it: {name}[…] = 0, or from an operand"
    if early := [r.tensor for r in made.reads if program.tensors[r.tensor].intermediate]:  # those before are filled in
        return f"reads {early[0]!r}, which is not written yet", "write it first"
    if made.guarded:
        return "is written under a condition", "choose its value: t[i] = x if condition else y"
    ends = {a.name: (a.lower, a.upper) for a in made.axes}
    named = [part.name for part in assign.index if isinstance(part, Var)]
    if len(named) != len(assign.index) or len(set(named)) != len(named) or set(named) != set(ends):
        return "is not indexed by each of its loops once", ELEMENT
    if any(ends[axis] != (Const(0), size) for axis, size in zip(named, shape, strict=True)):
        return "is not written from end to end", ELEMENT
    return None
