"""A simulated time, held to what the target's figures allow: less would be a mistake of the simulator's."""

from __future__ import annotations

from dataclasses import replace

from autosched.costmodel.analytic.limits import limit
from autosched.store.records import Measurement
from autosched.tiling.candidate import Candidate

ROUNDING = 1e-6
"""Share by which sums of floats may differ."""


def refuse_below_bound(measured: Measurement, candidate: Candidate) -> Measurement:
    """The measurement; `failed` where the model's own time (noise aside) is below the row's lower bound."""
    total = measured.extra.get("model_s", {}).get("total") if isinstance(measured.extra, dict) else None
    if not measured.ok or total is None:
        return measured
    plan = candidate.plan
    least = float(limit(plan, plan.space.values([candidate.row]), formulas=False)[0])
    if total >= least * (1 - ROUNDING):
        return measured
    said = f"simulated in {total * 1e6:.4g} µs, but by the target's figures its units are busy for {least * 1e6:.4g} µs"
    return replace(measured, status="failed", time_s=None, samples_s=(), spread=None, message=f"{said}: please report")
