"""`evolutionary`: a population that mutates through legal rows, scored by the cost model where there is one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from autosched.costmodel.protocol import CostModel
from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.memory import HistoryStrategy, draw, topped_up
from autosched.tiling.candidate import Candidate

# The shape of a round follows MetaSchedule (population 512, 4 generations, a fifth from earlier measurements, 5 % at
# random; src/s_tir/meta_schedule/search_strategy in TVM), so that a comparison compares the idea and not the settings.
_POPULATION = 512
_GENERATIONS = 4
_FROM_MEASURED = 0.2
_AT_RANDOM = 0.05
_TOURNAMENT = 3
_PARENTS = 32  # without a model: the fastest measured rows that may have children


class Evolutionary(HistoryStrategy):
    """Without a model, children of the fastest measured rows are proposed unscored."""

    ahead = True

    def __init__(self, space: SearchSpace, seed: int, model: CostModel | None) -> None:
        super().__init__(space, seed, model)
        self._model = model
        self._fitted_to = -1

    def propose(self, n: int) -> list[Candidate]:
        rng = np.random.default_rng([self._seed, len(self._memory)])
        wanted = n - int(rng.binomial(n, _AT_RANDOM))
        bred = self._children(wanted, rng) if self._model is None else self._evolved(wanted, rng, self._model)
        rows = topped_up(self._space, self._memory, bred, n, rng)
        if self._model is None or not len(rows) or not self._memory.measured:
            return self._space.candidates(rows)
        predicted = self._model.predict(*self._space.described(rows))
        return self._space.candidates(rows, predicted.seconds)

    def _children(self, n: int, rng: np.random.Generator) -> Rows:
        """New neighbours of the fastest measured rows."""
        parents = self._memory.fastest(_PARENTS)
        if not len(parents) or n <= 0:
            return Rows.of(0, [])
        # Parents are in order, so the smallest of a few random places is the winner of a tournament.
        chosen = rng.integers(0, len(parents), (4 * n, _TOURNAMENT)).min(axis=1)
        children = self._space.mutate(parents.take(chosen), rng).distinct()
        children = children.take(self._memory.free(children))
        return children.take(np.arange(min(n, len(children))))

    def _evolved(self, n: int, rng: np.random.Generator, model: CostModel) -> Rows:
        """The best new rows of a few generations."""
        if self._fitted_to != self._memory.measured:
            if self._memory.measured:
                model.fit(self._memory.samples())
            self._fitted_to = self._memory.measured
        elite = self._memory.fastest(int(_POPULATION * _FROM_MEASURED))
        population = Rows.join([elite, draw(self._space, self._memory, _POPULATION - len(elite), rng)]).distinct()
        if not len(population):
            return population
        score = self._scored(population, model)
        for _ in range(_GENERATIONS):
            rivals = rng.integers(0, len(population), (_POPULATION, _TOURNAMENT))
            parents = rivals[np.arange(_POPULATION), np.argmin(score[rivals], axis=1)]
            everyone = Rows.join([population, self._space.mutate(population.take(parents), rng)]).distinct()
            # `distinct` keeps first places, so the population's own scores stay in front.
            born = everyone.take(np.arange(len(population), len(everyone)))
            score = np.concatenate([score, self._scored(born, model)])
            order = np.argsort(score, kind="stable")[:_POPULATION]
            population, score = everyone.take(order), score[order]
        population = population.take(self._memory.free(population))
        return population.take(np.arange(min(n, len(population))))

    def _scored(self, rows: Rows, model: CostModel) -> npt.NDArray[np.floating]:
        if not len(rows):
            return np.zeros(0, np.float32)
        return model.predict(*self._space.described(rows)).lower(0.0)
