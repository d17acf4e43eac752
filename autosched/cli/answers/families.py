"""What `tune` says of the families of plans that were considered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from autosched.cli.answers.forms import SAME
from autosched.numerics_levels import MEANING, NUMERICS_LEVELS
from autosched.report.text import compared, counted
from autosched.search.tuning.families import PlanFamily


def family_lines(found: Sequence[PlanFamily], done: int) -> list[str]:
    """A line for each family: how far it is from the best, and how many of the trials it had; or why it has no plan."""
    return [f"{f.name}: {_said(f, done)}" for f in found]


def level_lines(found: Sequence[PlanFamily]) -> list[str]:
    """A line for each weaker level of numerics that would open families of plans."""
    opened: dict[str, list[str]] = {}
    for family in found:
        if family.level is not None:
            opened.setdefault(family.level, []).append(family.name)
    return [
        f"--numerics {level} ({MEANING[level]}) opens further plans: {', '.join(names)}"
        for level, names in sorted(opened.items(), key=lambda item: NUMERICS_LEVELS.index(item[0]))
    ]


def families_json(found: Sequence[PlanFamily]) -> dict[str, Any]:
    """The field `families` of `tune --json`, where there are several."""
    return {"families": [asdict(f) for f in found]} if found else {}


def _said(family: PlanFamily, done: int) -> str:
    if family.reason:
        return f"no plan: {family.reason}"
    said = [_far(family.measured, "the best", "as measured"), _far(family.clock, "best by the clock", "by the clock")]
    trials = f"{family.trials} of {counted(done, 'trial')}" + (f", {family.failed} failed" if family.failed else "")
    return ", ".join([*filter(None, said), trials])


def _far(ratio: float | None, best: str, how: str) -> str:
    if ratio is None:
        return ""
    return best if ratio <= SAME else f"{compared(1 / ratio)} the best {how}"
