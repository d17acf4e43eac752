"""Strategies less a baseline, paired by seed: each difference with its interval, its test, and what would decide it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from autosched.report import statistics
from autosched.report.statistics import Floats, Interval, MeanEstimate, spanned

LESS_IS_BETTER = ("regret", "final")
FEW_SEEDS = f"fewer than {statistics.FEWEST} seeds: intervals and tests take differences to be normally distributed"


@dataclass(frozen=True)
class StrategyDifference:
    """A strategy less the baseline, paired by seed.

    `outcome` is `performance`, of which more is better, or `regret` (over the whole search) or `final` (1 - fastest of
    all / best after the last trial), of which less is. `difference` is its mean with an interval, `p` the p-value of
    that mean's being 0, corrected (Holm) for the family of the summary; None where `untested` says why.
    `superiority` is the share of pairs in which the strategy has the better, ties counting half, `ties` the share of
    these; `more` says how many more seeds or spaces would decide what is undecided.
    """

    strategy: str
    baseline: str
    outcome: str
    difference: Interval
    superiority: float
    p: float | None
    untested: str = ""
    more: str = ""
    count: int = 0
    """Seeds, or spaces, that the mean is over."""
    ties: float = 0.0

    def __str__(self) -> str:
        gap = spanned(self.difference, _signed if self.outcome in LESS_IS_BETTER else lambda x: f"{x:+.3f}")
        p = "" if self.p is None else ", p < 0.001" if self.p < 0.001 else f", p = {self.p:.3f}"
        why = f", not tested: {self.untested}" if self.untested else ""
        return f"{self.strategy} - {self.baseline}: {self.outcome} {gap}, {self.pairs}{p}{why}"

    @property
    def pairs(self) -> str:
        """In which pairs the strategy has the better, in words; a tie is half of one."""
        if self.ties == 1:
            return "the same in all pairs"
        tied = f", the same in {self.ties:.0%}" if self.ties else ""
        return f"better in {self.superiority - self.ties / 2:.0%} of pairs{tied}"


def differences(
    values: Mapping[str, Sequence[Floats]],
    baseline: str,
    outcome: str,
    seed: int,
    *,
    alike: Collection[str] = (),
    tested: bool = True,
) -> tuple[StrategyDifference, ...]:
    """Of an outcome by strategy and space, each an array over the same seeds. `seed` draws the resamples, of each
    difference anew: which others are asked about changes none. With `tested`, the differences are one family of tests.
    In one space those of strategies that are `alike` for all seeds are not tested."""
    sign = 1 if outcome not in LESS_IS_BETTER else -1
    base, found, open_ = values[baseline], list[StrategyDifference](), dict[int, MeanEstimate]()
    for name in (n for n in values if n != baseline):
        pairs = [np.asarray(mine) - theirs for mine, theirs in zip(values[name], base, strict=True)]
        estimate = statistics.estimate(pairs, np.random.default_rng(seed))
        better = [statistics.superiority(sign * m, sign * b) for m, b in zip(values[name], base, strict=True)]
        ties = float(np.mean([np.mean(np.asarray(m) == b) for m, b in zip(values[name], base, strict=True)]))
        interval = estimate.interval.within(-1.0, 1.0) if sign < 0 else estimate.interval  # regrets are of 0 to 1
        why = _why_not(estimate, [n for n in (name, baseline) if n in alike]) if tested else ""
        if tested and not why:
            open_[len(found)] = estimate
        found.append(
            StrategyDifference(
                name, baseline, outcome, interval, float(np.mean(better)), None, why, count=estimate.count, ties=ties
            )
        )
    corrected = statistics.holm([e.p for e in open_.values()])
    for (at, estimate), p in zip(open_.items(), corrected, strict=True):
        more = more_of(estimate, len(open_)) if p > 1 - statistics.LEVEL else ""
        d = found[at]
        found[at] = replace(d, p=p, more=more)
    return tuple(found)


def family(found: Sequence[StrategyDifference], over: str) -> str:
    """What was corrected for, and what the p-values are of; empty where nothing was tested."""
    tested = [d for d in found if d.p is not None]
    if not tested:
        return ""
    first, tests = tested[0], "1 test" if len(tested) == 1 else f"{len(tested)} tests"
    what = f"the mean difference of {first.outcome} over {over}"
    each = "" if len(tested) == 1 else "; intervals are of one difference each"
    test = "bootstrap t test" if first.count >= statistics.FEWEST else "Student's t test"
    return f"p: {test} of {what}, Holm-corrected for the family of {tests} against {first.baseline}{each}"


def more_of(estimate: MeanEstimate, tests: int) -> str:
    """How many more units would decide, were the difference what it was found to be: with probability 0.8, at the
    strictest level of Holm's correction."""
    level = (1 - statistics.LEVEL) / tests
    deviation = estimate.deviation * estimate.widening
    seen = statistics.visible(deviation, estimate.count, level)
    known = f"{estimate.count} {estimate.units} see differences from {seen:.2g} on"
    wanted = statistics.needed(deviation, estimate.value, level)
    if wanted is None:
        return f"{known}; of so small a one even {statistics.MOST:,} do not decide"
    if wanted <= estimate.count:
        return f"{known}; a few more {estimate.units} may decide"
    said = f"{known}; some {wanted - estimate.count:,} more {estimate.units} would decide this one"
    if estimate.units != "spaces":
        return said
    seeds = _seeds_instead(estimate, level)
    return f"{said}, {seeds}"


def _seeds_instead(estimate: MeanEstimate, level: float) -> str:
    """Whether more seeds on the same spaces would do: they reduce the part of the deviation that is of seeds."""
    between = estimate.deviation**2 - estimate.within / max(1, estimate.seeds)
    for seeds in (2**k * estimate.seeds for k in range(1, 8)):
        deviation = float(np.sqrt(max(0.0, between) + estimate.within / seeds)) * estimate.widening
        if statistics.visible(deviation, estimate.count, level) <= abs(estimate.value):
            return f"or {seeds:,} seeds in place of {estimate.seeds:,}"
    return "and more seeds alone would not"


def _why_not(estimate: MeanEstimate, alike: Sequence[str]) -> str:
    if estimate.units == "seeds" and estimate.count < 2:
        return "one seed"
    if estimate.units == "seeds" and alike:
        return f"{' and '.join(alike)} made the same run with every seed"
    return "the difference is the same everywhere" if np.isnan(estimate.p) else ""


def _signed(value: float) -> str:
    return f"{value:+.1%}"
