"""Results larger than a core's own caches: which a stage may write past the caches, and which operands it may ask for.

A store to a line that no cache holds reads the line first, and pushes out what is read later. Where nobody reads a
result again, its vectors may go to memory directly. What stages leave in it for each other on the way (a softmax keeps
its exponentials there) then lies in a buffer of one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.ir.value import Index, Read, reads
from autosched.ir.work import most_trips
from autosched.logic import Int, Var, free_vars
from autosched.logic.walk import substitute_int
from autosched.machine.target import Target

LINE_BYTES = 64
"""What a CPU's cache fetches at least: of rows that lie apart, the lines at both ends too."""
LEAST_BYTES = 16
"""The smallest vector that an instruction writes past the caches."""
NEXT, FAR = 1, 2
"""What is asked for ahead of time: the rows after those under way, or rows `FAR_BYTES` further on."""
FAR_BYTES = 16 << 10
"""Short rows end before memory has answered. Layer norm of 4096x1024 in C, asking in its last pass, results past the
caches: 900 us with the next row, 660 with the second, 600 with the fourth, 680 with the eighth, a copy 670 (Zen 5).
Ours, asking in the second pass: 558 with the next, 528 with the fourth."""


@dataclass(frozen=True)
class NontemporalStore:
    """`tensor` is written last by the stage `writer`, and not read after it; `buffered`: stages read or write it
    before, within the same iteration of the loops they share."""

    tensor: str
    writer: str
    buffered: bool


def exceeds_caches(program: Program, tensor: str, target: Target, *, first: bool = False) -> bool:
    """Whether a tensor is larger than the caches that each core has for itself, or than the first of them."""
    own = [m.bytes for m in target.memories if m.name.startswith("L") and m.shared_by == "core"]
    t = program.tensors[tensor]
    return bool(own) and prod(t.extents) * t.dtype.bits / 8 > (min(own) if first else max(own))


def nontemporal_store(
    program: Program, stages: Sequence[Stage], shared: tuple[str, ...], target: Target
) -> NontemporalStore | None:
    """What the stages, inside their `shared` loops, may write past the caches: the last such output."""
    for writer in reversed(stages):
        tensor = writer.assign.tensor
        if tensor not in program.outputs or tensor in program.inputs or not exceeds_caches(program, tensor, target):
            continue
        if writer.reduction or writer.guards:
            continue
        touching = [s for s in program.stages if _accesses(s, tensor)]
        if any(s not in stages for s in touching) or touching[-1] != writer:
            continue
        indices = [i for s in touching for i in _accesses(s, tensor)]
        if len(indices) == 1 and writer.assign.op == "=":
            return NontemporalStore(tensor, writer.name, False)
        mine = all(_in_row(i, shared) for i in indices)
        in_place = set(_accesses(writer, tensor)) == {writer.assign.index}  # each element waits for no other
        same = all(_same_elements(s, writer) for s in touching if s.assign.tensor == tensor)
        if shared and mine and in_place and same:
            return NontemporalStore(tensor, writer.name, True)
    return None


def asked_ahead(
    program: Program, stages: Sequence[Stage], axis: str | None, shared: tuple[str, ...], target: Target
) -> tuple[Read, ...]:
    """What the first of the stages reads of a row along its axis, worth asking for while the row before is computed.

    Nothing that also moves with other axes of that stage: another stage asks, and has no such loops around it."""
    if axis is None:
        return ()
    written = {s.assign.tensor for s in stages}
    found = [r for r in stages[0].reads if r.tensor not in written and _in_row(r.index, shared)]
    large = [r for r in found if exceeds_caches(program, r.tensor, target, first=True)]
    rows = [r for r in large if r.index[-1] == Var(axis) and _chosen_by(r.index[:-1], shared)]
    return tuple(dict.fromkeys(rows))


def row_bytes(stage: Stage, asked: Sequence[Read]) -> int:
    """Bytes of a row of what a stage reads along its innermost axes; of the longest row of a triangle."""
    box: dict[str, tuple[int, int]] = {}
    trips = {Var(a.name): most_trips(a, box) for a in stage.axes}
    return sum(trips[r.index[-1]] * r.dtype.bytes for r in asked if isinstance(r.index[-1], Var))


def steps_ahead(ahead: int, rows: int, row: int) -> int:
    """How many times so many rows, of `row` bytes each, lie between those under way and those that are asked for."""
    return max(1, FAR_BYTES // (rows * row)) if ahead == FAR else ahead


def _accesses(stage: Stage, tensor: str) -> list[tuple[Index, ...]]:
    start = reads(stage.init) if stage.init is not None else ()
    found = [r.index for r in (*stage.reads, *start) if r.tensor == tensor]
    return [*found, stage.assign.index] if stage.assign.tensor == tensor else found


def _in_row(index: tuple[Index, ...], shared: tuple[str, ...]) -> bool:
    """Whether the shared loops alone choose the leading subscripts, and the others do not depend on them."""
    rest = index[len(shared) :]
    inside = all(isinstance(i, Int) and not set(shared) & free_vars(i) for i in rest)
    return bool(rest) and inside and index[: len(shared)] == tuple(Var(n) for n in shared)


def _chosen_by(index: tuple[Index, ...], shared: tuple[str, ...]) -> bool:
    """Whether subscripts depend on the shared loops alone."""
    return all(isinstance(i, Int) and free_vars(i) <= set(shared) for i in index)


def _same_elements(stage: Stage, writer: Stage) -> bool:
    """Whether a stage writes just the elements that the writer does."""
    if [(a.lower, a.upper) for a in stage.axes] != [(a.lower, a.upper) for a in writer.axes] or stage.guards:
        return False
    names: dict[str, Int] = {a.name: Var(b.name) for a, b in zip(stage.axes, writer.axes, strict=True)}
    mine = tuple(substitute_int(i, names) for i in stage.assign.index if isinstance(i, Int))
    return mine == writer.assign.index
