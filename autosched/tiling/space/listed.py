"""`ListedSpace`: a space whose legal rows are a given list: those that somebody has measured.

It answers what any `Space` answers, so strategies search it as they search a space of rules. Rows that are not listed
are illegal, whatever their values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from autosched.tiling.space.base import BLOCK, Values
from autosched.tiling.space.enumerate import Legal
from autosched.tiling.space.explain import Explanation
from autosched.tiling.space.space import Space
from autosched.tiling.space.values import Lazy
from autosched.tiling.step import Decision, Step

Ids = npt.NDArray[np.int64]
NOT_LISTED = "not listed"
_TRIES = 16  # changes of one decision that a mutation tries
_LOOKED_AT = 1024  # listed rows of which a mutant is the nearest, where no single change leads to a listed row


class ListedSpace(Space):
    """`decisions`, and the `indices` into their domains of the legal rows: shape (rows, decisions), no row twice.

    `derived` gives quantities of these rows, in the order of `indices`, as int64 columns of shape (rows,).
    Raises ValueError for names that clash, indices outside a domain or rows that occur twice, UsageError where the
    domains have 2^63 combinations.
    """

    def __init__(
        self,
        name: str,
        decisions: Sequence[Decision],
        indices: npt.ArrayLike,
        derived: Mapping[str, npt.ArrayLike] | None = None,
    ) -> None:
        super().__init__(name, [Step("listed", tuple(decisions))])
        table = np.asarray(indices, np.int64)
        table = table.reshape(len(table), len(self.decisions))  # one row is a whole space of no decisions
        if table.size and ((table < 0) | (table >= np.array(self.radices))).any():
            raise ValueError(f"an index of {name!r} is outside its decision's domain")
        ids = table @ np.array(self.strides, np.int64)
        order = np.argsort(ids, kind="stable")
        self.listed: Ids = ids
        """Ids in the order of `indices`."""
        self._sorted, self._order = ids[order], order
        if len(ids) and (np.diff(self._sorted) == 0).any():
            raise ValueError(f"a row of {name!r} is listed twice")
        self._quantities = {k: np.asarray(c, np.int64) for k, c in (derived or {}).items()}
        if clash := sorted(self.names & set(self._quantities)):
            raise ValueError(f"derived {clash[0]!r} of {name!r} has a decision's name")

    @cached_property
    def version(self) -> str:
        """16 hex digits over the decisions and the listed rows."""
        decisions = repr([(d.name, d.domain, d.labels) for d in self.decisions]).encode()
        return hashlib.sha256(decisions + self._sorted.tobytes()).hexdigest()[:16]

    def places(self, ids: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Where these rows stand in the list; -1 for those that do not."""
        numbers = np.atleast_1d(np.asarray(ids, np.int64))
        if not len(self._sorted):
            return np.full(len(numbers), -1, np.int64)
        at = np.minimum(np.searchsorted(self._sorted, numbers), len(self._sorted) - 1)
        return np.where(self._sorted[at] == numbers, self._order[at], -1).astype(np.int64)

    def ids_of(self, values: Mapping[str, npt.ArrayLike]) -> Ids:
        """The ids of rows given by the values of their decisions, as `values` returns them."""
        indices = {}
        for d in self.decisions:
            domain = np.array(d.domain, np.int64)
            order = np.argsort(domain)
            indices[d.name] = order[np.searchsorted(domain[order], np.asarray(values[d.name], np.int64))]
        return self.ids(indices)

    def values(self, ids: npt.ArrayLike) -> Values:
        """Decisions and derived quantities; of rows that are not listed, the latter are those of the first row."""
        plain = super().values(ids)
        if not self._quantities:
            return plain
        at = np.maximum(self.places(ids), 0)
        base = {d.name: plain[d.name] for d in self.decisions} | {k: c[at] for k, c in self._quantities.items()}
        return Values(Lazy(base, {}), len(at))

    def legal(self, ids: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        return np.asarray(self.places(self._checked(ids)) >= 0, np.bool_)

    def enumerate(self, block: int = BLOCK, limit: int | None = None) -> Legal:
        ids = self._sorted if limit is None else self._sorted[:limit]
        rest = self.size - len(self._sorted)
        return Legal(ids, {NOT_LISTED: rest} if rest else {}, self.size, len(ids) == len(self._sorted))

    def explain(self, timeout_s: float = 0.5) -> Explanation | None:
        """None: a list needs no explanation."""
        return None

    def why_not(self, row: int) -> list[str]:
        return [] if self.legal(row)[0] else ["the row is not listed"]

    def sample(self, n: int, rng: np.random.Generator) -> Ids:
        return self._sorted[rng.permutation(len(self._sorted))[:n]]

    def mutate(self, ids: npt.ArrayLike, rng: np.random.Generator) -> Ids:
        """As of any space; where no change of one decision leads to a listed row, the nearest of some listed ones."""
        parents = self._checked(ids)
        found = self._changed(parents, rng)
        stuck = np.flatnonzero(found == parents)
        if not len(stuck) or len(self._sorted) < 2:
            return found
        others = rng.permutation(len(self._sorted))[:_LOOKED_AT]  # of equally near ones the first is taken
        here, there = self._matrix(parents[stuck]), self._table[others]
        distance = np.zeros((len(stuck), len(others)), np.int16)
        for column in range(len(self.decisions)):
            distance += here[:, column, None] != there[None, :, column]
        distance[distance == 0] = len(self.decisions) + 1
        nearest = np.argmin(distance, axis=1)
        found[stuck] = self._sorted[others[nearest]]
        return found

    def _changed(self, parents: Ids, rng: np.random.Generator) -> Ids:
        """The first of some changes of one decision that leads to a listed row, else the row itself. All changes are
        tried at once: one in a hundred is listed, and a look-up costs less than a turn of a loop."""
        radices, strides = np.array(self.radices, np.int64), np.array(self.strides, np.int64)
        choices = np.flatnonzero(radices > 1)
        if not len(choices):
            return parents.copy()
        d = choices[rng.integers(0, len(choices), (len(parents), _TRIES))]
        index = parents[:, None] // strides[d] % radices[d]
        shift = np.asarray(rng.integers(1, radices[d]), np.int64)
        offset: Ids = ((index + shift) % radices[d] - index) * strides[d]
        tried = parents[:, None] + offset
        listed = (self.places(tried.reshape(-1)) >= 0).reshape(tried.shape)
        first = tried[np.arange(len(parents)), np.argmax(listed, axis=1)]
        return np.where(listed.any(axis=1), first, parents).astype(np.int64)

    @cached_property
    def _table(self) -> npt.NDArray[np.int16]:
        return self._matrix(self._sorted)

    def _matrix(self, ids: Ids) -> npt.NDArray[np.int16]:
        """Places in the decisions' domains: shape (rows, decisions)."""
        return np.stack([np.asarray(c, np.int16) for c in self.rows(ids).values()], axis=1)
