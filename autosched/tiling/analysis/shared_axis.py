"""Whether stages, each with a loop of its own over one range, may run together a few iterations at a time.

    for i: H[i, :] = X[i, :] W1             for i: H[i, :] = X[i, :] W1
    for i: Y[i, :] = H[i, :] W2                    Y[i, :] = H[i, :] W2

They may where the loops as one are independent: no two iterations touch one element, at least one of them writing. Then
iterations may be taken in any order and by any thread, as long as the stages of each iteration keep theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from autosched.ir.program import Program
from autosched.logic import Const, Int, Var
from autosched.logic.walk import substitute_bool, substitute_int
from autosched.tiling.analysis.accesses import Statement, statements
from autosched.tiling.analysis.conflicts import sizes_of
from autosched.tiling.analysis.dependence import independent

SHARED = "shared iteration"
"""The one loop, by a name that no program's axis has."""


def may_share(program: Program, axes: Mapping[str, str], without: Collection[str] = ()) -> bool:
    """Whether iterations of the loops `axes` (stage to its axis) are independent, all of these stages taken together,
    whatever they do to the tensors `without`. No where an initialisation stands outside its stage's loop, or a loop's
    bounds depend on anything."""
    parts = [s for s in statements(program) if s.stage in axes]
    ranges = set()
    for s in parts:
        own = [a for a in s.axes if a.name == axes[s.stage]]
        if len(own) != 1:
            return False
        ranges.add((own[0].lower, own[0].upper))
    if len(ranges) != 1 or not all(isinstance(b, Const) for b in ranges.pop()):
        return False
    touching = (replace(s, accesses=tuple(a for a in s.accesses if a.tensor not in without)) for s in parts)
    return independent(tuple(_renamed(s, axes[s.stage]) for s in touching), SHARED, sizes_of(program))


def _renamed(statement: Statement, axis: str) -> Statement:
    """The statement with its loop under the shared name, and its other loops under names that no other has."""
    to: dict[str, Int] = {n: Var(f"{n} of {statement.position}") for n in statement.names}
    to[axis] = Var(SHARED)
    axes = []
    for a in statement.axes:
        found = to[a.name]
        assert isinstance(found, Var)
        lower, upper = substitute_int(a.lower, to), substitute_int(a.upper, to)
        axes.append(replace(a, name=found.name, lower=lower, upper=upper))
    accesses = tuple(
        replace(
            access,
            index=tuple(None if i is None else substitute_int(i, to) for i in access.index),
            when=substitute_bool(access.when, to),
        )
        for access in statement.accesses
    )
    return replace(statement, axes=tuple(axes), guard=substitute_bool(statement.guard, to), accesses=accesses)
