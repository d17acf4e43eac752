"""Data at the ends of what they may be (`ir.oracle.sets.ends`), on which every candidate is checked once before it is
timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np

from autosched.device.correctness.oracle import shares
from autosched.device.correctness.sampled import RUN, Expected, data_set_s, is_large, remark
from autosched.device.correctness.special import MOST_BYTES, Special, lenient, special
from autosched.ir.oracle.sets.domains import drawn_inputs, undecided
from autosched.ir.oracle.sets.ends import end_inputs
from autosched.ir.oracle.sets.strength import no_less, strongest
from autosched.ir.program import Program

MOST_TOGETHER = 1 << 30
"""Bytes of all data sets of a program together, above which none is added to the first `FEWEST`."""
FEWEST = 4
MOST_S = 2.0
"""What one data set may take the interpreter, for programs to be checked on arithmetic and on scalars' values too."""


@dataclass(frozen=True)
class Ends:
    """`found` are all inputs and what the outputs must be; messages call them `folder`."""

    folder: str
    found: Expected


@dataclass(frozen=True)
class LeftOut:
    """A data set on which nothing, or hardly anything, is checked, and why."""

    folder: str
    why: str

    def __str__(self) -> str:
        return f"the data set '{self.folder}': {self.why}"


Further: TypeAlias = Ends | Special
"""A data set beside the random one."""


def ends(
    program: Program, seed: int, compute: Callable[[Mapping[str, Any]], Expected]
) -> tuple[tuple[Ends, ...], tuple[LeftOut, ...]]:
    """The data sets for a program, none where nothing decides, and those that are left out; `compute` makes inputs and
    expected outputs of the arrays given."""
    size = sum(prod(t.extents) * t.dtype.bytes for t in program.tensors.values())
    if program.symbolic:
        return (), ()
    if size > MOST_BYTES:
        return (), (LeftOut("elements at their ends", f"all tensors hold more than {MOST_BYTES >> 20} MiB"),)
    if undecided(program):
        compute({})
    drawn = drawn_inputs(program, np.random.default_rng([seed, 5]), RUN if is_large(program) else None)
    usual: list[tuple[float, ...]] = []

    def counts(found: Expected) -> bool:
        own = shares(found.oracle)
        if min(own, default=1.0) == 1.0:
            return True
        if not usual:
            usual.append(shares(compute({}).oracle))
        return no_less(own, usual[0])

    def tells(found: Expected) -> bool:
        return min(shares(found.oracle), default=1.0) > 0

    found: list[Ends] = []
    left: list[LeftOut] = []
    slow = data_set_s(program) > MOST_S
    for data in end_inputs(program, drawn):
        if slow and data.plain:
            left.append(LeftOut(data.said, f"it takes the interpreter over {MOST_S:g} s"))
            continue
        if len(found) >= FEWEST and (len(found) + 1) * size > MOST_TOGETHER:
            left.append(LeftOut(data.said, f"all data sets together hold more than {MOST_TOGETHER >> 20} MiB"))
            continue
        best = strongest(data, lambda arrays: lenient(compute(arrays)), counts if data.plain else tells)
        if best.made is not None:
            found.append(Ends(data.said, best.made))
        if best.why:
            left.append(LeftOut(data.said, best.why))
    return tuple(found), tuple(left)


@dataclass(frozen=True)
class FurtherSets:
    """All data sets beside the random one, and those that are left out."""

    sets: tuple[Further, ...]
    left_out: tuple[LeftOut, ...]


def further(
    program: Program,
    seed: int,
    finite: frozenset[str],
    compute: Callable[[Mapping[str, Any]], Expected],
    before: FurtherSets | None = None,
) -> FurtherSets:
    """The data sets; `finite` tensors hold no NaN. Sets at ends are taken from those of the same program `before`,
    where there are any."""
    if before is None:
        at_ends, left = ends(program, seed, compute)
    else:
        at_ends, left = tuple(d for d in before.sets if isinstance(d, Ends)), before.left_out
    holding = special(program, seed, finite, compute)
    return FurtherSets((*at_ends, *([] if holding is None else [holding])), left)


def not_checked(found: Expected, left_out: Sequence[LeftOut]) -> dict[str, list[str]]:
    """What a trial says of data on which nothing, or little, was checked; nothing where there is none."""
    said = [*([text] if (text := remark(found)) else []), *map(str, left_out)]
    return {"not_checked": said} if said else {}
