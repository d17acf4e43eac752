"""`Space`: the schedules of one plan as rows of an integer matrix.

A row is one index into each decision's domain; its id is the mixed-radix number of those indices, the first decision
the most significant digit. Rules and derived quantities are evaluated over whole blocks of rows at a time.

>>> from autosched.logic import Var
>>> from autosched.tiling.step import Decision, Step
>>> tile = Decision("tile", (1, 2, 4, 8))
>>> unroll = Decision("unroll", (1, 2))
>>> fits = Rule("registers", Var("registers") <= 8, "{registers} registers > 8")
>>> space = Space("demo", [Step("tile", (tile, unroll), (fits,), {"registers": Var("tile") * Var("unroll")})])
>>> space.size, space.enumerate().ids.tolist(), space.why_not(7)
(8, [0, 1, 2, 3, 4, 5, 6], ['16 registers > 8'])
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from autosched.tiling.space import counting
from autosched.tiling.space import enumerate as staged
from autosched.tiling.space import explain as explaining
from autosched.tiling.space import sample as sampling
from autosched.tiling.space.base import BLOCK, Ids, SpaceBase
from autosched.tiling.space.enumerate import Legal
from autosched.tiling.space.explain import Explanation
from autosched.tiling.space.subspace import Subspace, subspaces
from autosched.tiling.step import Rule

_FEW = 8


class Space(SpaceBase):
    """The schedules of one plan: see `SpaceBase` for what its rows mean. Raises what it raises."""

    def enumerate(self, block: int = BLOCK, limit: int | None = None) -> Legal:
        """All legal rows (see `Legal`); with `limit`, any `limit` of them, found with less work."""
        return staged.enumerate_legal(self, block, limit)

    def violated(self, row: int) -> tuple[Rule, ...]:
        """The rules that the row breaks, in order."""
        columns = self.values(row).columns
        return tuple(r for r in self.rules if not explaining.holds(r.holds, columns))

    def why_not(self, row: int) -> list[str]:
        """A sentence for each broken rule, with the row's numbers; empty for a legal row."""
        return explaining.why_not(self, row)

    def explain(self, timeout_s: float = 0.5) -> Explanation | None:
        """Why nothing is legal: a minimal set of rules that contradict each other; None where something is legal.

        `timeout_s` limits each question to z3; what it leaves open is enumerated."""
        return explaining.explain(self, timeout_s)

    # Drawing rows

    @property
    def count(self) -> counting.RowCount | None:
        """How many rows are legal, and which one has a rank, without listing them; computed once. None where prefixes
        have too little in common."""
        return counting.row_count(self)

    def sample(self, n: int, rng: np.random.Generator) -> Ids:
        """`n` different legal rows, uniformly; all of them (in random order) where there are fewer."""
        return sampling.sample(self, n, rng)

    def thinned(self, n: int, rng: np.random.Generator) -> Ids:
        """`n` different legal rows (all of them where there are fewer), each about as likely as any other: prefixes are
        joined and thinned out in turns, which takes a part of the time of counting all rows."""
        return sampling.thinned(self, n, rng)

    @property
    def subspaces(self) -> tuple[Subspace, ...]:
        """The spaces that it is made of (`tiling.space.subspace`)."""
        return subspaces(self)

    @cached_property
    def few(self) -> Ids:
        """Some legal rows, always the same."""
        return self.thinned(_FEW, np.random.default_rng(0))

    def neighbours(self, row: int) -> Ids:
        """The legal rows that differ from `row` in exactly one decision, sorted."""
        return sampling.neighbours(self, row)

    def canonical(self, ids: npt.ArrayLike) -> Ids:
        """The same rows with decisions that change nothing put to their first values."""
        return sampling.canonical(self, self._checked(ids))

    def mutate(self, ids: npt.ArrayLike, rng: np.random.Generator) -> Ids:
        """For each row a legal one with a random decision changed (and what that makes inert put to its first value);
        the row itself where several tries found none."""
        return sampling.mutate(self, self._checked(ids), rng)

    def crossover(self, first: npt.ArrayLike, second: npt.ArrayLike, rng: np.random.Generator) -> Ids:
        """For each pair of rows a legal child that takes each decision from either; `first` where tries found none."""
        return sampling.crossover(self, self._checked(first), self._checked(second), rng)
