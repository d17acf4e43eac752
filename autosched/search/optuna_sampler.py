"""Strategies that ask Optuna's samplers (the extra `optuna`).

A sampler sees the plan and, of the plan that it chose, the place in each decision's domain. It knows no rules: what it
proposes illegally, or twice, it is told to have failed, and asked again; after many such answers a random row takes the
place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from autosched.costmodel.protocol import CostModel
from autosched.search.extras import needed
from autosched.search.memory import Memory, topped_up
from autosched.search.protocol import Factory
from autosched.search.space import Rows, SearchSpace
from autosched.store.records import Trial
from autosched.tiling.schedule import Candidate

_TRIES = 32  # answers that no row comes of, in one batch
_FAILED = 2.0  # ln seconds above the slowest: what a failure counts as, since failed trials teach samplers nothing
SAMPLERS: dict[str, Callable[[Any, int], Any]] = {
    "optuna-cmaes": lambda samplers, seed: samplers.CmaEsSampler(seed=seed),
    "optuna-nsgaii": lambda samplers, seed: samplers.NSGAIISampler(seed=seed),
    "optuna-tpe": lambda samplers, seed: samplers.TPESampler(seed=seed),
}


class OptunaSampler:
    """One of SAMPLERS. Raises MissingError where Optuna, or what the sampler needs, is not installed."""

    def __init__(self, name: str, space: SearchSpace, seed: int) -> None:
        self._optuna = needed("optuna", "optuna", f"the strategy {name}")
        self._optuna.logging.set_verbosity(self._optuna.logging.ERROR)
        self._space = space
        self._seed = seed
        self._memory = Memory(space)
        self._study = self._optuna.create_study(sampler=SAMPLERS[name](self._optuna.samplers, seed))
        self._asked: dict[tuple[int, int], Any] = {}
        self._slowest = -np.inf

    def propose(self, n: int) -> list[Candidate]:
        rng = np.random.default_rng([self._seed, len(self._memory)])
        rows, tries = Rows.of(0, []), 0
        while len(rows) < n and tries < _TRIES and len(self._memory) < self._space.rows:
            trial = self._study.ask()
            row = self._row(trial)
            if row is None or not self._memory.free(row)[0]:
                self._study.tell(trial, state=self._optuna.trial.TrialState.FAIL)
                tries += 1
                continue
            self._memory.take(row)
            self._asked[int(row.plan[0]), int(row.ids[0])] = trial
            rows = Rows.join([rows, row])
        others = topped_up(self._space, self._memory, Rows.of(0, []), n - len(rows), rng)
        return self._space.candidates(Rows.join([rows, others]))

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

    def _row(self, trial: Any) -> Rows | None:
        """The row that the sampler names; None where it is not legal."""
        plans = [n for n in range(len(self._space.plans)) if self._space.counts[n]]
        number = trial.suggest_categorical("plan", plans) if len(plans) > 1 else plans[0]
        space = self._space.plans[number].plan.space
        indices = {
            d.name: np.array([trial.suggest_int(f"{number}.{d.name}", 0, len(d.domain) - 1)]) for d in space.decisions
        }
        row = space.ids(indices)
        return Rows.of(number, row) if space.legal(row)[0] else None

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
