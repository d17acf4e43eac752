"""`NotRewritten`: why a rewrite does not apply, with a code that programs can read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

CODES = {  # docs/fusion.md has them in a table
    "NOT_SEPARABLE": "no factor takes the term from one reference to another",
    "NOT_DISTRIBUTIVE": "the factor does not go through the reduction, or not from its start",
    "CAST": "a rounding inside depends on the reference",
    "DEPENDS": "the stages need another order, a result of another row or all of a result first, or have other bounds; "
    "a loop keeps its order; or several statements write one tensor and something else could tell its values apart",
    "NOT_SINGLE": "the condition may hold for several numbers of the loop",
    "NOT_NEUTRAL": "the term adds something where the condition fails",
    "UNSUPPORTED": "the rewrite knows no way",
}


@dataclass
class NotRewritten(Exception):
    """`stage` is the one it fails at; `counterexample` are numbers that show it, where there are some; `unknown` says
    that nothing was refuted; `level` is the level of numerics at which the rewrite is proved, None where none helps."""

    code: str
    message: str
    stage: str
    counterexample: dict[str, Any] | None = None
    unknown: bool = field(default=False)
    level: str | None = None

    def __post_init__(self) -> None:
        assert self.code in CODES
        super().__init__(self.message)
