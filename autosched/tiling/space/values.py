"""Columns of rows (decisions, constants, derived quantities), evaluated when first asked for; digits of row ids."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from autosched.logic import Int, evaluate


class Lazy(Mapping[str, Any]):
    """`base` holds given columns (ints or arrays that broadcast with each other); `derived` is evaluated once per name.

    A derived quantity keeps the shape of what it depends on, so one over the prefix of a cross product costs a column
    and not the whole product. `decided` gives the column of a decision, for names in `decisions`, when it is asked for.
    """

    def __init__(
        self,
        base: Mapping[str, Any],
        derived: Mapping[str, Int],
        decisions: Collection[str] = (),
        decided: Callable[[str], Any] | None = None,
    ) -> None:
        self._known = dict(base)
        self._derived = derived
        self._decisions, self._decided = decisions, decided

    def __getitem__(self, name: str) -> Any:
        known = self._known.get(name)
        if known is None and self._decided is not None and name in self._decisions:
            known = self._known[name] = self._decided(name)
        if known is None:
            with np.errstate(divide="ignore"):  # numpy evaluates both sides of a choice, the one not chosen too
                known = self._known[name] = evaluate(self._derived[name], self)
        return known

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys((*self._decisions, *self._known, *self._derived))

    def __len__(self) -> int:
        return len({*self._decisions, *self._known, *self._derived})


class Numbered(Protocol):
    """A space whose rows are numbered by digits: of each decision its weight and how many values it has."""

    strides: tuple[int, ...]
    radices: tuple[int, ...]


def moved_digits(
    ids: npt.NDArray[np.int64], source: Numbered, positions: Sequence[int], target: Numbered, places: Sequence[int]
) -> npt.NDArray[np.int64]:
    """The rows of `target` that have at `places` the digits which rows `ids` of `source` have at `positions`, and 0
    elsewhere."""
    total = np.zeros(len(ids), np.int64)
    for position, place in zip(positions, places, strict=True):
        total += digit(ids, source.strides[position], source.radices[position]) * target.strides[place]
    return total


def rows_of(columns: Mapping[str, npt.NDArray[np.int64]]) -> int:
    """How many rows the columns have: asked of the columns themselves only where nobody knows."""
    known = getattr(columns, "rows", None)
    return len(next(iter(columns.values()))) if known is None else int(known)


def digit(ids: npt.NDArray[np.int64], stride: int, radix: int) -> npt.NDArray[np.int64]:
    """The digit of that weight of each number: `ids // stride % radix`, which numpy takes twice as long for."""
    return np.asarray(ids // stride - ids // (stride * radix) * radix, np.int64)
