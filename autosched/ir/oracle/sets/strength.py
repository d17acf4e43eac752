"""How far towards the ends data may be for a program: as far as no subscript leaves its tensor, and no output turns
into NaN or infinity."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from autosched.errors import DataError
from autosched.ir.oracle.sets.ends import Arrays, EndData

STEPS = 6
"""Halvings of what is not known of the greatest strength at which all subscripts stay inside."""
WEAKER = (0.75, 0.5, 0.25)
"""Strengths that are tried where outputs overflow at 1."""
T = TypeVar("T")


@dataclass(frozen=True)
class Strongest(Generic[T]):
    """What was made of the arrays; None where a data set is left out. `why` it is, or why it says nothing."""

    arrays: Arrays
    made: T | None
    why: str = ""


def strongest(data: EndData, make: Callable[[Arrays], T], counts: Callable[[T], bool]) -> Strongest[T]:
    """The data set at the greatest strength with which `make` raises no DataError, and which `counts`. One that is not
    `plain` is as it was at first where it counts at none."""
    arrays = data.at(1.0)
    try:
        made = make(arrays)
    except DataError as outside:
        return _inside(data, make, outside.message)
    if counts(made):
        return Strongest(arrays, made)
    for strength in WEAKER:
        weaker = data.at(strength)
        if weaker is arrays:
            break
        milder = make(weaker)
        if counts(milder):
            return Strongest(weaker, milder)
    if data.plain:
        return Strongest(arrays, None, "outputs would hold more NaN or infinities than on random data")
    return Strongest(arrays, made, "an output is NaN or infinite everywhere, and says nothing else")


def _inside(data: EndData, make: Callable[[Arrays], T], why: str) -> Strongest[T]:
    """By bisection, from strength 0 on: what is less strong is nearer to zero."""
    best: Strongest[T] = Strongest({}, None, why)
    inside, outside = 0.0, 1.0
    for step in range(STEPS + 1):
        strength = 0.0 if step == 0 else (inside + outside) / 2
        arrays = data.at(strength)
        try:
            best, inside = Strongest(arrays, make(arrays)), strength
        except DataError:
            if step == 0:
                break
            outside = strength
    return best


def shares_of_numbers(wants: Iterable[tuple[Any, Any]]) -> tuple[float, ...]:
    """Of each output, of all (values, tolerances), the share that data say something about: that is finite, with a
    finite tolerance. 1 where there is nothing to compare."""
    shares = []
    for values, tolerance in wants:
        wide = np.asarray(values)
        if not wide.size:
            shares.append(1.0)
            continue
        with np.errstate(all="ignore"):
            known = np.ones(wide.shape, bool) if wide.dtype.kind in "iub" else np.isfinite(wide.astype(np.float64))
            if tolerance is not None:
                known = known & np.isfinite(np.broadcast_to(tolerance, wide.shape))
        shares.append(np.count_nonzero(known) / wide.size)
    return tuple(shares)


def no_less(shares: tuple[float, ...], usual: tuple[float, ...]) -> bool:
    """Whether data say of every output as much as the usual data do, and of one something."""
    return any(shares) and all(one >= other for one, other in zip(shares, usual, strict=True))
