"""`genetic`: generations of children that take each decision from either parent, as Kernel Tuner's genetic algorithm
is set. Children are legal by construction, and a generation is replaced whole."""

from __future__ import annotations

import numpy as np

from autosched.costmodel.protocol import CostModel
from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.memory import HistoryStrategy, draw

# Kernel Tuner, strategies/genetic_algorithm.py: 30 in a generation, uniform crossover, a mutation of one in 20, and
# parents by rank, drawn from a beta distribution.
_POPULATION = 30
_MUTATED = 1 / 20
_BETA = (1.0, 2.5)
_BARREN = 20  # generations without anything new after which the population has converged


class Genetic(HistoryStrategy):
    """Waits for a generation to be measured; a batch that is larger than what is left of it is filled up at random."""

    batch = 1

    def __init__(self, space: SearchSpace, seed: int, model: CostModel | None) -> None:
        super().__init__(space, seed, model)
        self._generation = Rows.of(0, [])

    def _wanted(self, n: int, rng: np.random.Generator) -> Rows:
        """What is left to propose of this generation, or of the next one that brings anything new."""
        for _ in range(_BARREN):
            free = self._generation.take(self._memory.free(self._generation))
            if len(free):
                return free
            seconds = self._memory.seconds(self._generation)
            if np.isnan(seconds).any():
                return free  # some are being measured
            order = np.argsort(seconds, kind="stable")
            self._generation = self._bred(self._generation.take(order), rng)
        self._generation = Rows.of(0, [])
        return self._generation

    def _bred(self, parents: Rows, rng: np.random.Generator) -> Rows:
        """A generation from parents in order, best first; a random one where there are too few."""
        if len(parents) < 2:
            return draw(self._space, self._memory, min(_POPULATION, max(2, self._space.rows // 2)), rng)
        places = (rng.beta(*_BETA, size=(2, _POPULATION)) * len(parents)).astype(np.int64)
        children = crossed(self._space, parents.take(places[0]), parents.take(places[1]), rng)
        mutants = self._space.mutate(children, rng)
        changed = rng.random(len(children)) < _MUTATED
        plan = np.where(changed, mutants.plan, children.plan)
        return Rows(plan, np.where(changed, mutants.ids, children.ids)).distinct()


def crossed(space: SearchSpace, first: Rows, second: Rows, rng: np.random.Generator) -> Rows:
    """A legal child of each pair within a plan; of parents from two plans, the first."""
    ids = first.ids.copy()
    for number in np.unique(first.plan):
        mine = (first.plan == number) & (second.plan == number)
        if mine.any():
            ids[mine] = space.plans[int(number)].plan.space.crossover(first.ids[mine], second.ids[mine], rng)
    return Rows(first.plan, ids)
