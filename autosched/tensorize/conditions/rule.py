"""`GroupRule`: what each group of neighbours of one operand may add up to, whatever the other operands hold.

It is weaker than any range of all elements, and dearer to look at: a check of constant data affords it, once.
"""

from __future__ import annotations

from dataclasses import dataclass

from autosched.ir.value import Read, Value


@dataclass(frozen=True)
class GroupRule:
    """Within each tile along the instruction's `axis`, the `low` values of each of `groups` (coordinates) sum to at
    least `limits[0]` and the `high` values to at most `limits[1]`. Both are values of `read`, an element of one tensor
    in the program's axes: the least and the greatest that its term may add, zero included."""

    read: Read
    axis: str
    groups: tuple[tuple[int, ...], ...]
    limits: tuple[int, int]
    low: Value
    high: Value

    def __str__(self) -> str:
        count = len(self.groups[0])
        return f"no {count} neighbours of {self.read.tensor} can leave {self.limits[0]} to {self.limits[1]}"
