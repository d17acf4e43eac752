"""Cost models side by side: their figures over several spaces, and how far each is from the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from autosched.errors import UsageError
from autosched.report import statistics
from autosched.report.differences import FEW_SEEDS, StrategyDifference, differences, family
from autosched.report.exchange import three
from autosched.report.over_spaces import FEW
from autosched.report.statistics import Floats, Interval
from autosched.search.evaluate.model_quality import FIGURES, Evaluated

TESTED = "best_8"
"""The figure that is tested: a batch of `tune` is eight rows. The others are described."""
_NAMES = {"best_1": "best@1", "best_8": "best@8", "recall": "recall@16"}


@dataclass(frozen=True)
class ModelsCompared:
    """Figures by model, over `spaces` and seeds where there are several spaces, and differences from the first."""

    chosen: str
    spaces: int
    seeds: int
    figures: dict[str, dict[str, Interval]]
    differences: tuple[StrategyDifference, ...]

    def told(self) -> list[str]:
        """A line for each difference, what was tested, and what would decide what is undecided."""
        over = f"{self.seeds} seeds, paired" if self.spaces == 1 else f"{self.spaces} spaces and {self.seeds} seeds"
        more = [f"undecided: {d.strategy} - {d.baseline}: {d.more}" for d in self.differences if d.more]
        tested = family(self.differences, over)
        few = [FEW] if 1 < self.spaces < statistics.FEWEST and self.differences else []
        few += [FEW_SEEDS] if self.spaces == 1 < self.seeds < statistics.FEWEST and self.differences else []
        return [*map(str, self.differences), *([tested] if tested else []), *more, *few]

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        figures = {model: {n: three(i) for n, i in of.items()} for model, of in self.figures.items()}
        compared = [
            {
                "model": d.strategy,
                "baseline": d.baseline,
                "figure": d.outcome,
                "difference": three(d.difference),
                "superiority": d.superiority,
                "p": d.p,
                "untested": d.untested,
                "more": d.more,
            }
            for d in self.differences
        ]
        return {
            "chosen": self.chosen,
            "spaces": self.spaces,
            "seeds": self.seeds,
            "models": figures,
            "differences": compared,
        }


def models_compared(spaces: Sequence[Sequence[Evaluated]]) -> ModelsCompared:
    """Put evaluations together, those of one space in each sequence, of the same models in the same order, after rows
    that one strategy chose with the same seeds. Raises UsageError where they differ."""
    first = spaces[0]
    asked = [[(e.model, e.chosen, e.measured, e.seeds) for e in space] for space in spaces]
    if any(one != asked[0] for one in asked):
        raise UsageError("the spaces were judged with other models, rows or seeds")
    figures: dict[str, dict[str, Interval]] = {}
    tested: dict[str, list[Floats]] = {}
    for number, model in enumerate(e.model for e in first):
        values = {name: [np.array(space[number].values[name]) for space in spaces] for name in FIGURES}
        known = {n: v for n, v in values.items() if all(np.isfinite(x).all() for x in v)}
        least = {"spearman": -1.0, "kendall": -1.0}
        estimates = {n: statistics.estimate(v, np.random.default_rng(0)) for n, v in known.items()}
        figures[model] = {n: e.interval.within(least.get(n, 0.0), 1.0) for n, e in estimates.items()}
        if TESTED in known:
            tested[model] = values[TESTED]
    baseline = first[0].model
    compared = differences(tested, baseline, _NAMES[TESTED], 0) if baseline in tested else ()
    return ModelsCompared(first[0].chosen, len(spaces), len(first[0].seeds), figures, compared)
