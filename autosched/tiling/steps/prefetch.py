"""Software prefetch: of the operand that streams through the depth loop, and of the output tile."""

from __future__ import annotations

from autosched.tiling.nest import Nest
from autosched.tiling.step import Decision, Step
from autosched.tiling.steps.layout import tensor_elements
from autosched.tiling.steps.names import StepNames

NEAR, FAR = 8, 64
"""Depth units ahead: what comes from the second level of cache, and what streams from memory. On a Zen 5 core a tile of
8 x 48 over 16 rows and a matrix of 64 MiB gains 14 % by FAR and nothing by NEAR; tiles of few rows lose as much."""
STREAMED_BYTES = 4 << 20
"""An operand of more than that is taken to come from memory."""


def streams(nest: Nest) -> bool:
    """Whether an operand is so large that it is taken to come from memory."""
    sizes = (tensor_elements(nest, o.name) * o.dtype.bytes for o in nest.intrinsic.inputs)
    return max(sizes) > STREAMED_BYTES


def prefetch(nest: Nest, names: StepNames) -> Step:
    """`prefetch`: how many depth units ahead the operand on the lanes is asked for (0: not); `prefetch_out`: whether
    the output tile is asked for before its reduction starts."""
    decisions = [Decision(names("prefetch_out"), (0, 1), ("no", "yes"))]
    if nest.depth is not None and nest.lanes:
        distance = FAR if streams(nest) else NEAR
        decisions.insert(0, Decision(names("prefetch"), (0, distance) if distance < nest.depth.units else (0,)))
    return Step("prefetch", tuple(decisions))
