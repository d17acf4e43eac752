"""Why a statement before a sum is no start of it (`started`), in words: which condition fails, and where."""

from __future__ import annotations

from autosched.errors import Location
from autosched.ir.printer import print_value
from autosched.ir.program import Program
from autosched.ir.rewrites.reuse import Place, places_of
from autosched.ir.value import Literal, Read
from autosched.logic import Int
from autosched.tensorize.spec.programs.started import asked, fills, in_order


def fault_of_start(program: Program, held: str) -> tuple[str, Location | None] | None:
    """Why the first of two statements that write `held` does not start the sum of the second, with its place; None
    where these are no start and a sum."""
    places = list(places_of(program.body))
    writers = [p for p in places if p.assign.tensor == held]
    if len(writers) != 2:
        return None
    first, second = writers
    if first.assign.op != "=" and second.assign.op == "=":
        said = f"{held} gets another value behind its sum: a start stands before it"
        return said, second.assign.location
    adds = second.assign.op != "=" or any(r.tensor == held for r in second.reads)
    if first.assign.op != "=" or not adds:
        return None
    said = _fault(program, places, first, second, held)
    return (said, first.assign.location) if said else None


def _fault(program: Program, places: list[Place], first: Place, second: Place, held: str) -> str:
    value, target = first.assign.value, program.tensors[held]
    if isinstance(value, Read) and value.tensor in program.parameters:
        own = program.tensors[value.tensor]
        if own.extents != target.extents:
            shapes = [" x ".join(map(str, t.extents)) for t in (own, target)]
            return f"{held} starts from {own.name}, whose shape is {shapes[0]}, and that of {held} is {shapes[1]}"
        if value.index != first.assign.index:
            mine, other = (_element(n, i) for n, i in ((held, first.assign.index), (own.name, value.index)))
            turned = " (transposed)" if sorted(map(str, value.index)) == sorted(map(str, first.assign.index)) else ""
            return f"{mine} starts from {other}, which is another element{turned}"
        if sum(r.tensor == own.name for p in places for r in p.reads) > 1:
            return f"{own.name} is read elsewhere, too, and not only as the start"
    elif not (isinstance(value, Literal) and value.value == 0):
        return f"{held} starts from {print_value(value)}: a start is 0, or an operand as it is"
    if first.guarded:
        return f"the start of {held} stands under a condition, so some elements have none"
    if around := {a.name for a in first.axes} - {str(i) for i in first.assign.index}:
        return f"{held} starts anew in each turn of the loop over {min(around)}"
    if not fills(program, first):
        whole = " x ".join(map(str, target.extents))
        return f"the start fills a part of {held} only, which has {whole} elements"
    if held in asked(program.body):
        return f"a condition reads {held}"
    if not in_order(first, second):
        return f"the loops around start and sum are at different elements of {held}"
    return ""


def _element(name: str, index: tuple[object, ...]) -> str:
    return f"{name}[{', '.join(str(i) if isinstance(i, Int) else '…' for i in index)}]"
