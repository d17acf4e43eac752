"""`written_first`: proves that every element of a tensor is written before it is read, so that its old values do not
matter.

Solved by z3 over the points of the program's loops. For each point that reads an element there is to be a point of a
plain assignment to it that runs earlier, and for each element of the tensor a point that writes it at all. Assignments
under guards on data do not count, and reads under such guards do: a proof holds for all data.

Each question has a z3 context of its own: threads that make data ask while others match, and a context serves one
thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autosched.ir.nodes import Axis
from autosched.ir.value import Condition, Index
from autosched.logic import Bool, Int, to_z3
from autosched.logic.solver import own_context, proving, z3

TIMEOUT_MS = 1000
"""For each question; a tensor that z3 does not decide in this time is read as well as written."""
_ITS = "!"
"""Suffix of a write's loop variables; no name of a program has it."""


@dataclass(frozen=True)
class ElementAccess:
    """A statement's access to an element: its loops, outermost first, guards, place in the text and subscripts."""

    axes: tuple[Axis, ...]
    guards: tuple[Condition, ...]
    path: tuple[int, ...]
    index: tuple[Index, ...]


@proving
def written_first(
    shape: tuple[Int, ...],
    symbolic: Mapping[str, tuple[int, int]],
    writes: Sequence[ElementAccess],
    uses: Sequence[ElementAccess],
) -> bool:
    """Whether z3 proves it for a tensor of this shape. `symbolic` are the ranges of sizes; `writes` are plain
    assignments to the tensor, `uses` are reads of it, updates' own among them."""
    sure = [w for w in writes if all(isinstance(p, Int) for p in w.index) and _certain(w)]
    if not sure:
        return False
    own = own_context()
    sizes = {name: z3.Int(name, own) for name in symbolic}
    facts = [z3.And(low <= sizes[n], sizes[n] <= high) for n, (low, high) in symbolic.items()]
    element = [z3.Int(f"{_ITS}{d}", own) for d in range(len(shape))]
    inside = [z3.And(e >= 0, e < to_z3(n, sizes, own)) for e, n in zip(element, shape, strict=True)]
    covered = z3.Or([z3.BoolVal(False, own), *(_reached(w, element, sizes, own) for w in sure)])
    if not _never(own, *facts, *inside, z3.Not(covered)):
        return False
    for use in uses:
        names = {a.name: z3.Int(a.name, own) for a in use.axes} | sizes
        here = [*_points(use, names, own), *_same(use, element, names, own)]
        earlier = z3.Or([z3.BoolVal(False, own), *(_reached(w, element, sizes, own, use) for w in sure)])
        if not _never(own, *facts, *inside, *here, z3.Not(earlier)):
            return False
    return True


def _certain(write: ElementAccess) -> bool:
    """Whether no guard on data decides whether the statement runs."""
    return all(isinstance(g, Bool) for g in write.guards)


def _points(access: ElementAccess, names: dict[str, Any], context: Any) -> Iterator[Any]:
    """Formulas: a point lies within the loops and guards of an access."""
    for axis in access.axes:
        here = names[axis.name]
        yield z3.And(to_z3(axis.lower, names, context) <= here, here < to_z3(axis.upper, names, context))
    yield from (to_z3(g, names, context) for g in access.guards if isinstance(g, Bool))


def _same(access: ElementAccess, element: list[Any], names: dict[str, Any], context: Any) -> Iterator[Any]:
    """Formulas: a point accesses the element; a subscript from data may be any."""
    for part, e in zip(access.index, element, strict=True):
        if isinstance(part, Int):
            yield to_z3(part, names, context) == e


def _reached(
    write: ElementAccess, element: list[Any], sizes: dict[str, Any], context: Any, before: ElementAccess | None = None
) -> Any:
    """Formula: some point of the assignment writes the element, and runs before the point of `before`."""
    own = {a.name: z3.Int(a.name + _ITS, context) for a in write.axes}
    names = own | sizes
    holds = [z3.BoolVal(True, context), *_points(write, names, context), *_same(write, element, names, context)]
    if before is not None:
        holds.append(_runs_earlier(write, before, own, context))
    return z3.Exists(list(own.values()), z3.And(holds)) if own else z3.And(holds)


def _runs_earlier(write: ElementAccess, use: ElementAccess, own: dict[str, Any], context: Any) -> Any:
    """The order of execution: iterations of the loops that both are in, and then the order of the text. (Names of
    loops are unique in a program. A statement reads before it writes.)"""
    shared = []
    for mine, theirs in zip(write.axes, use.axes, strict=False):
        if mine.name != theirs.name:
            break
        shared.append((own[mine.name], z3.Int(theirs.name, context)))
    ways = [z3.BoolVal(write.path < use.path, context)]
    for mine, theirs in reversed(shared):
        ways = [mine < theirs, z3.And(mine == theirs, z3.Or(ways))]
    return z3.Or(ways)


def _never(context: Any, *facts: Any) -> bool:
    """Whether z3 refutes that all of these hold together."""
    solver = z3.Then("simplify", "qsat", ctx=context).solver()
    solver.set("timeout", TIMEOUT_MS)
    solver.add(*facts)
    return bool(solver.check() == z3.unsat)
