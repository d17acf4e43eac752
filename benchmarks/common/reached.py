"""In which spaces a strategy is near the optimum after some trials, in a sentence for the documentation."""

from __future__ import annotations

import numpy as np

from autosched.report.text import counted
from benchmarks.common.search_table import SPACES, Kept

TRIALS, NEAR = 32, 0.01
"""What is asked of `auto` where the clock is good."""


def behind(
    kept: Kept, strategy: str = "auto", trials: int = TRIALS, near: float = NEAR
) -> tuple[int, dict[str, float]]:
    """Of how many spaces with a clock there are runs so long, and in which of them the median regret, over the seeds
    that the strategy has, is above `near` after so many trials: the furthest behind first."""
    long = {n: s for n, s in kept.items() if s.clock and s.runs.get(strategy) and trials in s.checkpoints}
    at = {n: s.checkpoints.index(trials) for n, s in long.items()}
    median = {n: float(np.median([r.regret[at[n]] for r in s.runs[strategy].values()])) for n, s in long.items()}
    return len(long), {n: m for n, m in sorted(median.items(), key=lambda pair: -pair[1]) if m > near}


def reached_markdown(kept: Kept) -> str:
    """The sentence; empty where there are no such runs."""
    spaces, far = behind(kept)
    if not spaces:
        return ""
    which = ", ".join(f"{SPACES.get(n, f'`{n}`')} ({m:.1%})".replace("%", " %") for n, m in far.items())
    not_in = f"; not in {which}" if far else ""
    near = f"After {TRIALS} trials `auto` is within {NEAR:.0%}".replace("%", " %")
    many = f"{spaces - len(far)} of {counted(spaces, 'space')} with a clock"
    return f"{near} of the optimum (median over seeds) in {many}{not_in}."
