"""Data at the ends of what they may be (`ir.oracle.ends`), on which every candidate is checked once before it is
timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

import numpy as np

from autosched.device.correctness.sampled import RUN, Expected, is_large
from autosched.device.correctness.special import MOST_BYTES, Special, lenient, special
from autosched.errors import DataError
from autosched.ir.oracle.ends import end_inputs
from autosched.ir.oracle.inputs import random_inputs
from autosched.ir.program import Program


@dataclass(frozen=True)
class Ends:
    """`found` are all inputs and what the outputs must be; messages call them `folder`."""

    folder: str
    found: Expected


Further: TypeAlias = Ends | Special
"""A data set beside the random one."""


def ends(program: Program, seed: int, compute: Callable[[Mapping[str, Any]], Expected]) -> tuple[Ends, ...]:
    """The data sets for a program, none where nothing decides; `compute` makes inputs and expected outputs of the
    arrays given."""
    size = sum(prod(t.extents) * t.dtype.bytes for t in program.tensors.values())
    if program.symbolic or size > MOST_BYTES:
        return ()
    drawn = random_inputs(program, np.random.default_rng([seed, 5]), RUN if is_large(program) else None)
    found = []
    for folder, arrays in end_inputs(program, drawn):
        with suppress(DataError):  # a subscript that is outside there, though it is not at random
            found.append(Ends(folder, lenient(compute(arrays))))
    return tuple(found)


def further(
    program: Program,
    seed: int,
    finite: frozenset[str],
    compute: Callable[[Mapping[str, Any]], Expected],
    before: Sequence[Further] | None = None,
) -> tuple[Further, ...]:
    """All data sets beside the random one; `finite` tensors hold no NaN. Sets at ends are taken from those of the same
    program `before`, where there are any."""
    at_ends = ends(program, seed, compute) if before is None else tuple(d for d in before if isinstance(d, Ends))
    holding = special(program, seed, finite, compute)
    return (*at_ends, *([] if holding is None else [holding]))
