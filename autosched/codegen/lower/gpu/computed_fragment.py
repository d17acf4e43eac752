"""An operand of a GPU's instruction that is computed where fragments are loaded, straight from memory."""

from __future__ import annotations

from dataclasses import dataclass

from autosched.codegen.lower.common.context import Context
from autosched.codegen.lower.common.operands.sources import MemorySource
from autosched.codegen.lower.common.positions import Position, elements
from autosched.codegen.tree.kernel import Buffer
from autosched.codegen.tree.rename import place
from autosched.ir.value import Value
from autosched.logic import Bool, Int
from autosched.tiling.plans.nest import Nest
from autosched.tiling.steps.cpu.pack import DIRECT


@dataclass(frozen=True)
class ComputedFragment:
    """Each element is the value that the intermediate would have, of which nothing is stored; `stored` says where an
    element of it would be real."""

    nest: Nest
    operand: str
    stored: MemorySource

    @staticmethod
    def of(nest: Nest, operand: str, ctx: Context) -> ComputedFragment:
        """What it is computed from becomes part of the kernel."""
        for read in nest.computed[operand].sources:
            ctx.tensor(read.tensor)
        made = ctx.program.tensors[nest.mapping.operands[operand].tensor]
        buffer = Buffer(made.name, made.dtype, made.extents, "workspace", made.name)
        return ComputedFragment(nest, operand, MemorySource(nest, operand, DIRECT, buffer))

    def load(self, at: dict[str, Position], element: Int) -> tuple[Value, Bool]:
        """The value of register element `element` at a place, and under which condition it is real (else zero)."""
        _, valid = self.stored.load(at, element)
        axes = self.nest.at(elements(self.nest, at, self.nest.lane_coordinates(self.operand, element)))
        return place(self.nest.computed[self.operand].value, axes), valid
