"""What `match` says of stages that no instruction takes as they stand, and one does once an operand is computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autosched.ir.program import Program
from autosched.tensorize.adapters.factored import ELSEWHERE
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Match
from autosched.tiling.variants.adapted import computed_beforehand

_MOST_NAMED = 4


@dataclass(frozen=True)
class Beforehand:
    """`operands` are what is computed, in words, and `instructions` those that take what is left; `named` of `tune`'s
    plans."""

    stage: str
    operands: tuple[str, ...]
    named: tuple[str, ...]
    instructions: tuple[str, ...]

    @property
    def text(self) -> str:
        shown = ", ".join(self.instructions[:_MOST_NAMED])
        more = len(self.instructions) - _MOST_NAMED
        takes = f"{shown} takes" if len(self.instructions) == 1 else f"{shown} take"
        takes = f"{shown} and {more} more take" if more > 0 else takes
        return f"`tune` computes an operand first or on the way ({'; '.join(self.operands)}); {takes} the rest"

    @property
    def data(self) -> dict[str, object]:
        return {"operands": list(self.operands), "adapters": list(self.named), "instructions": list(self.instructions)}


def beforehand(
    program: Program, stages: Iterable[str], matches: Sequence[Match], intrinsics: Sequence[Intrinsic], numerics: str
) -> dict[str, Beforehand]:
    """Of these stages, which no instruction takes, those that one does in that way."""
    found = {}
    for stage in stages:
        made = computed_beforehand(program, stage, matches, intrinsics, numerics)
        if made is None:
            continue
        fitting = (m for m in made.matches if any(not n.conditions for n in m.mappings))
        names = sorted({m.intrinsic.name: m.intrinsic.portable for m in fitting}.items(), key=lambda n: n[1])
        proved = [o.statement for how in made.stages.values() for o in how.certificate.obligations]
        operands = tuple(s.removesuffix(ELSEWHERE) for s in proved if s.endswith(ELSEWHERE))
        found[stage] = Beforehand(stage, operands, made.adapters, tuple(name for name, _ in names))
    return found
