"""Kernel Tuner's own strategies on our spaces (the extra `kernel-tuner`), for figures side by side.

They call a function that measures, so they run in a thread of their own that waits wherever the function is called:
what it wants measured is proposed, what is observed is its answer. They draw from the global generators of Python and
numpy, whose state is theirs while they run, and put back after.
"""

# ruff: noqa: NPY002  # the old generator is the one that these strategies draw from

from __future__ import annotations

import random
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.costmodel.protocol import CostModel
from autosched.errors import UsageError
from autosched.extras import needed
from autosched.search.protocol import Factory
from autosched.search.space.rows import Rows
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.memory import HistoryStrategy
from autosched.store.records import Trial

MODULES = {
    "kt-annealing": "simulated_annealing",
    "kt-diff-evo": "diff_evo",
    "kt-firefly": "firefly_algorithm",
    "kt-genetic": "genetic_algorithm",
    "kt-greedy-ils": "greedy_ils",
    "kt-greedy-mls": "greedy_mls",
    "kt-mls": "mls",
    "kt-pso": "pso",
}
"""Our names of its strategies, which run with its defaults."""
MOST = 100_000
"""Legal rows above which its listing of a space takes too long."""
_RUNS = 3  # times in a row that a strategy may end without asking for a new row
_FEW = 16  # with a handful of rows its strategies do not all work
_STALE = 1000  # questions in a row with known answers after which a run is ended: on scattered rows some never stop

Row = tuple[int, int]


@dataclass
class _Desk:
    """Where the two threads meet: rows that are wanted (None: the strategy has ended), and word that all are known."""

    wanted: SimpleQueue[list[Row] | Exception | None] = field(default_factory=SimpleQueue)
    answered: SimpleQueue[bool] = field(default_factory=SimpleQueue)  # False: give up
    seconds: dict[Row, float | None] = field(default_factory=dict)  # None: it failed


class KernelTuned(HistoryStrategy):
    """One of Kernel Tuner's strategies. One that ends is started again with another seed; where that brings no new
    rows, the rest is random. Raises MissingError without the package, UsageError for a space too large to list."""

    batch = 1

    def __init__(self, name: str, space: SearchSpace, seed: int, most: int = MOST) -> None:
        what = f"the strategy {name}"
        self._tune = needed(f"kernel_tuner.strategies.{MODULES[name]}", "kernel-tuner", what).tune
        if space.rows > most:
            raise UsageError(
                f"{what} lists its space, and {space.rows:,} rows are more than {most:,}", hint="use a recorded space"
            )
        super().__init__(space, seed, None)
        self._desk = _Desk()
        self._state: Any = None
        self._open: list[Row] = []  # wanted, not proposed yet
        self._last: list[Row] = []  # what it wanted last
        self._waiting = False
        self._runs = 0
        self._idle = 0
        self._listed: Any = None

    def _wanted(self, n: int, rng: np.random.Generator) -> Rows:
        self._go_on()
        chosen, self._open = self._open[:n], self._open[n:]
        return Rows(np.array([p for p, _ in chosen], np.int32), np.array([r for _, r in chosen], np.int64))

    def observe(self, trials: Sequence[Trial]) -> None:
        super().observe(trials)
        for trial in trials:
            if (plan := self._space.number.get(trial.plan)) is not None:
                cost = trial.measurement.cost if trial.measurement.ok else None
                self._desk.seconds[plan, trial.row] = cost

    def _go_on(self) -> None:
        """Let the strategy run until it wants something new, unless it still waits for what was proposed."""
        while self._space.rows >= _FEW and self._idle < _RUNS:
            wanted = self._open if self._waiting else None
            if wanted is None or all(row in self._desk.seconds for row in self._last):
                wanted = self._resumed()
            if wanted is None:
                self._idle += 1
                continue
            fresh = Rows(np.array([p for p, _ in wanted], np.int32), np.array([r for _, r in wanted], np.int64))
            self._open = [row for row, free in zip(wanted, self._memory.free(fresh), strict=True) if free]
            self._idle = 0
            return
        self._open = []

    def _resumed(self) -> list[Row] | None:
        """Rows that the strategy wants next; None where it ended."""
        outside = random.getstate(), np.random.get_state()
        if self._waiting:
            random.setstate(self._state[0])
            np.random.set_state(self._state[1])
            self._desk.answered.put(True)
        else:
            self._start()
        said = self._desk.wanted.get()
        self._state = random.getstate(), np.random.get_state()
        random.setstate(outside[0])
        np.random.set_state(outside[1])
        if isinstance(said, Exception):  # some fail where a row has no neighbour: that ends a run as well
            if not self._last:
                raise UsageError(f"Kernel Tuner's strategy fails on this space: {said!r}") from said
            said = None
        self._waiting = said is not None
        self._last = said or self._last
        return said

    def _start(self) -> None:
        seed = self._seed + 7919 * self._runs
        self._runs += 1
        random.seed(seed)
        np.random.seed(seed % 2**32)
        self._listed = self._listed or _listing(self._space)
        arguments = self._tune, self._listed, self._desk
        Thread(target=_played, args=arguments, name="kernel tuner", daemon=True).start()
        weakref.finalize(self, self._desk.answered.put, False)


def _listing(space: SearchSpace) -> tuple[dict[str, list[int]], dict[tuple[int, ...], Row]]:
    """Parameters with their values (the plan, and places in domains), and the row of each configuration."""
    width = max(len(e.plan.space.decisions) for e in space.plans)
    rows: dict[tuple[int, ...], Row] = {}
    for number, entry in enumerate(space.plans):
        columns = list(entry.plan.space.rows(entry.ids).values())
        table = np.zeros((len(entry.ids), 1 + width), np.int64)
        table[:, 0] = number
        for place, column in enumerate(columns):
            table[:, 1 + place] = column
        rows |= {tuple(c): (number, int(i)) for c, i in zip(table.tolist(), entry.ids, strict=True)}
    values = np.array(list(rows))
    names = ["plan", *(f"decision_{k}" for k in range(width))]
    return {name: np.unique(values[:, k]).tolist() for k, name in enumerate(names)}, rows


def _played(tune: Any, listed: Any, desk: _Desk) -> None:
    """What the thread does: the strategy from beginning to end."""
    from kernel_tuner.interface import Options
    from kernel_tuner.util import StopCriterionReached, TuningBudget

    parameters, rows = listed
    cache = {str(k): dict(zip(parameters, config, strict=True)) for k, config in enumerate(rows)}
    try:
        space = _searchspace()(None, None, None, from_cache={"tune_params": parameters, "cache": cache})
        options = Options(
            strategy_options=Options(), objective=["time"], objective_higher_is_better=[False], verbose=False,
            budget=TuningBudget(), cache={}, metrics=None, restrictions=None, tune_params=parameters,
        )  # fmt: skip
        tune(space, _runner(rows, desk, StopCriterionReached), options)
        desk.wanted.put(None)
    except StopCriterionReached:
        desk.wanted.put(None)
    except Exception as error:
        desk.wanted.put(error)


def _searchspace() -> Any:
    """Kernel Tuner's class, with first populations that a seed decides: it draws its own from a generator of SciPy's
    without a seed, so the same seed gave another run each time."""
    from kernel_tuner.searchspace import Searchspace

    class Seeded(Searchspace):  # type: ignore[misc]  # the package has no types
        def get_LHS_sample_indices(self, num_samples: int) -> list[int]:
            values = list(self.tune_params.values())
            count = min(num_samples, self.size)
            at = np.array([[v.index(x) for v, x in zip(values, config, strict=True)] for config in self.list])
            targets = hypercube(count, [len(v) for v in values])
            nearest = [int(np.argmin(np.abs(at - target).sum(axis=1))) for target in targets]
            chosen = list(dict.fromkeys(nearest))
            others = [int(i) for i in np.random.permutation(self.size) if i not in chosen]
            return chosen + others[: count - len(chosen)]

    return Seeded


def hypercube(count: int, sizes: Sequence[int]) -> npt.NDArray[np.int64]:
    """So many points (rows) of a Latin hypercube: along each dimension one in each of `count` equal parts of `size`
    places. Drawn from numpy's global generator."""
    columns = [(np.random.permutation(count) + np.random.random(count)) * size / count for size in sizes]
    return np.stack(columns, axis=1).astype(np.int64)


def _runner(rows: dict[tuple[int, ...], Row], desk: _Desk, stop: type[Exception]) -> Any:
    from kernel_tuner.runners.runner import Runner
    from kernel_tuner.util import RuntimeFailedConfig

    class Asking(Runner):  # type: ignore[misc]  # the package has no types
        """Wants what is not known yet, all of a population at once."""

        stale = 0  # questions in a row whose answers were all known

        def run(self, parameter_space: Any, tuning_options: Any) -> list[dict[str, Any]]:
            configs = [tuple(int(v) for v in c) for c in parameter_space]
            new = list(dict.fromkeys(rows[c] for c in configs if rows[c] not in desk.seconds))
            self.stale = 0 if new else self.stale + 1
            if self.stale > _STALE:
                raise stop("it goes round in circles")
            if new:
                desk.wanted.put(new)
                if not desk.answered.get():
                    raise stop("nobody asks any more")
            found = []
            for config in configs:
                seconds = desk.seconds[rows[config]]
                named = dict(zip(tuning_options.tune_params, config, strict=True))
                found.append(named | {"time": RuntimeFailedConfig() if seconds is None else seconds * 1e3})
                if seconds is None:
                    found[-1]["__error__"] = found[-1]["time"]
            return found

        def get_device_info(self) -> Any:
            return None

        def get_environment(self, tuning_options: Any) -> dict[str, Any]:
            return {}

    return Asking()


def factory(name: str) -> Factory:
    """The strategy of that name."""

    def make(space: SearchSpace, seed: int, model: CostModel | None) -> KernelTuned:
        return KernelTuned(name, space, seed)

    return make
