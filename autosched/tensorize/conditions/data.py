"""Conditions that known values of constant data discharge: not the range of all elements alone, but what each group of
neighbours really adds up to."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import numpy as np
import numpy.typing as npt

from autosched.ir.data import known_values
from autosched.ir.nodes import Axis
from autosched.ir.printer import print_value
from autosched.ir.program import KnownData, Program
from autosched.ir.value import Read, Value
from autosched.logic import Const, Int, evaluate, free_vars
from autosched.tensorize.body.counterexample import leaves
from autosched.tensorize.body.intervals import Range, exact_range
from autosched.tensorize.conditions.weakest import ClampedSum
from autosched.tensorize.reduction.update import Clamp, Update

MOST_TERMS = 1 << 25
"""Terms of one operand above which groups are not looked at: their sums would take seconds."""


def held_values(program: Program, tensors: Iterable[str]) -> tuple[str, ...]:
    """For each tensor whose values are known: the assumption that it holds them."""
    found = []
    for name in dict.fromkeys(tensors):
        known = known_values(program, name) if program.data else None
        if known is not None:
            found.append(f"{name} holds the data given (sha256 {known.text})")
    return tuple(found)


def groups_hold(
    program: Program, update: Update, group: ClampedSum, clamp: Clamp, fused: tuple[str, ...]
) -> str | None:
    """A sentence that says so where, by the known values of one operand, no group's sum leaves the clamp whatever the
    others hold; None where some group may, or nothing is known."""
    limits = f"[{clamp.dtype.limits[0]}, {clamp.dtype.limits[1]}]"
    for tensor in group.whole:
        known = known_values(program, tensor)
        reads = [r for r in update.operands if r.tensor == tensor]
        if known is None or len(reads) != 1:
            continue
        others = ", ".join(f"{t} in {r}" for t, r in group.ranges if t != tensor) or "nothing else"
        along = ".".join(fused)
        sentence = (
            f"by the values of {tensor} every sum of {clamp.group} neighbours along {along} of "
            f"{print_value(update.term)}, with {others}, stays in {limits}"
        )
        if sentence not in known.holds and known.values is not None:
            known.holds[sentence] = _hold(program, update, group, clamp, fused, reads[0], known)
        if known.holds.get(sentence):
            return sentence
    return None


def _hold(
    program: Program,
    update: Update,
    group: ClampedSum,
    clamp: Clamp,
    fused: tuple[str, ...],
    read: Read,
    known: KnownData,
) -> bool:
    axes = {a.name: a for a in update.axes}
    if not all(isinstance(i, Int) for i in read.index) or not clamp.groups or known.values is None:
        return False
    used = {v for i in read.index if isinstance(i, Int) for v in free_vars(i)}
    outer = [axes[a] for a in axes if a in used and a not in fused]
    grid = [*outer, *(axes[f] for f in fused)]
    if not all(isinstance(a.lower, Const) and isinstance(a.upper, Const) for a in grid):
        return False
    if prod(a.extent for a in grid) > MOST_TERMS:
        return False
    low, high = _contributions(group, read, known.values, *_places(program, read, grid))
    length, unit = prod(axes[f].extent for f in fused), sum(len(g) for g in clamp.groups)
    for bound, worst in ((low, np.minimum), (high, np.maximum)):
        rows = np.pad(bound.reshape(-1, length), ((0, 0), (0, -length % unit))).reshape(-1, unit)
        for members in clamp.groups:
            extreme = int(worst.reduce(rows[:, list(members)].sum(axis=1)))
            if not group.limits[0] <= extreme <= group.limits[1]:
                return False
    return True


def _places(
    program: Program, read: Read, grid: list[Axis]
) -> tuple[tuple[npt.NDArray[np.int64], ...], npt.NDArray[np.bool_]]:
    """The element's subscripts at every point of the grid, moved inside the tensor, and where they were inside."""
    shape = tuple(a.extent for a in grid)
    env = {}
    for d, a in enumerate(grid):
        assert isinstance(a.lower, Const)
        positions = np.arange(a.extent, dtype=np.int64) + a.lower.value
        env[a.name] = positions.reshape([-1 if k == d else 1 for k in range(len(grid))])
    inside = np.ones(shape, np.bool_)
    places = []
    for part, extent in zip(read.index, program.tensors[read.tensor].extents, strict=True):
        assert isinstance(part, Int)
        at = np.broadcast_to(np.asarray(evaluate(part, env), np.int64), shape)
        inside &= (at >= 0) & (at < extent)
        places.append(np.clip(at, 0, extent - 1))
    return tuple(places), inside


def _contributions(
    group: ClampedSum,
    read: Read,
    values: npt.NDArray[np.generic],
    places: tuple[npt.NDArray[np.int64], ...],
    inside: npt.NDArray[np.bool_],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """At every point the least and the greatest that the term may add; zero counts, since guards and padding stage it.

    Sums of these bound every sum of terms: that makes the answer sound where another operand is one element of several
    terms, if not the tightest.
    """
    distinct, which = np.unique(values.astype(np.int64), return_inverse=True)
    low, high = np.empty(len(distinct), np.int64), np.empty(len(distinct), np.int64)
    for n, value in enumerate(distinct):
        known: dict[Value, Range] = {r: group.whole[r.tensor] for r in leaves(group.term) if isinstance(r, Read)}
        one = exact_range(group.term, known | {read: Range(int(value), int(value))})
        low[n], high[n] = min(one.low, 0), max(one.high, 0)
    number = which.reshape(values.shape)[places]
    return np.where(inside, low[number], 0), np.where(inside, high[number], 0)
