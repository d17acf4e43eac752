"""Where a tensorized nest reads its operands from: the tensor itself, a panel in order of use, or a copy of the tensor
in another shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from autosched.codegen.lower.common.context import Context
from autosched.codegen.lower.common.operands.copied_part import ALL, CopiedPart
from autosched.codegen.lower.common.operands.padded_copy import Copy, PaddedDimension, copy_shape
from autosched.codegen.lower.common.operands.panels import WHOLE, PanelPiece, TileRange, lanes_index, panel, panel_index
from autosched.codegen.lower.common.positions import Position, elements
from autosched.codegen.tree.kernel import Buffer, Function, Stmt
from autosched.codegen.tree.rename import place_index
from autosched.ir.value import Read, Value
from autosched.logic import TRUE, Bool, Const, Int, all_of
from autosched.logic.walk import substitute_bool
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.plan import TensorPart
from autosched.tiling.steps import (
    COLUMNS,
    DIRECT,
    INTERLEAVED,
    PADDED,
    PANEL,
    PANELS,
    Interleave,
    interleave,
    last_tiles,
    rounded,
    runs_on,
    spans,
    tiled_axes,
)


class OperandSource(Protocol):
    """Where an operand's registers are filled from."""

    def load(self, at: dict[str, Position], element: Int) -> tuple[Value, Bool]:
        """The value of register element `element` at a place, and under which condition it is real (else zero)."""
        ...


@dataclass(frozen=True)
class MemorySource:
    """One operand's memory. `kind` is one of the step `pack`; a PADDED or INTERLEAVED copy starts at `lows` of the
    tensor, `how` says what was interleaved, `part` which part of the tensor it holds at a time; `piece` is what a BLOCK
    panel holds; `inside`: the guard is known to hold; `whole`: axes whose last register is read whole from the tensor
    itself; `ends`: by axis, where registers that its end cuts come from."""

    nest: Nest
    operand: str
    kind: int
    buffer: Buffer
    lows: tuple[int, ...] = ()
    how: Interleave | None = None
    piece: PanelPiece = WHOLE
    inside: bool = False
    part: CopiedPart = ALL
    whole: frozenset[str] = frozenset()
    ends: Mapping[str, MemorySource] = field(default_factory=dict)

    def load(self, at: dict[str, Position], element: Int) -> tuple[Value, Bool]:
        """The value of register element `element` at a place, and under which condition it is real (else zero)."""
        for axis, end in self.ends.items():
            if at[axis].partial:
                return end.load(at, element)
        nest, read = self.nest, self.nest.mapping.operands[self.operand]
        lanes = nest.lane_coordinates(self.operand, element)
        dtype = self.buffer.dtype
        if self.kind in PANELS:
            index = panel_index(nest, self.operand, at, lanes_index(nest, self.operand, element), self.piece)
            return Read(self.buffer.name, index, dtype), TRUE
        positions = elements(nest, at, lanes)
        axes = nest.at(positions)
        mine = nest.operand_axes(self.operand)
        held = {self.how.axis} if self.how else set(self.whole)  # a copy has zeros past the end of these
        if self.kind in (PADDED, INTERLEAVED):
            held |= {a.name for a in rounded(nest, self.operand)}
        valid = [positions[a.name] < a.extent for a in mine if at[a.name].partial and a.name not in held]
        index = place_index(read.index, axes)
        if self.kind in (PADDED, INTERLEAVED):
            starts = self.part.starts(at)
            index = tuple(i - starts.get(d, low) for d, (i, low) in enumerate(zip(index, self.lows, strict=True)))
            if self.how:
                group, member = self.how.group(at[self.how.axis].unit, lanes, nest), self.how.member(lanes, nest)
                index = (*index[: self.how.dim], group, *index[self.how.dim + 1 :], member)
            index = (*self.part.owners, *index)
        elif not self.inside:
            still = {name: place for a in mine for name, place in a.unit_constant_axes(at[a.name].unit).items()}
            valid.append(substitute_bool(nest.guarded[self.operand], axes | still))
        return Read(self.buffer.name, index, dtype), all_of(*valid)


def source(
    part: TensorPart, operand: str, ctx: Context, piece: PanelPiece = WHOLE, copied_part: CopiedPart = ALL
) -> tuple[MemorySource, tuple[Stmt, ...]]:
    """The operand's source under the schedule, and the statements of the timed call that fill it: before the nest, or
    where a block of `piece` or a `copied_part` begins. A `const` operand is filled by a `prepare` function instead,
    outside that call."""
    nest, names = part.nest, part.names
    kind = ctx.values[names.pack(operand)]
    read = nest.mapping.operands[operand]
    if operand in nest.computed:
        for taken in nest.computed[operand].sources:
            ctx.tensor(taken.tensor)
        made = ctx.program.tensors[read.tensor]
        tensor = Buffer(made.name, made.dtype, made.extents, "workspace", made.name)  # of which nothing is stored
    else:
        tensor = ctx.tensor(read.tensor)
    if kind == DIRECT:
        ends, fills = _ends(part, operand, tensor, ctx)
        whole = frozenset(a.name for a in runs_on(nest, operand))
        return MemorySource(nest, operand, DIRECT, tensor, whole=whole, ends=ends), fills
    how = interleave(nest, operand) if kind == INTERLEAVED else None
    lows: tuple[int, ...] = ()
    piece = replace(piece, columns=kind == COLUMNS)
    if kind in PANELS:
        register = {a.name: ctx.values[names.register(a)] for a in tiled_axes(nest)}
        buffer, body = panel(nest, operand, register, tensor, ctx, piece)
    else:
        lows = tuple(min(0, low) for low, _ in spans(nest, operand, how.axis if how else None))
        buffer, body = copied(nest, operand, how, tensor, ctx, copied_part)
    const = operand not in nest.computed and (ctx.program.tensors[read.tensor].const or tensor.scope == "packed")
    if const:
        ctx.buffers[buffer.name] = Buffer(buffer.name, buffer.dtype, buffer.shape, "packed", tensor.name)
        ctx.prepare.append(Function(f"prepare_{buffer.name}", (tensor.name, buffer.name), body))
        body = ()
    return MemorySource(nest, operand, kind, ctx.buffers[buffer.name], lows, how, piece, part=copied_part), body


def _ends(
    part: TensorPart, operand: str, tensor: Buffer, ctx: Context
) -> tuple[dict[str, MemorySource], tuple[Stmt, ...]]:
    """Panels of the last register tile (or the last unit of the depth) along each axis whose end cuts a register that
    holds a matrix, and what fills them: such registers are not loaded lane by lane."""
    nest, names = part.nest, part.names
    register = {a.name: ctx.values[names.register(a)] for a in tiled_axes(nest)}
    ends, fills = dict[str, MemorySource](), list[Stmt]()
    for axis, size, full in last_tiles(nest, names, operand, ctx.values):
        piece = PanelPiece(spans={axis.name: TileRange(Const(full), Const(-(-axis.units // size)), 1)})
        buffer, body = panel(nest, operand, register, tensor, ctx, piece)
        ends[axis.name] = MemorySource(nest, operand, PANEL, buffer, piece=piece)
        fills += body
    return ends, tuple(fills)


def copied(
    nest: Nest, operand: str, how: Interleave | None, tensor: Buffer, ctx: Context, part: CopiedPart = ALL
) -> tuple[Buffer, tuple[Stmt, ...]]:
    """A copy in the tensor's own order of dimensions: the border that the guard leaves out holds zeros, and what `how`
    names is interleaved."""
    reached = spans(nest, operand, how.axis if how else None)
    cuts = []
    for d, ((low, high), real) in enumerate(zip(reached, tensor.shape, strict=True)):
        here = part.along.get(d)
        extent = (here.size, 0, here.size) if here else (high - min(0, low) + 1, min(0, low), real)
        cuts.append(PaddedDimension(*extent))
    name = f"{tensor.name}_{'groups' if how else 'padded'}"
    shape = (*((part.owner[1],) if part.owner else ()), *copy_shape(cuts, how))
    buffer = ctx.declare(name, tensor.dtype, shape, "workspace", tensor.name)
    return buffer, Copy(buffer, tensor, tuple(cuts), how, part.begins(), part.owners).statements()
