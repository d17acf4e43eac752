"""The final round: the best few measured again, interleaved, so that the winner is not the luckiest of many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import Protocol, runtime_checkable

import numpy as np

from autosched.device.checked import device_name, measurement_of
from autosched.device.protocol import Build
from autosched.errors import PluginError
from autosched.search.tuning.noise import NEAR
from autosched.store.records import Measurement, Trial

NOT_YET = "not verified yet"
"""How a device begins to say that its final round checks a result."""
FINALISTS = 5
ROUNDS = 5
RACE_S = 0.3
"""What a race on a device that interleaves may take where its rounds are short: on a shared server the fastest of five
after 15 rounds was 0 to 10 % behind the best of them, by 120 rounds in three processes."""
LEAST, MOST = 3, 12
"""Bounds of such a race's rounds, for each round of the others."""
LONG_S = 3.0
"""What the fewest of these rounds may take, where they are more than the others' (of five kernels of 0.2 s 15 are 30 s,
and as much again where the machine was disturbed)."""
LEADERS = 2
"""Of a stretch: where one ends is not known to the trial."""
LUCK = 1.05
"""How much slower than in the search the best of several trials is measured again, at most, where nothing changed."""


@dataclass(frozen=True)
class Verdict:
    """Trials of the final round, fastest first; `distinguishable`: whether the first really is faster than the second
    (None where there is no second)."""

    ranking: tuple[Trial, ...]
    distinguishable: bool | None


def waits_for_check(found: Measurement) -> bool:
    """Whether the final round will check what this trial computed, and the search did not."""
    return not found.verified and str(found.extra.get("verified_by", "")).startswith(NOT_YET)


def finalists(ranking: Sequence[Trial], count: int = FINALISTS) -> list[Trial]:
    """The trials worth measuring again: at most `count`, none much slower (or costlier) than the first; and the first
    few of each stretch, where there are several, since their times may not compare."""
    if not ranking:
        return []
    bound = NEAR * (ranking[0].measurement.cost or 0.0)
    chosen = {t.number for t in ranking[:count] if (t.measurement.cost or 0.0) <= bound}
    of: dict[str, list[int]] = {}
    for trial, stretch in zip(ranking, stretches(ranking), strict=True):
        of.setdefault(stretch, []).append(trial.number)
    for numbers in of.values() if len(of) > 1 else ():
        chosen |= set(numbers[:LEADERS])
    return [t for t in ranking if t.number in chosen]


def stretches(ranking: Sequence[Trial]) -> list[str]:
    """What is known of the machine that each trial met: none of its times was corrected (`as measured`); this one was
    (`corrected`); or the machine was found to be faster later on, so it may have been slow from the start (`before`).
    A device that tells no `level` has one stretch."""
    levels = [t.measurement.extra.get("level", 1.0) for t in ranking]
    calm = min((t.number for t, level in zip(ranking, levels, strict=True) if level < 1), default=0)
    return [
        "corrected" if level != 1 else "before" if t.number < calm else "as measured"
        for t, level in zip(ranking, levels, strict=True)
    ]


def passed_over(ranking: Sequence[Trial], chosen: Sequence[Trial], raced: Sequence[Measurement]) -> list[Trial]:
    """Trials that belong into a race, as it shows itself: if their times change as that of a finalist of their
    stretch did, they may be as fast as the fastest. None where all are of one stretch."""
    of = {t.number: s for t, s in zip(ranking, stretches(ranking), strict=True)}
    paces: dict[str, list[float]] = {}
    for trial, measured in zip(chosen, raced, strict=True):
        if measured.ok and measured.cost and trial.measurement.cost:
            paces.setdefault(of[trial.number], []).append(measured.cost / trial.measurement.cost)
    if len(paces) < 2:
        return []
    pace = {stretch: min(found) for stretch, found in paces.items()}
    best = min(m.cost for m in raced if m.ok and m.cost)
    there = {t.number for t in chosen}
    others = [t for t in ranking if t.number not in there and of[t.number] in pace]
    return [t for t in others if (t.measurement.cost or np.inf) * pace[of[t.number]] < LUCK * best][:FINALISTS]


def race(
    builds: Sequence[Build],
    measure: Callable[[Build], Measurement],
    rounds: int = ROUNDS,
    late: Callable[[], bool] = lambda: False,
) -> list[list[Measurement]]:
    """Measure every build once a round, so that drift meets all alike; the order turns around each round. A build that
    fails is not measured again; no round starts when it is `late`. Returns the measurements of each build, at least
    one."""
    found: list[list[Measurement]] = [[] for _ in builds]
    for number in range(rounds):
        if number and late():
            break
        order = range(len(builds)) if number % 2 == 0 else range(len(builds) - 1, -1, -1)
        for i in order:
            if not found[i] or found[i][-1].ok:
                found[i].append(measure(builds[i]))
    return found


@runtime_checkable
class Interleaves(Protocol):
    """A device that races builds by itself, closer together than one measurement after the other can be."""

    def measure_interleaved(self, builds: Sequence[Build], rounds: int) -> list[Measurement]:
        """One measurement a build, in order, with one sample a round."""
        ...


def rounds_of(times_s: Sequence[float], rounds: int) -> int:
    """How often a device runs kernels of these times in turn by itself, instead of `rounds` measurements of each."""
    round_s = round_of(times_s)
    fewest = min(LEAST * rounds, max(rounds, int(LONG_S / round_s)))
    return min(MOST * rounds, max(fewest, int(RACE_S / round_s)))


def round_of(times_s: Sequence[float]) -> float:
    """What a round of kernels of these times takes: each is called twice, and for a millisecond at least."""
    return max(sum(2 * max(t, 1e-3) for t in times_s), 1e-9)


def raced_by_device(device: Interleaves, builds: Sequence[Build], rounds: int) -> list[Measurement]:
    """The device's own race, its samples marked as rounds."""
    answers: object = device.measure_interleaved(builds, rounds)
    if not isinstance(answers, list | tuple) or len(answers) != len(builds):
        raise PluginError(f"the device {device_name(device)} did not answer with one measurement a build")
    found = [measurement_of(answer, device) for answer in answers]
    return [replace(m, extra={**m.extra, "rounds_s": list(m.samples_s)}) if m.ok else m for m in found]


def pooled(measurements: Sequence[Measurement]) -> Measurement:
    """One measurement over all rounds: the median of the rounds' medians, all samples, the error that came nearest to
    its tolerance. A failure in any round is the result."""
    failed = next((m for m in measurements if not m.ok), None)
    if failed is not None:
        return failed
    medians = np.array([m.time_s for m in measurements], np.float64)
    middle = float(np.median(medians))
    q25, q75 = np.percentile(medians, [25, 75])
    worst = max(measurements, key=_excess)
    costs: dict[str, float] = {}
    for m in measurements:
        for name, seconds in m.costs_s.items():
            costs[name] = costs.get(name, 0.0) + seconds
    return replace(
        measurements[0],
        time_s=middle,
        samples_s=tuple(s for m in measurements for s in (m.samples_s or ((m.time_s or 0.0),))),
        spread=float((q75 - q25) / middle) if middle > 0 else None,
        max_abs_error=worst.max_abs_error,
        tolerance=worst.tolerance,
        costs_s=costs,
        extra={**measurements[0].extra, "rounds_s": [float(s) for s in medians]},
    )


def _excess(m: Measurement) -> float:
    error, tolerance = m.max_abs_error or 0.0, m.tolerance or 0.0
    return error / tolerance if tolerance > 0 else error


def distinguishable(first: Measurement, second: Measurement) -> bool:
    """Whether `first` is faster than `second`, by a one-sided sign test over interleaved rounds (p <= 0.05: all of 5
    rounds, 12 of 15). A test of signs needs nothing of the distribution, and timings have long tails. What a study for
    another objective minimises is worked out, not timed: it is less or it is not."""
    if "cost" in first.extra:
        return (first.cost or 0.0) < (second.cost or 0.0)
    pairs = zip(first.extra.get("rounds_s", []), second.extra.get("rounds_s", []), strict=False)
    differ = [a < b for a, b in pairs if a != b]
    won, rounds = sum(differ), len(differ)
    return sum(comb(rounds, k) for k in range(won, rounds + 1)) <= 0.05 * float(2**rounds)


def verdict(trials: Sequence[Trial]) -> Verdict:
    """The order of a final round's trials; failed ones drop out."""
    fine = sorted((t for t in trials if t.measurement.ok), key=lambda t: (t.measurement.cost, t.number))
    apart = distinguishable(fine[0].measurement, fine[1].measurement) if len(fine) > 1 else None
    return Verdict(tuple(fine), apart)
