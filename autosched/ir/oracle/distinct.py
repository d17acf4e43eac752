"""Data of which each so many neighbours differ, as `assume(distinct(E, 2))` states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.errors import ProgramError
from autosched.ir.oracle.assumed import integer_range
from autosched.ir.oracle.numerics import store
from autosched.ir.program import Program


def with_distinct(program: Program, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays, of which neighbours that are assumed to differ do: an element that is equal to one before it in its
    group becomes the next number of its range that none of them is. ProgramError where a range has too few numbers."""
    found = dict(arrays)
    for a in program.assumptions:
        if a.distinct is not None and a.subject in found:
            low, high = integer_range(program, a.subject)
            if high - low + 1 < a.distinct:
                raise ProgramError(f"{a.subject} is {low} to {high}: no {a.distinct} of these differ")
            dtype, values = program.tensors[a.subject].dtype, np.asarray(found[a.subject])
            differing = _in_groups if values.shape == program.tensors[a.subject].extents else _in_turn
            made = differing(values.astype(np.int64), a.distinct, low, high)
            found[a.subject] = store(made.reshape(values.shape), dtype)
    return found


def _in_groups(numbers: npt.NDArray[np.int64], n: int, low: int, high: int) -> npt.NDArray[np.int64]:
    """Numbers of which each n, from the first on, differ."""
    groups = numbers.reshape(-1, n).copy()
    for k in range(1, n):
        for _ in range(n):
            same = (groups[:, :k] == groups[:, k : k + 1]).any(axis=1)
            groups[same, k] = low + (groups[same, k] + 1 - low) % (high - low + 1)
    return groups


def _in_turn(numbers: npt.NDArray[np.int64], n: int, low: int, high: int) -> npt.NDArray[np.int64]:
    """Numbers that a tensor's elements take in turn, over and over: of each n in a row none are equal, at the end and
    the beginning neither. ProgramError where the range has too few numbers."""
    flat = numbers.ravel().copy()
    for i in range(len(flat)):
        near = {int(flat[(i + d) % len(flat)]) for d in range(1 - n, n) if d < 0 or i + d >= len(flat)}
        free = (low + (int(flat[i]) + k - low) % (high - low + 1) for k in range(high - low + 1))
        chosen = next((x for x in free if x not in near), None)
        if chosen is None:
            raise ProgramError(f"no {n} of {low} to {high} differ all along {len(flat)} numbers in turn")
        flat[i] = chosen
    return flat


def is_distinct(values: npt.NDArray[Any], n: int) -> bool:
    """Whether no two of each n neighbours along the last dimension are equal."""
    if not values.size or values.shape[-1] % n:
        return False
    groups = np.sort(values.reshape(-1, n), axis=1)
    return bool((groups[:, 1:] != groups[:, :-1]).all())
