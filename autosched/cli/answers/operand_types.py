"""What `tune` says of products that no plan has on an instruction that multiplies matrices."""

from __future__ import annotations

from autosched.search.tuning.tune import Tuning, usable
from autosched.tensorize.adapters.operand_types import multiplies_matrices
from autosched.tiling.variants.rounded import types_needed

TYPES_S = 5.0
"""What finding out in which types there is one may take."""


def type_lines(tuning: Tuning) -> list[str]:
    """In which types, and at which level of numerics, instructions of a GPU that multiply matrices would take them."""
    request = tuning.request
    if any(multiplies_matrices(m.intrinsic) for plan in tuning.plans for m in plan.mappings):
        return []

    def found() -> list[str]:
        offered = usable(request.catalogue, request.target, request.device, request.only)
        asked = request.program, tuning.matches, offered, request.target, request.numerics
        return list(types_needed(*asked))

    return tuning.deadline.within(TYPES_S, found) or []
