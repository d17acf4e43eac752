"""What a program assumes of its parameters."""

from __future__ import annotations

from math import ceil, floor

from autosched.ir.program import Program


def assumed_range(program: Program, name: str) -> tuple[float | None, float | None]:
    """The range that all assumptions about `name` leave; None is unbounded."""
    low: float | None = None
    high: float | None = None
    for a in program.assumptions:
        if a.subject == name:
            low = a.low if low is None or (a.low is not None and a.low > low) else low
            high = a.high if high is None or (a.high is not None and a.high < high) else high
    return low, high


def integer_range(program: Program, name: str) -> tuple[int, int]:
    """The least and the greatest integer that a tensor's dtype and all assumptions allow."""
    (least, most), (low, high) = program.tensors[name].dtype.limits, assumed_range(program, name)
    return least if low is None else max(least, ceil(low)), most if high is None else min(most, floor(high))


def is_free(program: Program, name: str) -> bool:
    """Whether nothing is assumed or known of a tensor's values."""
    return name not in program.data and assumed_range(program, name) == (None, None)
