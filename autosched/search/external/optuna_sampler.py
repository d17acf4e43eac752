"""Strategies that ask Optuna's samplers (the extra `optuna`).

A sampler sees the plan and, of the plan that it chose, the place in each decision's domain. It knows no rules: what it
proposes illegally, or twice, it is told to have failed, and asked again; after some such answers the place goes to that
row of a sample of legal ones which is nearest to the last answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.costmodel.protocol import CostModel
from autosched.extras import needed
from autosched.search.protocol import Factory
from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.memory import HistoryStrategy
from autosched.store.records import Trial

_TRIES = 4  # answers in a row that no row comes of
_PATIENCE = 16  # such answers in a row after which it is asked once a row: where rows are scattered hardly any is legal
_LOOKED_AT = 1024  # legal rows of which the nearest is taken then
_FAILED = 2.0  # ln seconds above the slowest: what a failure counts as, since failed trials teach samplers nothing
SAMPLERS: dict[str, Callable[[Any, int], Any]] = {
    "optuna-cmaes": lambda samplers, seed: samplers.CmaEsSampler(seed=seed),
    "optuna-nsgaii": lambda samplers, seed: samplers.NSGAIISampler(seed=seed),
    "optuna-tpe": lambda samplers, seed: samplers.TPESampler(seed=seed),
}


class OptunaSampler(HistoryStrategy):
    """One of SAMPLERS. Raises MissingError where Optuna, or what the sampler needs, is not installed."""

    def __init__(self, name: str, space: SearchSpace, seed: int) -> None:
        self._optuna = needed("optuna", "optuna", f"the strategy {name}")
        self._optuna.logging.set_verbosity(self._optuna.logging.ERROR)
        super().__init__(space, seed, None)
        self._study = self._optuna.create_study(sampler=SAMPLERS[name](self._optuna.samplers, seed))
        self._asked: dict[tuple[int, int], Any] = {}
        self._slowest = -np.inf
        self._vain = 0  # answers in a row that no row came of

    def _wanted(self, n: int, rng: np.random.Generator) -> Rows:
        rows = Rows.of(0, [])
        while len(rows) < n and len(self._memory) < self._space.rows:
            row = self._one(rng)
            if not len(row):
                break
            self._memory.take(row)
            rows = Rows.join([rows, row])
        return rows

    def observe(self, trials: Sequence[Trial]) -> None:
        for trial in trials:
            plan, cost = self._space.number.get(trial.plan), trial.measurement.cost
            if plan is None:
                continue
            value = self._slowest + _FAILED
            if trial.measurement.ok and cost:
                value = float(np.log(cost))
                self._slowest = max(self._slowest, value)
            asked = self._asked.pop((plan, trial.row), None)
            if not np.isfinite(value):  # a failure before anything came out right
                if asked is not None:
                    self._study.tell(asked, state=self._optuna.trial.TrialState.FAIL)
            elif asked is not None:
                self._study.tell(asked, value)
            else:
                self._study.add_trial(self._known(plan, trial.row, value))
        self._memory.observe(trials)

    def _one(self, rng: np.random.Generator) -> Rows:
        """A free row that the sampler asks for, or one near to what it asked for; none where no such row is at hand."""
        number, wanted = 0, np.zeros(0, np.int64)
        for _ in range(_TRIES if self._vain < _PATIENCE else 1):
            trial = self._study.ask()
            number, wanted = self._named(trial)
            space = self._space.plans[number].plan.space
            row = space.ids({d.name: wanted[i : i + 1] for i, d in enumerate(space.decisions)})
            rows = Rows.of(number, row)
            if space.legal(row)[0] and self._memory.free(rows)[0]:
                self._asked[number, int(row[0])] = trial
                self._vain = 0
                return rows
            self._vain += 1
            self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
        return self._near(number, wanted, rng)

    def _near(self, number: int, wanted: npt.NDArray[np.int64], rng: np.random.Generator) -> Rows:
        """Of some free rows of the plan that with the most of these indices, and the nearest where they differ."""
        ids = self._space.plans[number].ids
        some = Rows.of(number, ids[np.unique(rng.integers(0, len(ids), _LOOKED_AT))])
        some = some.take(self._memory.free(some))
        if not len(some):
            return some
        space = self._space.plans[number].plan.space
        table = np.stack([np.asarray(c, np.float64) for c in space.rows(some.ids).values()], axis=1)
        off = np.abs(table - wanted) / np.maximum(np.array(space.radices) - 1, 1)
        return some.take([int(np.argmin((off > 0).sum(axis=1) + off.mean(axis=1)))])

    def _named(self, trial: Any) -> tuple[int, npt.NDArray[np.int64]]:
        """The plan, and places in its domains, that the sampler names."""
        plans = [n for n in range(len(self._space.plans)) if self._space.counts[n]]
        number = trial.suggest_categorical("plan", plans) if len(plans) > 1 else plans[0]
        decisions = self._space.plans[number].plan.space.decisions
        indices = [trial.suggest_int(f"{number}.{d.name}", 0, len(d.domain) - 1) for d in decisions]
        return number, np.array(indices, np.int64)

    def _known(self, plan: int, row: int, value: float) -> Any:
        """A trial that the sampler did not ask for."""
        distributions = self._optuna.distributions
        plans = [n for n in range(len(self._space.plans)) if self._space.counts[n]]
        space = self._space.plans[plan].plan.space
        indices = space.rows(np.array([row], np.int64))
        params: dict[str, Any] = {f"{plan}.{name}": int(column[0]) for name, column in indices.items()}
        ranges: dict[str, Any] = {
            f"{plan}.{d.name}": distributions.IntDistribution(0, len(d.domain) - 1) for d in space.decisions
        }
        if len(plans) > 1:
            params["plan"], ranges["plan"] = plan, distributions.CategoricalDistribution(plans)
        return self._optuna.trial.create_trial(params=params, distributions=ranges, value=value)


def factory(name: str) -> Factory:
    """The strategy of that sampler."""

    def make(space: SearchSpace, seed: int, model: CostModel | None) -> OptunaSampler:
        return OptunaSampler(name, space, seed)

    return make
