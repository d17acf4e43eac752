"""What a model says of a kernel."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class StatementTime:
    """Of the loops that end with these tensors in memory: the instructions that they issue, seconds from their first
    copy to their last store, and how long each unit was busy. Loops that only copy count to those behind them."""

    writes: tuple[str, ...] = ()
    instructions: tuple[str, ...] = ()
    seconds: float = 0.0
    units: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Estimate:
    """`seconds` by cause (how long a unit was busy), and `total`; `moved`: for each top-level statement the bytes that
    pass each level of memory; `statements`: of an accelerator, what it does for each tensor that reaches memory."""

    seconds: dict[str, float]
    moved: tuple[dict[str, float], ...]
    statements: tuple[StatementTime, ...] = ()
