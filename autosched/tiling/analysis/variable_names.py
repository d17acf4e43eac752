"""Names that variables of generated code may have.

Loops of generated code are called after axes (`ib` and `ir` are blocks and registers of `i`) and after workers. A loop
around others that has such a name gets another one before its body is planned: the body knows that loop as a size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from autosched.ir.nodes import Assign, Axis, Guard, Loop, Statement
from autosched.ir.program import Program
from autosched.ir.rewrites.names import FreeNames
from autosched.ir.value import substitute, substitute_condition, substitute_index
from autosched.logic import Int, Var
from autosched.logic.walk import substitute_int

_SUFFIXES = "btruvsfg"
"""Last letters of generated loop variables: block, tile, register unit, depth unit, unrolled unit, slice, fragment,
group."""
_TAKEN = (
    "e", "thread", "warp", "warpgroup", "cluster", "block", "tile", "turn", "slice", "from", "z", "s", "chain",
    "chunk", "share", "part", "piece", "row", "column", "other", "peer", "to", "u",
)
"""Generated variables that come from no axis: the lane, workers, a GPU's outer blocks and slices, and their parts."""


def looks_generated(name: str) -> bool:
    """Whether generated code may call a variable of its own so, whatever other axes there are.

    >>> [looks_generated(n) for n in ("jb", "jb_", "jb_2", "j", "b", "thread")]
    [True, True, False, False, False, True]
    """
    base = name.rstrip("_")
    return base in _TAKEN or (len(base) > 1 and base[-1] in _SUFFIXES)


def free_name(names: FreeNames, like: str) -> str:
    """A name like this one that neither the program has nor generated code."""
    name = names(like)
    return names(like) if looks_generated(name) else name


def told_apart(
    program: Program, loops: Sequence[Axis], body: tuple[Statement, ...]
) -> tuple[tuple[Axis, ...], tuple[Statement, ...]]:
    """Loops of a program and their body, the same but for names: no loop has a name that generated code may use."""
    names = FreeNames(program)
    to: dict[str, Int] = {a.name: Var(free_name(names, a.name)) for a in loops if looks_generated(a.name)}
    if not to:
        return tuple(loops), body
    new = (replace(_bounded(a, to), name=str(to.get(a.name, a.name))) for a in loops)
    return tuple(new), tuple(_renamed(s, to) for s in body)


def _bounded(axis: Axis, to: dict[str, Int]) -> Axis:
    return replace(axis, lower=substitute_int(axis.lower, to), upper=substitute_int(axis.upper, to))


def _renamed(stmt: Statement, to: dict[str, Int]) -> Statement:
    match stmt:
        case Loop(axis, body):
            return Loop(_bounded(axis, to), tuple(_renamed(s, to) for s in body))
        case Guard(condition, body):
            return Guard(substitute_condition(condition, to), tuple(_renamed(s, to) for s in body))
        case Assign():
            at = tuple(substitute_index(i, to) for i in stmt.index)
            return replace(stmt, index=at, value=substitute(stmt.value, to))
