"""`Values`: the columns of some rows (decisions, constants, derived quantities), evaluated when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from autosched.logic import Int, evaluate

if TYPE_CHECKING:
    from autosched.tiling.space.space import Space


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


class Values(Mapping[str, npt.NDArray[np.int64]]):
    """One int64 array of shape (rows,) for each decision, constant and derived quantity.

    >>> Values(Lazy({"a": np.array([1, 2]), "k": 3}, {}), 2)["k"]
    array([3, 3])
    """

    def __init__(
        self, columns: Lazy, rows: int, space: Space | None = None, ids: npt.NDArray[np.int64] | None = None
    ) -> None:
        self.columns = columns
        """The same as they were computed: Python ints where a quantity is the same in all rows."""
        self.rows = rows
        self.space = space
        """The space whose rows `ids` these are, where nothing but their ids decides the columns."""
        self.ids = np.zeros(0, np.int64) if ids is None else ids

    def __getitem__(self, name: str) -> npt.NDArray[np.int64]:
        column = np.asarray(self.columns[name], np.int64)
        return column if column.ndim else np.broadcast_to(column, (self.rows,))

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)


def rows_of(columns: Mapping[str, npt.NDArray[np.int64]]) -> int:
    """How many rows the columns have: asked of the columns themselves only where nobody knows."""
    known = getattr(columns, "rows", None)
    return len(next(iter(columns.values()))) if known is None else int(known)


def digit(ids: npt.NDArray[np.int64], stride: int, radix: int) -> npt.NDArray[np.int64]:
    """The digit of that weight of each number: `ids // stride % radix`, which numpy takes twice as long for."""
    return np.asarray(ids // stride - ids // (stride * radix) * radix, np.int64)
