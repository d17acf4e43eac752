"""How far `auto` is ahead of every other strategy up to stated budgets, where there is no clock: over all spaces, and
family by family. A family is the kernel: the first word of a space's name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from autosched.report.differences import StrategyDifference, differences
from autosched.report.statistics import Interval, spanned
from benchmarks.common.search_table import LABELS, Kept, Score

BUDGETS = (32, 64, 150)


def budgets_of(kept: Kept, clock: bool) -> tuple[int, ...]:
    """Those of the BUDGETS that all spaces with a clock, or without, have."""
    each = [set(s.checkpoints) for s in kept.values() if s.clock == clock and s.runs]
    return tuple(n for n in BUDGETS if each and all(n in checkpoints for checkpoints in each))


def known(kept: Kept, clock: bool = False) -> tuple[list[str], list[str], list[int]]:
    """Spaces with a clock, or without, whose runs have performances up to budgets; the strategies that all of them
    have; the seeds that all of these have."""
    names = [n for n, s in kept.items() if s.clock == clock and s.runs and all(r.until for r in _first_runs(kept, n))]
    if not names:
        return [], [], []
    strategies = [s for s in kept[names[0]].runs if all(s in kept[n].runs for n in names)]
    seeds = set.intersection(*(kept[n].seeds(s) for n in names for s in strategies)) if strategies else set()
    return names, strategies, sorted(seeds)


def _first_runs(kept: Kept, name: str) -> list[Score]:
    return [next(iter(by_seed.values())) for by_seed in kept[name].runs.values() if by_seed]


def until(kept: Kept, name: str, strategy: str, seeds: Sequence[int], budget: int) -> list[float]:
    """Performances up to a budget, by seed."""
    space = kept[name]
    at = space.checkpoints.index(budget)
    return [space.runs[strategy][seed].until[at] for seed in seeds]


def leads(kept: Kept, budget: int, clock: bool = False, baseline: str = "auto") -> dict[str, StrategyDifference]:
    """By strategy: `baseline` less it, with an interval over spaces and seeds; all of them one family of tests."""
    names, strategies, seeds = known(kept, clock)
    if baseline not in strategies or not seeds:
        return {}
    values = {s: [np.array(until(kept, n, s, seeds, budget)) for n in names] for s in strategies}
    found = differences(values, baseline, "performance", 0)
    return {d.strategy: replace(d, difference=_turned(d.difference)) for d in found}


def _turned(i: Interval) -> Interval:
    return Interval(-i.value, -i.high, -i.low)


def families(kept: Kept, clock: bool = False) -> dict[str, list[str]]:
    """The spaces of each family."""
    found: dict[str, list[str]] = {}
    for name in known(kept, clock)[0]:
        found.setdefault(name.partition("_")[0], []).append(name)
    return found


def budgets_markdown(kept: Kept, clock: bool = False) -> str:
    """The table of `auto`'s leads, the closest first, what they say in a sentence, and the table of families; empty
    where no results have these budgets."""
    names, strategies, seeds = known(kept, clock)
    by_budget = {budget: leads(kept, budget, clock) for budget in budgets_of(kept, clock)}
    last = max(by_budget, default=0)
    others = sorted((s for s in strategies if s != "auto"), key=lambda s: by_budget[last][s].difference.value)
    if not others or not seeds:
        return ""
    counted = f"{len(seeds)} seed{'s' if len(seeds) > 1 else ''}"
    head = [f"`auto` less, {len(names)} spaces, {counted}", *(f"up to {n} trials" for n in by_budget)]
    rows = [head, ["---"] * len(head)]
    for name in others:
        leads_of = (found[name].difference for found in by_budget.values())
        rows.append([LABELS.get(name, f"`{name}`"), *(spanned(i, "{:+.3f}".format) for i in leads_of)])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{table}\n\n{_sentence(by_budget, others)}\n\n{_families(kept, others, seeds, clock)}\n"


def _sentence(by_budget: dict[int, dict[str, StrategyDifference]], others: Sequence[str]) -> str:
    parts = []
    for budget, found in by_budget.items():
        open_ = [s for s in others if not found[s].difference.low > 0]
        ahead = f"{len(others) - len(open_)} of {len(others)}"
        which = f" (not of {', '.join(f'`{s}`' for s in open_)})" if open_ else ""
        parts.append(f"up to {budget} trials of {ahead}{which}")
    return f"`auto` is ahead, its interval over spaces above 0, {', '.join(parts)}."


def _families(kept: Kept, others: Sequence[str], seeds: Sequence[int], clock: bool) -> str:
    """Performance of `auto` in each family, and of the best of the others there."""
    budgets = budgets_of(kept, clock)
    head = ["family", *(f"`auto`, best other up to {n}" for n in budgets)]
    rows = [head, ["---"] * len(head)]
    for family, names in families(kept, clock).items():
        cells = []
        for budget in budgets:
            mean = {s: float(np.mean([until(kept, n, s, seeds, budget) for n in names])) for s in ["auto", *others]}
            best = max(others, key=lambda s: mean[s])
            cells.append(f"{mean['auto']:.3f}, {mean[best]:.3f} (`{best}`)")
        rows.append([f"{family} ({len(names)})", *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
