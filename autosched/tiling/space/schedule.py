"""`Schedule`: one row of a space, named."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """`values` maps each decision to its value, in the space's order; `named` is the same with labels."""

    row: int
    values: dict[str, int]
    named: dict[str, int | str]

    def __str__(self) -> str:
        return "  ".join(f"{k}={v}" for k, v in self.named.items())
