"""`Landscape`: all times of a space that was measured whole, and what random search is expected to find in it.

Nothing is drawn: the best of k rows taken at random without replacement is an order statistic. Of N rows the i-th
fastest is the best of k with probability C(N - i, k - 1) / C(N, k). Strategies are measured against that curve
(Willemsen et al. 2024, Future Generation Computer Systems, doi 10.1016/j.future.2024.05.021).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from autosched.errors import UsageError
from autosched.store.recorded_space import RecordedSpace

Floats = npt.NDArray[np.float64]
SHARE = 0.95
"""A comparison ends where random search has come this far from the median to the optimum."""
_COLUMNS = 64  # budgets calculated at once: of a space of 10^5 rows that is 50 MB


@dataclass(frozen=True)
class Landscape:
    """`times_s`: of the rows that came out right, ascending; `failed`: how many others there are; `cost_s`: what trying
    a row took on average, NaN where that is not known."""

    times_s: Floats
    failed: int = 0
    cost_s: float = float("nan")

    @staticmethod
    def of(recording: RecordedSpace) -> Landscape:
        """Of all recorded rows. Raises UsageError where none came out right, or all took the same time."""
        times = np.sort(np.concatenate([p.time_s[p.ok] for p in recording.plans]))
        if not len(times):
            raise UsageError(f"no row of {recording.name} came out right, so there is nothing to find")
        if times[0] == times[-1]:
            which = f"all {len(times)} rows" if len(times) > 1 else "the only row"
            said = f"{which} of {recording.name} that came out right took {times[0]:.3g} s"
            raise UsageError(f"{said}, so there is nothing to find", hint="give a recording of two or more times")
        costs = np.concatenate([p.cost_s for p in recording.plans])
        known = costs[np.isfinite(costs)]
        return Landscape(times, len(recording) - len(times), float(known.mean()) if len(known) else float("nan"))

    @property
    def rows(self) -> int:
        return len(self.times_s) + self.failed

    @property
    def optimum_s(self) -> float:
        return float(self.times_s[0])

    def expected_s(self, trials: npt.ArrayLike | Sequence[int]) -> Floats:
        """The expected best time after so many trials at random, given that one of them came out right: one value for
        each number of trials (1 or more; the optimum beyond all rows).

        >>> Landscape(np.array([1.0, 2.0, 3.0])).expected_s([1, 2, 3]).round(3).tolist()
        [2.0, 1.333, 1.0]
        """
        budgets = np.minimum(np.asarray(trials, np.float64), self.rows)
        found = np.empty(len(budgets))
        place = np.arange(1, len(self.times_s) + 1, dtype=np.float64)[:, None]
        for left in range(0, len(budgets), _COLUMNS):
            k = budgets[left : left + _COLUMNS][None, :]
            chance = np.exp(_log_choose(self.rows - place, k - 1) - _log_choose(float(self.rows), k))
            found[left : left + _COLUMNS] = (self.times_s @ chance) / chance.sum(axis=0)
        return found

    def cutoff(self, share: float = SHARE) -> int:
        """The trials that random search needs to come this share of the way from the median time to the optimum."""
        median = float(np.median(self.times_s))
        goal = median - share * (median - self.optimum_s)
        low, high = 1, self.rows
        while low < high:
            middle = (low + high) // 2
            if self.expected_s([middle])[0] <= goal:
                high = middle
            else:
                low = middle + 1
        return low


def _log_choose(n: float | Floats, k: Floats) -> Floats:
    """ln C(n, k), and -inf where k > n."""
    fits = k <= n
    rest = np.where(fits, n - k, 0)
    return np.where(fits, gammaln(np.asarray(n) + 1.0) - gammaln(k + 1) - gammaln(rest + 1), -np.inf)
