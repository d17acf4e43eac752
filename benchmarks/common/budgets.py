"""How far `auto` is ahead of every other strategy up to stated budgets, where there is no clock: over all spaces, and
family by family. A family is the kernel: the first word of a space's name."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from autosched.report.differences import StrategyDifference, differences
from autosched.report.statistics import Interval, spanned
from autosched.report.text import counted
from benchmarks.common.search_table import LABELS, Kept, Score

BUDGETS = (32, 64, 150)
_FEW = 6  # strategies of which each is told space by space
_ALIKE = 1e-9


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


def shared(kept: Kept, strategies: Sequence[str], clock: bool = False) -> list[int]:
    """The seeds that all of these have in all spaces."""
    return sorted(set.intersection(*(kept[n].seeds(s) for n in known(kept, clock)[0] for s in strategies)))


def leads(
    kept: Kept, budget: int, clock: bool = False, baseline: str = "auto", but: Collection[int] = ()
) -> dict[str, StrategyDifference]:
    """By strategy: `baseline` less it, with an interval over spaces and over the seeds that both have, `but` some."""
    names, strategies, seeds = known(kept, clock)
    if baseline not in strategies or not seeds:
        return {}
    found = {}
    for other in (s for s in strategies if s != baseline):
        both = [seed for seed in shared(kept, [baseline, other], clock) if seed not in but]
        if both:
            values = {s: [np.array(until(kept, n, s, both, budget)) for n in names] for s in (baseline, other)}
            (d,) = differences(values, baseline, "performance", 0, tested=False)
            found[other] = replace(d, difference=_turned(d.difference))
    return found


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
    more = {s: len(both) for s in others if len(both := shared(kept, ["auto", s], clock)) > len(seeds)}
    what = f"`auto` less, {len(names)} spaces, {counted(len(seeds), 'seed')}"
    head = [what, *(f"up to {n} trials" for n in by_budget)]
    rows = [head, ["---"] * len(head)]
    for name in others:
        leads_of = (found[name].difference for found in by_budget.values())
        label = LABELS.get(name, f"`{name}`") + (f" ({more[name]} seeds)" if name in more else "")
        rows.append([label, *(spanned(i, "{:+.3f}".format) for i in leads_of)])
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    said = f"{_sentence(by_budget, others)}{_added(kept, list(by_budget), more, seeds, clock)}"
    if len(others) <= _FEW:
        said += f" {_spaces(kept, others, last, clock)}"
    return f"{table}\n\n{said}\n\n{_families(kept, others, clock)}\n"


def _added(kept: Kept, budgets: Sequence[int], more: Collection[str], seeds: Sequence[int], clock: bool) -> str:
    """What the seeds say alone that some strategies have beyond those of all; empty where none has."""
    alone = [leads(kept, n, clock, but=seeds) for n in budgets]
    parts = [f"`{s}` {', '.join(spanned(d[s].difference, '{:+.3f}'.format) for d in alone)}" for s in more]
    return f" The seeds alone that only some have: {'; '.join(parts)}." if parts else ""


def _sentence(by_budget: dict[int, dict[str, StrategyDifference]], others: Sequence[str]) -> str:
    parts = []
    for budget, found in by_budget.items():
        open_ = [s for s in others if not found[s].difference.low > 0]
        ahead = f"{len(others) - len(open_)} of {len(others)}"
        which = f" (not of {', '.join(f'`{s}`' for s in open_)})" if open_ else ""
        parts.append(f"up to {budget} trials of {ahead}{which}")
    return f"`auto` is ahead, its interval over spaces above 0, {', '.join(parts)}."


def _spaces(kept: Kept, others: Sequence[str], budget: int, clock: bool) -> str:
    """In how many spaces the mean of `auto` is greater and less than each other's, over the seeds that both have, and
    what would decide the differences that are open."""
    names, parts, more = known(kept, clock)[0], [], []
    for other in others:
        both = shared(kept, ["auto", other], clock)
        values = {s: [np.array(until(kept, n, s, both, budget)) for n in names] for s in ("auto", other)}
        less = [float(mine.mean() - its.mean()) for mine, its in zip(*values.values(), strict=True)]
        ahead, behind = sum(d > _ALIKE for d in less), sum(d < -_ALIKE for d in less)
        parts.append(f"`{other}` {ahead} and {behind}")
        (d,) = differences(values, "auto", "performance", 0)
        more += [f" `{other}`: {d.more}."] if d.more else []
    said = f"Spaces in which it has the greater and the lesser mean up to {budget} trials: {', '.join(parts)}."
    return said + "".join(more)


def _families(kept: Kept, others: Sequence[str], clock: bool) -> str:
    """Performance of `auto` in each family, and of the best of the others there, each over the seeds that it has."""
    of = {s: shared(kept, [s], clock) for s in ["auto", *others]}
    budgets = budgets_of(kept, clock)
    head = ["family", *(f"`auto`, best other up to {n}" for n in budgets)]
    rows = [head, ["---"] * len(head)]
    for family, names in families(kept, clock).items():
        cells = []
        for budget in budgets:
            mean = {s: float(np.mean([until(kept, n, s, of[s], budget) for n in names])) for s in of}
            best = max(others, key=lambda s: mean[s])
            cells.append(f"{mean['auto']:.3f}, {mean[best]:.3f} (`{best}`)")
        rows.append([f"{family} ({len(names)})", *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
