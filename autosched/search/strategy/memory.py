"""`TrialHistory`: what a strategy proposed and saw; no row is proposed twice, and models learn from all of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from autosched.costmodel.features import Features
from autosched.costmodel.protocol import CostModel, Samples
from autosched.search.space.rows import Rows, Seconds, in_order
from autosched.search.space.space import SearchSpace
from autosched.search.strategy.failing import failing
from autosched.store.records import Trial
from autosched.tiling.candidate import Candidate

_MACHINE = float(np.log(4.0))
"""How far the clock may be off for all rows alike, in ln(seconds), where a target's figures are approximate."""


class TrialHistory:
    """Proposed rows and finished trials of one strategy. Rows of plans that only fail are left alone while others have
    rows."""

    def __init__(self, space: SearchSpace) -> None:
        self._space = space
        self._taken: dict[int, set[int]] = {n: set() for n in range(len(space.plans))}
        self._plan: list[int] = []
        self._row: list[int] = []
        self._time: list[float] = []
        self._status: list[str] = []
        self._features: list[Features] = []
        self._analytic: list[float] = []
        self._seconds: dict[tuple[int, int], float] = {}

    def __len__(self) -> int:
        """Rows taken: proposed or measured."""
        return sum(len(rows) for rows in self._taken.values())

    @property
    def measured(self) -> int:
        return len(self._status)

    def take(self, rows: Rows) -> None:
        """Mark rows as proposed."""
        for plan, row in zip(rows.plan.tolist(), rows.ids.tolist(), strict=True):
            self._taken[plan].add(row)

    def observe(self, trials: Sequence[Trial]) -> None:
        """Note finished trials; those of plans that this study no longer has say nothing here."""
        for trial in trials:
            plan = self._space.number.get(trial.plan)
            if plan is None:
                continue
            self._taken[plan].add(trial.row)
            self._plan.append(plan)
            self._row.append(trial.row)
            time_s = trial.measurement.cost
            self._time.append(float("nan") if time_s is None else time_s)
            self._status.append(trial.measurement.status)
            fine = trial.measurement.ok and time_s is not None
            self._seconds[plan, trial.row] = float(time_s or 0.0) if fine else float("inf")

    @property
    def given_up(self) -> frozenset[int]:
        """The plans that only fail, while others have rows left."""
        found = failing(zip(self._plan, (s == "ok" for s in self._status), strict=True))
        others = (n for n in range(len(self._space.plans)) if n not in found) if found else ()
        left = any(self._space.has_legal(n) and self._space.counts[n] > len(self._taken[n]) for n in others)
        return found if left else frozenset()

    def free(self, rows: Rows, whatever: bool = False) -> npt.NDArray[np.bool_]:
        """Which rows were not taken yet, and are of no plan that is given up (unless `whatever`)."""
        free = np.ones(len(rows), np.bool_) if whatever else ~np.isin(rows.plan, list(self.given_up))
        for number in np.unique(rows.plan[free]):
            taken = self._taken[int(number)]
            if taken:
                mine = rows.plan == number
                free[mine] = ~np.isin(rows.ids[mine], np.fromiter(taken, np.int64, len(taken)))
        return free

    def seconds(self, rows: Rows) -> npt.NDArray[np.float64]:
        """Measured seconds of these rows: infinite for those that failed, NaN for those not measured."""
        keys = zip(rows.plan.tolist(), rows.ids.tolist(), strict=True)
        return np.array([self._seconds.get(key, np.nan) for key in keys], np.float64)

    def tried(self, plan: int) -> bool:
        """Whether any row of the plan was proposed or measured."""
        return bool(self._taken[plan])

    def taken(self) -> Rows:
        """Rows proposed or measured."""
        return Rows.join([Rows.of(plan, sorted(ids)) for plan, ids in self._taken.items()])

    def rows(self) -> Rows:
        """Measured rows, in order."""
        return Rows(np.array(self._plan, np.int32), np.array(self._row, np.int64))

    def fastest(self, k: int) -> Rows:
        """The `k` rows with the best measured times, best first."""
        times = np.array(self._time, np.float64)
        fine = np.flatnonzero(np.array([s == "ok" for s in self._status], np.bool_) & np.isfinite(times))
        return self.rows().take(fine[np.argsort(times[fine], kind="stable")[:k]])

    @property
    def best_log_s(self) -> float:
        """ln(seconds) of the fastest row."""
        return float(np.log(self.seconds(self.fastest(1))[0]))

    @property
    def surprise(self) -> float:
        """How far the clock was off: the deviation of ln(measured / clock), infinite before two rows came out right.
        Where all were wrong alike, and by more than a machine may be, what is beyond that counts too: its favourites
        share what it does not know."""
        self._describe()
        off = np.log(np.array(self._time, np.float64)) - np.log(np.maximum(np.array(self._analytic, np.float64), 1e-12))
        off = off[np.isfinite(off)]
        if len(off) < 2:
            return float("inf")
        return float(np.hypot(off.std(), max(0.0, abs(float(np.median(off))) - _MACHINE)))

    def clock_and_times(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The clock's seconds and the measured ones of the rows that came out right, in order."""
        self._describe()
        times = np.array(self._time, np.float64)
        fine = np.isfinite(times) & np.array([s == "ok" for s in self._status], np.bool_)
        return np.array(self._analytic, np.float64)[fine], times[fine]

    def samples(self) -> Samples:
        """All trials as samples for a cost model."""
        self._describe()
        features = self._space.schema.stack(self._features)
        times = np.array(self._time, np.float64)
        return Samples(features, np.array(self._analytic, np.float32), times, tuple(self._status))

    def _describe(self) -> None:
        """Features and the clock's seconds of the trials that are new since the last time."""
        known = len(self._analytic)
        if known < len(self._row):
            features, seconds = self._space.described(self.rows().take(np.arange(known, len(self._row))))
            self._features.append(features)
            self._analytic += seconds.tolist()


class HistoryStrategy:
    """A strategy that remembers what it proposed and saw. A batch has the rows that it wants, and random ones in place
    of those that are missing. The generator depends on the seed and on how many rows are taken, so a continued study
    draws the same random rows. Other state of a strategy, such as `Unclocked`'s length scales, is not restored."""

    def __init__(self, space: SearchSpace, seed: int, model: CostModel | None) -> None:
        self._space = space
        self._seed = seed
        self._memory = TrialHistory(space)

    def propose(self, n: int) -> list[Candidate]:
        rng = np.random.default_rng([self._seed, len(self._memory)])
        rows = self._wanted(n, rng) if n > 0 else Rows.of(0, [])
        return self._space.candidates(topped_up(self._space, self._memory, rows, n, rng))

    def observe(self, trials: Sequence[Trial]) -> None:
        self._memory.observe(trials)

    def _wanted(self, n: int, rng: np.random.Generator) -> Rows:
        """Rows for a batch of `n`, best first; those that are not taken."""
        return Rows.of(0, [])


def has_clock(space: SearchSpace) -> bool:
    """Whether the clock tells rows apart: recordings of others have none, and all their rows take one second."""
    first: float | None = None
    for number in range(len(space.plans)):
        if space.has_legal(number):
            seconds = space.sampled(number)[1]
            first = float(seconds[0]) if first is None else first
            if (seconds != first).any():
                return True
    return False


def draw(space: SearchSpace, memory: TrialHistory, n: int, rng: np.random.Generator) -> Rows:
    """Up to `n` different rows not taken yet, uniformly over the legal rows of all plans; fewer when few are left."""
    if n <= 0 or not space.rows:
        return Rows.of(0, [])
    if len(memory) < space.rows // 2:  # most draws are new
        parts: list[Rows] = []
        for _ in range(32):
            rows = space.locate(rng.integers(0, space.rows, 2 * n))
            parts.append(rows.take(memory.free(rows)))
            found = Rows.join(parts).distinct()
            if len(found) >= n:
                return found.take(np.arange(n))
    everything = space.locate(np.arange(space.rows))
    left = np.flatnonzero(memory.free(everything))
    if len(left) < n:  # of plans that are given up, too
        left = np.flatnonzero(memory.free(everything, whatever=True))
    return everything.take(rng.permutation(left)[:n])


def best_of_others(space: SearchSpace, memory: TrialHistory, k: int) -> tuple[Rows, Seconds]:
    """The clock's `k` best rows of the plans that are not given up: of the plausible ones, or of any."""
    left = [n for n in range(len(space.plans)) if n not in memory.given_up and space.has_legal(n)]
    left = [n for n in space.plausible if n in left] or left
    found = [space.best(k, n) for n in left]
    return in_order([rows for rows, _ in found], [seconds for _, seconds in found], k)


def topped_up(space: SearchSpace, memory: TrialHistory, rows: Rows, n: int, rng: np.random.Generator) -> Rows:
    """These rows (none taken), and random new ones up to `n` in all; the result is taken."""
    rows = rows.take(np.arange(min(n, len(rows))))
    memory.take(rows)
    extra = draw(space, memory, n - len(rows), rng)
    memory.take(extra)
    return Rows.join([rows, extra])
