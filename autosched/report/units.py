"""How long each unit of a simulated machine was busy in a trial, and what share of the trial's time that is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autosched.report.text import seconds

FULL = 0.85
"""Share of the time from which on one unit bounds a trial."""
NO_UNITS = ("total", "on_core", "energy")
"""What a model says beside its units."""


def units_of(extra: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Of a simulated trial's `extra`: for each unit `busy_s`, and its `use`, the share of the model's time; longest
    first. Empty for trials that ran."""
    model = extra.get("model_s", {})
    total = model.get("total", 0.0)
    busy = sorted(((name, s) for name, s in model.items() if name not in NO_UNITS and s > 0), key=lambda n: -n[1])
    return {name: {"busy_s": s, "use": s / total} for name, s in busy} if total > 0 else {}


def units_lines(extra: Mapping[str, Any]) -> list[str]:
    """What bounds a simulated trial, and its units, as a line; none for trials that ran."""
    units = units_of(extra)
    if not units:
        return []
    first, most = next(iter(units.items()))
    bound = f"bound by {first}" if most["use"] >= FULL else "no unit is busy throughout: they wait for each other"
    return [f"units {bound}: " + "  ".join(f"{n} {seconds(u['busy_s'])} ({u['use']:.0%})" for n, u in units.items())]


def statements_of(extra: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Of a trial on a simulated accelerator, for what it does to write tensors: `writes`, the `instructions` for it,
    `seconds` and their `share`, and `units`, seconds by unit. Empty for others."""
    total = extra.get("model_s", {}).get("total", 0.0)
    return [{**s, "share": s["seconds"] / total} for s in extra.get("statements", ())] if total > 0 else []


def _by_hand(units: Mapping[str, float]) -> str:
    """Who does what no instruction does."""
    return next((unit for unit in ("host", "vector") if units.get(unit)), "numbers of commands")


def statements_lines(extra: Mapping[str, Any]) -> list[str]:
    """The statements of such a trial with their instructions, and the unit that each keeps busy longest; none where
    there is one alone."""
    found = statements_of(extra)
    if len(found) < 2:
        return []
    rows = [(", ".join(s["writes"]), ", ".join(s["instructions"]) or _by_hand(s["units"]), s) for s in found]
    wide = [max(len(row[k]) for row in rows) for k in (0, 1)]
    lines = []
    for written, by, s in rows:
        unit, busy = max(s["units"].items(), key=lambda item: item[1], default=("", 0.0))
        most = f", busiest {unit} ({busy / s['seconds']:.0%})" if s["seconds"] > 0 and unit else ""
        lines.append(f"{written:{wide[0]}}  {by:{wide[1]}}  {seconds(s['seconds'])} ({s['share']:.0%}){most}")
    return lines
