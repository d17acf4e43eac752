"""`diverse`: of rows that a clock cannot tell apart, those that differ in decisions that matter to speed.

In a real space the clock's best rows are hundreds of variants of one tile (prefetches, copies, loop orders) with nearly
equal estimates. A tile that is 10 % faster on the machine comes after them if its estimate is 1 % worse. The distance
of two rows is measured in the decisions on which the clock's estimates depend.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from autosched.search.space.rows import Rows, Seconds
from autosched.search.space.space import SearchSpace

ALIKE = 0.05
"""Estimates this much over the best say little about which is faster: of an f32 product of 512x512x512 on an Intel
server the first twelve rows by the clock were of one tile, 9 % slower than one that it put 1 % behind."""
FAST = 0.2
"""The share of a plan's rows, fastest first, whose estimates tell how much a decision matters: among all rows the
variance is that of the worst ones."""
APART = (2.0, 0.5, 0.25, 0.1, 0.03, 0.0)
"""Least distances between two rows: 0 (alike in all that matters), 1 (alike in nothing), 2 (of two plans). Rows that
are apart by the first are chosen until there are none, then by the next."""


def diverse(space: SearchSpace, rows: Rows, seconds: Seconds, taken: Rows, n: int) -> Rows:
    """`n` of the `rows` (fewer where there are no more) that are apart from each other and from those `taken`.

    `rows` are free ones in order of their estimates, `seconds`; of rows far enough apart the first is chosen, among
    those whose estimates are within ALIKE of the first's.
    """
    alike = np.count_nonzero(seconds <= (1 + ALIKE) * seconds[0]) if len(rows) else 0
    near = rows.take(np.arange(min(len(rows), max(n, alike))))
    every = Rows.join([taken, near])
    decisions = space.decisions(every)
    weights = {int(plan): weights_of(space, int(plan)) for plan in np.unique(every.plan)}
    least = np.full(len(every), np.inf)

    def choose(i: int) -> None:
        far = (decisions != decisions[i]) @ weights[int(every.plan[i])]
        np.minimum(least, np.where(every.plan == every.plan[i], far, 2.0), out=least)

    for i in range(len(taken)):
        choose(i)
    chosen: list[int] = []
    free = np.arange(len(every)) >= len(taken)
    for apart in APART:
        while len(chosen) < n and (fits := np.flatnonzero(free & (least >= apart))).size:
            choose(fits[0])
            chosen.append(int(fits[0]))
            free[fits[0]] = False
    return every.take(chosen)


def weights_of(space: SearchSpace, plan: int) -> npt.NDArray[np.float64]:
    """How much each decision of a plan matters to the clock: its share of the variance of ln(seconds) among fast rows
    (the first-order effect of an analysis of variance), all shares adding up to 1."""
    ids, seconds = space.sampled(plan)
    log_s = np.log(np.asarray(seconds, np.float64))
    fast = np.argsort(log_s, kind="stable")[: max(1, round(FAST * len(log_s)))]
    log_s = log_s[fast] - log_s[fast].mean()
    decisions = space.decisions(Rows.of(plan, ids[fast]))
    found = np.zeros(decisions.shape[1])
    for column, values in enumerate(decisions.T):
        _, group = np.unique(values, return_inverse=True)
        found[column] = np.sum(np.bincount(group, log_s) ** 2 / np.bincount(group))
    whole = found.sum()
    return found / whole if whole > 0 else np.full(len(found), 1 / max(1, len(found)))
