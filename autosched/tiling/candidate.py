"""`Candidate`: a plan and a row without a time."""

from __future__ import annotations

from dataclasses import dataclass

from autosched.tiling.plans.plan import Plan
from autosched.tiling.space.schedule import Schedule


@dataclass(frozen=True)
class Candidate:
    """A plan and the id of a row of its space. `analytic_s` and `predicted_s` are what the models said of it."""

    plan: Plan
    row: int
    analytic_s: float | None = None
    predicted_s: float | None = None

    @property
    def key(self) -> str:
        """What identifies the candidate in a study: `plan name#row`."""
        return f"{self.plan.name}#{self.row}"

    @property
    def schedule(self) -> Schedule:
        return self.plan.space.schedule(self.row)
