"""Software prefetch: of the operand that streams through the depth loop, and of the output tile."""

from __future__ import annotations

from autosched.tiling.nest import Nest
from autosched.tiling.step import Decision, Step
from autosched.tiling.steps.names import StepNames

DISTANCES = (0, 8)


def prefetch(nest: Nest, names: StepNames) -> Step:
    """`prefetch`: how many depth units ahead the held operand is asked for (0: not); `prefetch_out`: whether the output
    tile is asked for before its reduction starts."""
    decisions = [Decision(names("prefetch_out"), (0, 1), ("no", "yes"))]
    if nest.depth is not None and nest.lanes:
        decisions.insert(0, Decision(names("prefetch"), tuple(d for d in DISTANCES if d < nest.depth.units or d == 0)))
    return Step("prefetch", tuple(decisions))
