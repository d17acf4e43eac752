"""Moves of local searches: the neighbours of one row of the union, and random walks, all of them legal."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace

_FEW = 4  # neighbours below which mutants help out: in a space of scattered rows hardly two differ in one decision
_MUTANTS = 16


def neighbours(space: SearchSpace, row: Rows, rng: np.random.Generator) -> Rows:
    """The legal rows that differ from this one (`row` holds one) in one decision, and in what that makes inert, in
    random order. Where there are few, some that a mutation leads to are among them."""
    plan, start = int(row.plan[0]), int(row.ids[0])
    own = space.plans[plan].plan.space
    digits = zip(own.strides, own.radices, strict=True)
    ids = np.concatenate([np.zeros(0, np.int64), *(_changed(start, stride, radix) for stride, radix in digits)])
    ids = np.unique(own.canonical(ids))
    ids = ids[own.legal(ids) & (ids != start)]
    if len(ids) < _FEW:
        mutants = own.mutate(np.full(_MUTANTS, start, np.int64), rng)
        ids = np.union1d(ids, mutants[mutants != start])
    return Rows.of(plan, rng.permutation(ids))


def walk(space: SearchSpace, row: Rows, steps: int, rng: np.random.Generator) -> Rows:
    """Where so many random changes lead."""
    for _ in range(steps):
        row = space.mutate(row, rng)
    return row


def _changed(start: int, stride: int, radix: int) -> npt.NDArray[np.int64]:
    """The ids with every other value of one decision."""
    index = (start // stride) % radix
    others = np.delete(np.arange(radix, dtype=np.int64), index)
    return start + (others - index) * stride
