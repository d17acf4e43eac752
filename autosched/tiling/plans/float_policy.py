"""What scalar stages may change of a float's bits: the numerics level of a study, as far as a plan needs it."""

from __future__ import annotations

from dataclasses import dataclass, field

from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.formula import Formulas
from autosched.machine.target import Target

FUSING = frozenset({"fma", "asimd"})
"""Features that bring a multiplication and an addition in one instruction: x86's FMA, and the vectors of AArch64."""


F32 = DTYPES["f32"]


@dataclass(frozen=True)
class FloatPolicy:
    """`reassociate`: float sums in any order, and products fused with additions; `formulas`: approximations of a stated
    bound in place of library calls. Neither at `bitwise`. Sums in floats of a smaller range than f32's keep their order
    always: 65504 is soon exceeded on another way to a number that is none too large."""

    reassociate: bool = True
    formulas: Formulas = field(default_factory=dict)

    def reorders(self, op: str, dtype: DType) -> bool:
        """Whether the terms of an update `op` may come in any order: integers wrap, extremes are exact."""
        if op in ("min=", "max="):
            return True
        wide = dtype.exponent >= F32.exponent
        return op in ("+=", "-=", "*=") and (dtype.is_integer or (self.reassociate and wide))


def fuses(target: Target) -> bool:
    """Whether the target multiplies and adds in one instruction."""
    return bool(FUSING & target.features) or target.backend.fuses
