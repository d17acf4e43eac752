"""What `match` and `tune` say of products that instructions which multiply matrices take in other types than the
program's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.tensorize.adapters.operand_types import multiplies_matrices
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Match
from autosched.tiling.steps import is_gpu
from autosched.tiling.variants.adapted import Variant, held_in_types
from autosched.tiling.variants.products import is_product


def types_needed(
    program: Program, matches: Sequence[Match], intrinsics: Sequence[Intrinsic], target: Target, numerics: str
) -> Iterator[str]:
    """Of a GPU, a line for each product that no instruction takes which multiplies matrices: in which types one does,
    and which level of numerics that needs."""
    if program.symbolic or not is_gpu(target):
        return
    here = Variant(program, tuple(matches))
    for stage in program.stages:
        known = [m for found in matches if found.stage == stage.name for m in found.mappings]
        if not is_product(stage) or any(multiplies_matrices(m.intrinsic) for m in known):
            continue
        for level in dict.fromkeys((numerics, "real")):
            held = next(held_in_types(here, stage.name, intrinsics, level), None)
            if held is not None:
                how = ", ".join(held.adapters)
                needed = "" if level == numerics else f"; that needs --numerics {level}"
                yield f"stage {stage.name}: instructions that multiply matrices take it with {how}{needed}"
                break
