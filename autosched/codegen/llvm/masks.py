"""Which lanes are wanted: an i1 vector, and the formula behind it where there is one.

With the formula a load can ask again about some of its lanes: a group of bytes under `4 * k + lane % 4 < K` needs four
truth values, not sixty-four.
"""

from __future__ import annotations

from dataclasses import dataclass

from autosched.codegen import workarounds
from autosched.logic import Bool


@dataclass(frozen=True, slots=True)
class Mask:
    """`name` is an i1 vector; `formula` says the same of the lane variable, None where data decide."""

    name: str
    formula: Bool | None


@workarounds.ONLY_LANE
def only_lane(name: str) -> int | None:
    """The one lane of a constant mask, None for other masks.

    >>> only_lane("<i1 false, i1 true>"), only_lane("<i1 true, i1 true>"), only_lane("%m.3")
    (1, None, None)
    """
    lanes = [part.split()[-1] == "true" for part in name.strip("<>").split(",")] if name.startswith("<") else []
    return lanes.index(True) if sum(lanes) == 1 else None
