"""Operands computed where registers are loaded: a value of elements from narrow panels, or from their tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from autosched.codegen.lower.common.context import Context
from autosched.codegen.lower.common.operands import MemorySource
from autosched.codegen.lower.common.panels import panel
from autosched.codegen.lower.common.positions import Position, elements
from autosched.codegen.tree.kernel import Buffer, Function
from autosched.codegen.tree.rename import place
from autosched.ir.value import Read, Value
from autosched.logic import Bool, Int, all_of
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.plan import TensorPart
from autosched.tiling.steps import DIRECT, PANEL, tiled_axes
from autosched.tiling.steps.common.computed import Source, group_units, sources


@dataclass(frozen=True)
class ComputedSource:
    """An operand's source that computes each element of `held`: what it is computed from, and where that lies."""

    nest: Nest
    operand: str
    held: Mapping[Read, tuple[Source, MemorySource]]

    def load(self, at: dict[str, Position], element: Int) -> tuple[Value, Bool]:
        """The value of register element `element` at a place, and under which condition it is real (else zero)."""
        axes = self.nest.at(elements(self.nest, at, self.nest.lane_coordinates(self.operand, element)))
        values: dict[Value, Value] = {}
        valid: list[Bool] = []
        for read, (source, memory) in self.held.items():
            values[place(read, axes)], real = memory.load(self.seen_by(source, at), element)
            valid.append(real)
        value = place(self.nest.computed[self.operand].value, axes, lambda r: values[r])
        return value, all_of(*valid)

    def seen_by(self, source: Source, at: dict[str, Position]) -> dict[str, Position]:
        """The place as a source's nest has it: with the number of the group in place of the depth unit."""
        depth = self.nest.depth
        if not source.grouped or depth is None:
            return at
        here = at[depth.name]
        group = here.unit // group_units(self.nest, self.operand) if here.group is None else here.group
        return at | {depth.name: Position(None, group)}


def computed_source(part: TensorPart, operand: str, ctx: Context) -> ComputedSource:
    """The source of an operand that is computed in the load; `prepare` functions fill its narrow panels."""
    nest = part.nest
    register = {a.name: ctx.values[part.names.register(a)] for a in tiled_axes(nest)}
    held: dict[Read, tuple[Source, MemorySource]] = {}
    for source in sources(nest, operand) or ():
        tensor = ctx.tensor(source.read.tensor)
        if source.panel:
            buffer, body = panel(source.nest, operand, register, tensor, ctx)
            buffer = ctx.buffers[buffer.name] = Buffer(buffer.name, buffer.dtype, buffer.shape, "packed", tensor.name)
            ctx.prepare.append(Function(f"prepare_{buffer.name}", (tensor.name, buffer.name), body))
            memory = MemorySource(source.nest, operand, PANEL, buffer)
        else:
            memory = replace(MemorySource(source.nest, operand, DIRECT, tensor), inside=True)
        held[source.read] = source, memory
    return ComputedSource(nest, operand, held)
