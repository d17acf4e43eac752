"""What a model says of a kernel."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Estimate:
    """`seconds` by cause (how long a unit was busy), and `total`; `moved`: for each top-level statement the bytes that
    pass each level of memory."""

    seconds: dict[str, float]
    moved: tuple[dict[str, float], ...]
