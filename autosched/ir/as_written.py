"""Values in the names that a file has: what rewrites and the parser named is told by what was written.

    for i: M[i] = …                     the second loop's axes are i_2 and j_2 inside of the program
    for i, j: E[i, j] = exp(X[i, j] - M[i])

    E_s[i_3, j_3]  of a rewrite         X[i, j] - M[i], a part of E
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.ir.stages import condition_reads
from autosched.ir.value import Read, Value, is_plain, map_value, reads, substitute
from autosched.ir.variables import value_vars
from autosched.logic import Int, Var

MOST_INSIDE = 16
"""Intermediates inside of each other that are looked through."""
_NUMBERED = re.compile(r"(.+)_\d+")


def written_stage(stage: Stage, program: Program, given: Program) -> Stage:
    """The stage of the program `given` that a stage of a `program` made of it is a part of: itself, or the one for
    which its elements are computed. Itself where there is none."""
    for reader, _ in _readers(stage, program, given):
        stage = reader
    return stage


def as_written(value: Value, stage: Stage, program: Program, given: Program) -> Value:
    """A value of a stage of `program`, which was made of the program `given`, with the names of its file as far as they
    are known: over the axes of the stage that it was written for, from tensors that the file has."""
    for reader, read in _readers(stage, program, given):
        value = substitute(value, _moved(stage, read))
        stage = reader
    for _ in range(MOST_INSIDE):
        inner = _looked_through(value, program, given)
        if inner == value:
            break
        value = inner
    return substitute(value, {n: Var(w) for n, w in _names(value_vars(value), given).items()})


def written_axes(axes: Iterable[str], given: Program) -> dict[str, str]:
    """Of axes that the file does not name so (`i_2`), the names that it has for them; none that two of them have."""
    return _names(frozenset(axes), given)


def _readers(stage: Stage, program: Program, given: Program) -> Iterator[tuple[Stage, Read]]:
    """The stages, one for the other, for which elements are computed that no stage of `given` writes, each with how it
    reads the one before."""
    for _ in range(MOST_INSIDE):
        made = stage.assign.tensor
        if made in given.tensors or any(not isinstance(i, Var) for i in stage.assign.index):
            return
        uses = ((s, r) for s in program.stages for r in _reads(s) if r.tensor == made)
        found = next((use for use in uses if is_plain(use[1].index) and use[0].assign.tensor != made), None)
        if found is None:
            return
        yield found
        stage = found[0]


def _reads(stage: Stage) -> tuple[Read, ...]:
    return (*reads(stage.assign.value), *condition_reads(stage.guards))


def _moved(stage: Stage, read: Read) -> dict[str, Int]:
    """The axes of a stage as the element has them that is read."""
    assert is_plain(read.index)
    return {i.name: at for i, at in zip(stage.assign.index, read.index, strict=True) if isinstance(i, Var)}


def _looked_through(value: Value, program: Program, given: Program) -> Value:
    """The value with what elements are computed from, where the file has none of these."""

    def visit(node: Value) -> Value:
        if not isinstance(node, Read) or node.tensor in given.tensors or not is_plain(node.index):
            return node
        writers = [s for s in program.stages if s.assign.tensor == node.tensor]
        if len(writers) != 1 or writers[0].assign.op != "=" or writers[0].guards:
            return node
        (made,) = writers
        plain = all(isinstance(i, Var) for i in made.assign.index)
        return substitute(made.assign.value, _moved(made, node)) if plain else node

    return map_value(value, visit)


def _names(axes: frozenset[str], given: Program) -> dict[str, str]:
    """Of axes whose names the file does not have, those that they were numbered from."""
    words = set(re.findall(r"\w+", given.source))
    found = {}
    for axis in axes:
        numbered = _NUMBERED.fullmatch(axis)
        if words and axis not in words and numbered is not None and numbered[1] in words:
            found[axis] = numbered[1]
    free = [w for w in found.values() if w not in axes]
    return {n: w for n, w in found.items() if free.count(w) == 1}
