"""What a program assumes of its parameters."""

from __future__ import annotations

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
