"""What a part with an instruction writes to memory, behind its fused stages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from autosched.ir.dtypes import DType
from autosched.logic import Int, Var
from autosched.logic.walk import substitute_int

if TYPE_CHECKING:
    from autosched.tiling.plans.plan import TensorPart


@dataclass(frozen=True)
class OutputAccess:
    """A tensor, its type, and its subscripts in terms of the nest's program axes. `again`: a stage behind writes what
    another one behind has written."""

    tensor: str
    dtype: DType
    index: tuple[Int, ...]
    again: bool = False


def output_accesses(part: TensorPart) -> tuple[OutputAccess, ...]:
    """The tensors that a part writes to memory: its own where it is kept, then those of stages behind it."""
    own, tensors = part.nest.stage.assign, part.nest.mapping.program.tensors
    found: dict[str, OutputAccess] = {}
    if part.keep:
        found[own.tensor] = OutputAccess(own.tensor, tensors[own.tensor].dtype, _plain(own.index, {}))
    for fused in part.epilogue:
        name, here = fused.stage.assign.tensor, {consumer: Var(producer) for consumer, producer in fused.axes.items()}
        if name != own.tensor:
            index = _plain(fused.stage.assign.index, here)
            found[name] = OutputAccess(name, tensors[name].dtype, index, again=name in found)
    return tuple(found.values())


def _plain(index: tuple[object, ...], here: dict[str, Var]) -> tuple[Int, ...]:
    return tuple(substitute_int(i, here) for i in index if isinstance(i, Int))
