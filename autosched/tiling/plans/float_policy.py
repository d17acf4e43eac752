"""What scalar stages may change of a float's bits: the numerics level of a study, as far as a plan needs it."""

from __future__ import annotations

from dataclasses import dataclass, field

from autosched.ir.dtypes import DType
from autosched.ir.formula import Formulas
from autosched.machine.target import Target

FUSING = frozenset({"fma", "asimd"})
"""Features that bring a multiplication and an addition in one instruction: x86's FMA, and the vectors of AArch64."""


@dataclass(frozen=True)
class FloatPolicy:
    """`reassociate`: float sums in any order, and products fused with additions; `formulas`: approximations of a stated
    bound in place of library calls. Neither at `bitwise`."""

    reassociate: bool = True
    formulas: Formulas = field(default_factory=dict)

    def reorders(self, op: str, dtype: DType) -> bool:
        """Whether the terms of an update `op` may come in any order: integers wrap, extremes are exact."""
        return op in ("min=", "max=") or (op in ("+=", "-=", "*=") and (dtype.is_integer or self.reassociate))


def fuses(target: Target) -> bool:
    """Whether the target multiplies and adds in one instruction."""
    return bool(FUSING & target.features) or target.backend.fuses
