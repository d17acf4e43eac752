"""Noise: what a busy neighbour does to a race, seen in what all candidates share; rounds that it spoiled are run again.

A candidate that is slow is slow in every round; a machine that is slow is slow for every candidate of a round. So a
round's level is the median, over the candidates, of each one's time against its own quiet quarter. No clock of its own
is needed, and no threshold on absolute times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from autosched.store.records import Measurement

SLOWER = 1.05
"""A round this much slower than the quiet quarter is disturbed: several times what repeats differ by when quiet."""
ENOUGH = 0.75
"""The share of a race's rounds that must have been quiet; further races make up for the rest."""
FEWEST = 3
"""Quiet rounds below which all rounds count: a median of fewer says less than one of disturbed ones."""
AGAIN = 2
"""Further races at most. A neighbour that stays is reported, not waited for."""
WIDE = 0.10
"""A spread (q75 - q25 over the median) above which a trial of the search is in doubt."""
NEAR = 1.3
"""A candidate this many times slower than the best does not win by noise."""
MEASURED = 3
"""The most measurements of a trial that is in doubt."""


@dataclass(frozen=True)
class Noise:
    """Of a race: disturbed rounds of all, and by how much the machine was slower in these (0.2: a fifth). `drift` is
    how much slower all candidates are than they were in the search."""

    disturbed: int = 0
    rounds: int = 0
    slowdown: float = 0.0
    drift: float = 0.0

    @property
    def quiet(self) -> int:
        return self.rounds - self.disturbed


def levels(raced: Sequence[Measurement]) -> npt.NDArray[np.float64]:
    """How slow the machine was in each round, 1 being quiet: over measurements with `rounds_s`, as many as all have."""
    times = [m.extra["rounds_s"] for m in raced if m.ok and m.extra.get("rounds_s")]
    if not times:
        return np.ones(0)
    shortest = min(map(len, times))
    table = np.array([t[:shortest] for t in times], np.float64)
    quiet = np.percentile(table, 25, axis=1, keepdims=True)
    found: npt.NDArray[np.float64] = np.median(table / np.maximum(quiet, 1e-12), axis=0)
    return found


def noise_of(raced: Sequence[Measurement], searched_s: Sequence[float] = ()) -> Noise:
    """The noise in a race; `searched_s` are the candidates' times in the search, in order."""
    found = levels(raced)
    bad = found[found > SLOWER]
    drifts = [m.time_s / s for m, s in zip(raced, searched_s, strict=False) if m.ok and m.time_s and s > 0]
    drift = float(np.median(drifts)) - 1 if drifts else 0.0
    return Noise(len(bad), len(found), float(np.median(bad)) - 1 if len(bad) else 0.0, drift)


def joined(first: Sequence[Measurement], again: Sequence[Measurement]) -> list[Measurement]:
    """Both races as one, candidate by candidate. A failure in either is the result; but one that the other race only
    had no time for keeps its first."""
    return [_joined(a, b) for a, b in zip(first, again, strict=True)]


def quiet_rounds(raced: Sequence[Measurement]) -> list[Measurement]:
    """The race without its disturbed rounds, where enough others are left."""
    keep = levels(raced) <= SLOWER
    return [_only(m, keep) if m.ok else m for m in raced] if keep.sum() >= FEWEST else list(raced)


def settled(
    race: Callable[[], list[Measurement]],
    say: Callable[[Noise, bool], None],
    late: Callable[[], bool] = lambda: False,
) -> tuple[list[Measurement], Noise]:
    """Race until enough rounds were quiet, or AGAIN times more, or until it is `late`; then only quiet rounds count.

    `say` hears of the noise, and whether there is another race. The noise returned is that of all the rounds.
    """
    found = race()
    wanted = ENOUGH * len(levels(found))
    for left in range(AGAIN, -1, -1):
        noise = noise_of(found)
        if noise.quiet >= wanted:
            break
        again = left > 0 and not late()
        say(noise, again)
        if not again:
            break
        found = joined(found, race())
    return quiet_rounds(found), noise


def doubtful(measurement: Measurement, best_s: float | None) -> bool:
    """Whether a trial of the search may have lost by noise: its samples differ widely, its median is no new best, and
    by its least sample it belongs among the best."""
    if not measurement.ok or best_s is None or not measurement.samples_s:
        return False
    wide = measurement.spread is not None and measurement.spread > WIDE
    return wide and best_s <= (measurement.time_s or 0.0) and min(measurement.samples_s) < NEAR * best_s


def _joined(a: Measurement, b: Measurement) -> Measurement:
    if not a.ok or b.status == "timeout":
        return a
    return _both(a, b) if b.ok else b


def _both(a: Measurement, b: Measurement) -> Measurement:
    rounds = [*a.extra.get("rounds_s", []), *b.extra.get("rounds_s", [])]
    costs = {k: a.costs_s.get(k, 0.0) + b.costs_s.get(k, 0.0) for k in {**a.costs_s, **b.costs_s}}
    whole = replace(a, samples_s=(*a.samples_s, *b.samples_s), costs_s=costs, extra={**a.extra, "rounds_s": rounds})
    return _only(whole, np.ones(len(rounds), bool))


def _only(measurement: Measurement, keep: npt.NDArray[np.bool_]) -> Measurement:
    """The measurement over the rounds kept."""
    rounds = [t for t, k in zip(measurement.extra.get("rounds_s", []), keep, strict=False) if k]
    if not rounds:
        return measurement
    low, middle, high = (float(q) for q in np.percentile(rounds, [25, 50, 75]))
    spread = (high - low) / middle if middle > 0 else None
    return replace(measurement, time_s=middle, spread=spread, extra={**measurement.extra, "rounds_s": rounds})
