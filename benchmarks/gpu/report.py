"""What the rounds say: ours against each library, as ratios of neighbours in time, and as JSON with versions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from benchmarks.gpu.bundle import Bundle, Compared, Problem, Recorded

SCHEMA = "autosched/benchmark-cuda/1"


def result_of(problem: Problem, recorded: Recorded) -> dict[str, Any]:
    """One case: times in seconds, operations a second, `ratios` of a library's time to ours (above 1 ours wins).
    `whole`: every element that the fastest wrote was compared."""
    failed: dict[str, int] = {}
    for o in recorded.outcomes:
        if o.status != "ok":
            failed[o.status] = failed.get(o.status, 0) + 1
    ours = [c for c in recorded.rounds if c.name.startswith("ours") and c.seconds]
    best = min(ours, key=lambda c: median(c.seconds), default=None)
    found: dict[str, Any] = {
        "name": problem.name,
        "sizes": problem.sizes,
        "trials": len(recorded.outcomes),
        "failed": failed,
        "seconds_on_card": round(recorded.seconds, 1),
        "versions": recorded.versions,
        "whole": recorded.whole,
        "errors": {c.name: c.error for c in recorded.rounds if c.error},
    }
    if best is None:
        return found
    number = int(best.name.split()[-1])
    entry, outcome = problem.entries[number], recorded.outcomes[number]
    clocks = {k: outcome.extra[k] for k in ("sm_mhz", "memory_mhz", "power_w", "temperature_c") if k in outcome.extra}
    others = [c for c in recorded.rounds if c.seconds and not c.name.startswith("ours")]
    return found | {
        "plan": entry.plan,
        "row": entry.row,
        "time_s": median(best.seconds),
        "tops": problem.operations / median(best.seconds) / 1e12,
        "clocks": clocks,
        "peers": {c.name: {"time_s": median(c.seconds), "tops": _tops(problem, c)} for c in others},
        "ratios": {c.name: median(p / o for p, o in zip(c.seconds, best.seconds, strict=True)) for c in others},
    }


def as_text(recorded: Sequence[tuple[Problem, Recorded]]) -> str:
    """A line a case, then geometric means by group, type and library."""
    results = [result_of(problem, one) for problem, one in recorded]
    lines = []
    ratios: dict[tuple[str, str], list[float]] = {}
    for r in results:
        shown = ", ".join(f"{n} {v:.3f}" for n, v in r.get("ratios", {}).items()) or "nothing to compare"
        lines.append(f"{r['name']:<28} {r.get('tops', 0.0):8.1f} Top/s  {shown}  failed {r['failed'] or 0}")
        for name, value in r.get("ratios", {}).items():
            ratios.setdefault((r["name"].rsplit("/", 1)[0], name), []).append(value)
    for (group, name), values in ratios.items():
        lines.append(f"{group} against {name}: geometric mean {geometric_mean(values):.3f} of {len(values)}")
    return "\n".join(lines)


def write_results(path: Path, bundle: Bundle, recorded: Sequence[Recorded]) -> None:
    """Add the cases to a JSON file of results; a case that it holds already is replaced."""
    problems = {p.name: p for p in bundle.problems}
    kept = {r["name"]: r for r in json.loads(path.read_text())["cases"]} if path.exists() else {}
    kept |= {r.name: result_of(problems[r.name], r) for r in recorded}
    path.write_text(json.dumps({"schema": SCHEMA, "cases": list(kept.values())}, indent=1) + "\n")


def _tops(problem: Problem, compared: Compared) -> float:
    return problem.operations / median(compared.seconds) / 1e12
