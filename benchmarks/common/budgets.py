"""How far `auto` is ahead of every other strategy up to stated budgets, where there is no clock: over all spaces, and
family by family. A family is the kernel: the first word of a space's name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from autosched.report.differences import StrategyDifference, differences
from autosched.report.statistics import Interval, spanned
from benchmarks.common.search_table import LABELS, Kept

BUDGETS = (32, 64, 150)


def known(kept: Kept, clock: bool = False) -> tuple[list[str], list[str], list[int]]:
    """Spaces with a clock, or without, that have performances up to the BUDGETS; the strategies that all of them have;
    the seeds that all of these have."""
    names = [n for n, s in kept.items() if s.clock == clock and s.runs and set(BUDGETS) <= set(s.checkpoints)]
    if not names:
        return [], [], []
    strategies = [s for s in kept[names[0]].runs if all(s in kept[n].runs for n in names)]
    seeds = set.intersection(*(kept[n].seeds(s) for n in names for s in strategies)) if strategies else set()
    return names, strategies, sorted(seeds)


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


def budgets_markdown(kept: Kept) -> str:
    """The table of `auto`'s leads, the closest first, what they say in a sentence, and the table of families; empty
    where no results have these budgets."""
    names, strategies, seeds = known(kept)
    by_budget = {budget: leads(kept, budget) for budget in BUDGETS}
    others = sorted((s for s in strategies if s != "auto"), key=lambda s: by_budget[BUDGETS[-1]][s].difference.value)
    if not others or not seeds:
        return ""
    head = [f"`auto` less, {len(names)} spaces, {len(seeds)} seeds", *(f"up to {n} trials" for n in BUDGETS)]
    rows = [head, ["---"] * len(head)]
    for name in others:
        leads_of = (by_budget[n][name].difference for n in BUDGETS)
        rows.append([LABELS.get(name, f"`{name}`"), *(spanned(i, "{:+.3f}".format) for i in leads_of)])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{table}\n\n{_sentence(by_budget, others)}\n\n{_families(kept, others, seeds)}\n"


def _sentence(by_budget: dict[int, dict[str, StrategyDifference]], others: Sequence[str]) -> str:
    parts = []
    for budget, found in by_budget.items():
        open_ = [s for s in others if not found[s].difference.low > 0]
        ahead = f"{len(others) - len(open_)} of {len(others)}"
        which = f" (not of {', '.join(f'`{s}`' for s in open_)})" if open_ else ""
        parts.append(f"up to {budget} trials of {ahead}{which}")
    return f"`auto` is ahead, its interval over spaces above 0, {', '.join(parts)}."


def _families(kept: Kept, others: Sequence[str], seeds: Sequence[int]) -> str:
    """Performance of `auto` in each family, and of the best of the others there."""
    head = ["family", *(f"`auto`, best other up to {n}" for n in BUDGETS)]
    rows = [head, ["---"] * len(head)]
    for family, names in families(kept).items():
        cells = []
        for budget in BUDGETS:
            mean = {s: float(np.mean([until(kept, n, s, seeds, budget) for n in names])) for s in ["auto", *others]}
            best = max(others, key=lambda s: mean[s])
            cells.append(f"{mean['auto']:.3f}, {mean[best]:.3f} (`{best}`)")
        rows.append([f"{family} ({len(names)} spaces)", *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
