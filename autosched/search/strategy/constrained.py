"""`constrained`: a genetic algorithm whose individuals are constraint problems, after Heron (ASPLOS 2023).

Crossover does not mix rows: it makes a problem, "the decisions that matter most have a value of one of these parents,
the others any", mutation drops some of its constraints, and a solution of it is the child. So children are legal
whatever the rules are. A problem is solved over a table of legal rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from autosched.costmodel.protocol import CostModel
from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.memory import HistoryStrategy

Ids = npt.NDArray[np.int64]

_FIRST = 16  # random rows before there are parents worth the name
_PARENTS = 24
_TOURNAMENT = 3
_KEY = 0.7  # of the decisions are bound to the parents: those that explain most of the times
_DROPPED = 0.2  # chance of a constraint to be dropped
_CHILDREN = 24  # bred for each place where a model can choose among them
_TABLE = 20_000  # legal rows of a plan among which solutions are looked for


class Constrained(HistoryStrategy):
    """With a cost model, the most promising of many children are proposed; without, the first."""

    def __init__(self, space: SearchSpace, seed: int, model: CostModel | None) -> None:
        super().__init__(space, seed, model)
        self._model = model
        self._fitted_to = 0
        self._tables: dict[int, tuple[Ids, Ids]] = {}

    def _wanted(self, n: int, rng: np.random.Generator) -> Rows:
        parents = self._memory.fastest(_PARENTS)
        if len(parents) < 2 or self._memory.measured < _FIRST:
            return Rows.of(0, [])
        return self._chosen(self._bred(parents, n, rng), n)

    def _bred(self, parents: Rows, n: int, rng: np.random.Generator) -> Rows:
        """New children, `_CHILDREN` times as many as asked for where a model is going to choose."""
        count = n * (_CHILDREN if self._model is not None else 2)
        keys = {int(plan): self._key(int(plan)) for plan in np.unique(parents.plan)}
        found = []
        for _ in range(count):
            # Parents are in order, so the smallest of a few random places is the winner of a tournament.
            first, second = rng.integers(0, len(parents), (2, _TOURNAMENT)).min(axis=1).tolist()
            plan = int(parents.plan[first])
            second = second if parents.plan[second] == plan else first
            found.append(Rows.of(plan, [self._solved(plan, parents.ids[[first, second]], keys[plan], rng)]))
        children = Rows.join(found).distinct()
        return children.take(self._memory.free(children))

    def _solved(self, plan: int, pair: Ids, key: Ids, rng: np.random.Generator) -> int:
        """A random legal row whose bound decisions have a value of a parent's; constraints go until there is one."""
        ids, table = self._table(plan)
        values = self._indices(plan, pair)
        fits = np.ones(len(ids), np.bool_)
        for decision in key[rng.random(len(key)) >= _DROPPED]:
            still = fits & ((table[decision] == values[decision, 0]) | (table[decision] == values[decision, 1]))
            fits = still if still.any() else fits  # the table may hold no such row
        return int(rng.choice(ids[fits]))

    def _key(self, plan: int) -> Ids:
        """Decisions in the order of how much of the measured times their values explain, the most first."""
        rows = self._memory.rows()
        seconds = self._memory.seconds(rows)
        mine = (rows.plan == plan) & np.isfinite(seconds)
        log_s = np.log(seconds[mine])
        indices = self._indices(plan, rows.ids[mine])
        explained = [float(_between(column, log_s)) for column in indices]
        order = np.argsort(explained, kind="stable")[::-1]
        return order[: max(1, round(_KEY * len(order)))]

    def _table(self, plan: int) -> tuple[Ids, Ids]:
        """Legal rows of a plan (a sample of many), and their indices, shape (decisions, rows)."""
        if plan not in self._tables:
            ids = self._space.plans[plan].ids
            if len(ids) > _TABLE:
                rng = np.random.default_rng([self._seed, plan])
                ids = ids[np.sort(rng.choice(len(ids), _TABLE, replace=False))]
            self._tables[plan] = ids, self._indices(plan, ids)
        return self._tables[plan]

    def _indices(self, plan: int, ids: Ids) -> Ids:
        columns = self._space.plans[plan].plan.space.rows(ids).values()
        return np.array([np.asarray(c, np.int64) for c in columns]).reshape(-1, len(ids))

    def _chosen(self, children: Rows, n: int) -> Rows:
        if self._model is None or len(children) <= n:
            return children
        if self._fitted_to != self._memory.measured:
            self._model.fit(self._memory.samples())
            self._fitted_to = self._memory.measured
        score = self._model.predict(self._space.features(children), self._space.analytic(children)).lower(0.0)
        return children.take(np.argsort(score, kind="stable"))


def _between(groups: Ids, values: npt.NDArray[np.float64]) -> float:
    """The sum of squares between groups: what knowing the group says of the values."""
    if not len(values):
        return 0.0
    counts = np.bincount(groups)
    means = np.bincount(groups, values) / np.maximum(counts, 1)
    return float(np.sum(counts * (means - values.mean()) ** 2 * (counts > 0)))
