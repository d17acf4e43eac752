"""States of an accelerator that are read before they are set: an instruction whose loads the chip does not have."""

from __future__ import annotations

from collections.abc import Sequence

from autosched.errors import NoScheduleError
from autosched.machine.target import Target
from autosched.tensorize.held import not_set
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tiling.planner.scheme import scheme_of
from autosched.tiling.plans.units import AcceleratorUnits


def refuse_unset(intrinsics: Sequence[Intrinsic], target: Target, units: AcceleratorUnits) -> None:
    """NoScheduleError for an instruction of the chip that reads a state which none of its copies loads: with its file,
    the operand, and what would mend it."""
    if scheme_of(target) != "spatial":
        return
    own = [i for i in intrinsics if i.isa == target.isa and i.held]
    if (found := not_set([*own, *units.copies])) is not None:
        reader, _, said, mend = found
        raise NoScheduleError(f"{reader.path}: {reader.name}: {said}, on {target.name}", hint=mend)
