"""A kernel beside the peak of the fastest instruction that fits, and what is said where it is above that."""

from __future__ import annotations

from pathlib import Path

from autosched.ir.work import operations, within_peak
from autosched.search.tuning.study import Best
from autosched.search.tuning.tune import Tuning


def peak_lines(tuning: Tuning, best: Best) -> list[str]:
    """The share of the peak; and where that is more than there can be, why."""
    ratio = _share(tuning, best)
    if ratio is None or tuning.peak is None:
        return []
    native = tuning.request.target.name == "native"
    whose = "measured on this machine" if native else f"stated by {tuning.request.target.name}"
    lines = [f"{ratio:.0%} of the peak of {tuning.peak[0]} {whose}"]
    if within_peak(ratio):
        return lines
    if "level" in best.trial.measurement.extra:
        why = "the time is corrected for a machine that had changed, and was not measured again"
    elif best.candidate.plan.rewrites:
        why = "rewrites save operations that the program as it is written has, or the machine was slowed before"
    elif native:
        why = "something slowed the machine when the peak was measured; the next run measures it again"
    else:
        why = "the machine is faster than its target states"
    return [*lines, f"more than there can be: {why}"]


def forget_slow_peak(tuning: Tuning, best: Best, peaks: Path) -> None:
    """Remove the file of measured peaks where a kernel shows that they were measured on a slowed machine."""
    ratio = _share(tuning, best)
    exact = not best.candidate.plan.rewrites and "level" not in best.trial.measurement.extra
    if ratio is not None and not within_peak(ratio) and exact and tuning.request.target.name == "native":
        peaks.unlink(missing_ok=True)


def _share(tuning: Tuning, best: Best) -> float | None:
    """None where there is no peak of the machine that the study ran on."""
    backend = tuning.request.target.backend
    if not tuning.peak or not backend.is_cpu or tuning.study.record.device != backend.device:
        return None
    return operations(tuning.request.program) / best.time_s / tuning.peak[1]
