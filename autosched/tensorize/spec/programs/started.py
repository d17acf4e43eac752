"""Instructions whose sum starts from an operand or from zero, as those that add to their target.

    for i, j in grid(8, 8):                     for i, j, k in grid(8, 8, 16):
        d[i, j] = c[i, j]                           d[i, j] += s32(a[i, k]) * s32(b[k, j])
        for k in range(16):
            d[i, j] += s32(a[i, k]) * s32(b[k, j])

On the left c and d are two registers. Issued with one register as both, it is the instruction on the right, which is
how a sum of many steps is made of it. Where the start is 0 in place of `c[i, j]`, the right one with a register that
holds 0 computes the same (`Intrinsic.from_zero`). A temporary in the target's place, copied to it at the end, says the
same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import copysign

from autosched.ir.nodes import Assign, Guard, Statement
from autosched.ir.program import Program
from autosched.ir.rewrites.reuse import Place, each_place, places_of
from autosched.ir.value import Literal, Read, Value, is_plain, is_value, map_value, reads
from autosched.logic import Const, Var


@dataclass(frozen=True)
class Started:
    """`program` adds to its target. `start` is the operand that was the target's start and is the target now
    (`target`), or None; `from_zero`: the sum starts from zero. `written_out`: as in `Intrinsic`."""

    program: Program
    start: str | None = None
    target: str | None = None
    from_zero: bool = False
    written_out: tuple[str, ...] = ()


def with_start(program: Program) -> Started:
    """The program as one that adds to its target, where a sum in it has a start and leaves as it is; else as given."""
    places = list(places_of(program.body))
    for place in places:
        made = _folded(program, places, place)
        if made is not None:
            return made
    return Started(program)


def sum_from_zero(program: Program) -> Program | None:
    """A program of one statement that overwrites an integer, as one that adds to it: 0 + x is x modulo 2^w. None for
    any other."""
    places = list(places_of(program.body))
    if len(places) != 1:
        return None
    assign = places[0].assign
    overwrites = assign.op == "=" and all(r.tensor != assign.tensor for r in places[0].reads)
    if not overwrites or places[0].guarded or not program.tensors[assign.tensor].dtype.is_integer:
        return None

    def visit(stmt: Statement) -> Statement:
        return replace(stmt, op="+=") if isinstance(stmt, Assign) else replace(stmt, body=tuple(map(visit, stmt.body)))

    return replace(program, body=tuple(map(visit, program.body)), source="")


def _folded(program: Program, places: list[Place], first: Place) -> Started | None:
    """With the sum that `first` starts folded; None where it starts none, or one that is more than that."""
    assign, held = first.assign, first.assign.tensor
    writers = [p for p in places if p.assign.tensor == held]
    if len(writers) != 2 or writers[0] is not first or not fills(program, first):
        return None
    added = writers[1]
    adds = added.assign.op != "=" or any(r.tensor == held for r in added.reads)
    if not adds or not in_order(first, added) or held in asked(program.body):
        return None
    start = _start_of(program, places, first)
    value = assign.value
    if start is None and not (isinstance(value, Literal) and value.value == 0 and copysign(1.0, value.value) > 0):
        return None
    readers = [p for p in places if p is not added and any(r.tensor == held for r in p.reads)]
    drop, target = [first], held
    if program.tensors[held].intermediate:
        if len(readers) != 1 or not _copies(program, places, readers[0], held) or not in_order(added, readers[0]):
            return None
        drop, target = [first, readers[0]], readers[0].assign.tensor
    elif readers:
        return None
    gone = {n for n in (start, held) if n is not None and n != target}
    tensors = {n: t for n, t in program.tensors.items() if n not in gone}
    parameters = tuple(p for p in program.parameters if p not in gone)
    body = _without(program.body, {p.number for p in drop}, held, target)
    made = replace(program, body=body, tensors=tensors, parameters=parameters, source="")
    return Started(made, start, target if start else None, start is None)


def _start_of(program: Program, places: list[Place], first: Place) -> str | None:
    """The operand from which each element starts, of the target's type and shape, and read there alone; else None."""
    assign = first.assign
    value, own = assign.value, program.tensors[assign.tensor]
    if not isinstance(value, Read) or value.index != assign.index or value.tensor not in program.parameters:
        return None
    operand = program.tensors[value.tensor]
    used = sum(r.tensor == value.tensor for p in places for r in p.reads)
    written = any(p.assign.tensor == value.tensor for p in places) or value.tensor in asked(program.body)
    same = (operand.dtype, operand.extents) == (own.dtype, own.extents)
    return value.tensor if used == 1 and not written and same else None


def _copies(program: Program, places: list[Place], last: Place, held: str) -> bool:
    """Whether a statement does nothing but fill an operand of its own with what the temporary holds."""
    assign = last.assign
    if assign.value != Read(held, assign.index, program.tensors[held].dtype) or not fills(program, last):
        return False
    target, own = program.tensors[assign.tensor], program.tensors[held]
    alone = all(p is last or assign.tensor not in {p.assign.tensor, *(r.tensor for r in p.reads)} for p in places)
    return alone and not target.intermediate and (target.dtype, target.extents) == (own.dtype, own.extents)


def fills(program: Program, place: Place) -> bool:
    """Whether a statement writes each element of its tensor once, in loops over nothing else."""
    assign = place.assign
    ends = {a.name: (a.lower, a.upper) for a in place.axes}
    named = [part.name for part in assign.index if isinstance(part, Var)]
    if place.guarded or assign.op != "=" or any(r.tensor == assign.tensor for r in place.reads):
        return False
    shape = program.tensors[assign.tensor].shape
    single = [part == Const(0) and size == Const(1) for part, size in zip(assign.index, shape, strict=True)]
    whole = all(
        one or (isinstance(part, Var) and ends.get(part.name) == (Const(0), size))
        for one, part, size in zip(single, assign.index, shape, strict=True)
    )
    return whole and len(set(named)) == len(named) and set(named) == set(ends)


def asked(body: tuple[Statement, ...]) -> set[str]:
    """What conditions on data read."""
    found = set[str]()
    for stmt in body:
        if isinstance(stmt, Guard) and is_value(stmt.condition):
            found |= {r.tensor for r in reads(stmt.condition)}
        if not isinstance(stmt, Assign):
            found |= asked(stmt.body)
    return found


def in_order(earlier: Place, later: Place) -> bool:
    """Whether the first statement is done with an element before the second comes to it: in loops around both, both
    are at the element of this turn."""
    shared = {a.name for a in earlier.axes} & {a.name for a in later.axes}
    mine, other = earlier.assign.index, later.assign.index
    if earlier.number >= later.number or not (is_plain(mine) and is_plain(other)):
        return False
    reached = set[str]()
    for one, two in zip(mine, other, strict=True):
        for name in shared:
            if Var(name) in (one, two):
                if one != two:
                    return False
                reached.add(name)
    return reached == shared


def _without(body: tuple[Statement, ...], drop: set[int], old: str, new: str) -> tuple[Statement, ...]:
    """The statements but those of these numbers, with one tensor's name for another."""

    def renamed(v: Value) -> Value:
        return replace(v, tensor=new) if isinstance(v, Read) and v.tensor == old else v

    def each(number: int, stmt: Assign) -> Assign | None:
        tensor = new if stmt.tensor == old else stmt.tensor
        return None if number in drop else replace(stmt, tensor=tensor, value=map_value(stmt.value, renamed))

    return each_place(body, each)
