"""What a product leaves in its fragments and another takes as an operand from the same registers.

A warp's accumulators and an operand of a later product name elements of the same tensor. Where as many warps share its
rows in both, it is looked at element by element whether the lane that needs one is the lane that has it. Accumulators
of m16n8k16 hold what operand `a` wants of them and, where the later product is transposed, what `b` wants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
import numpy.typing as npt

from autosched.ir.nodes import Assign
from autosched.ir.program import Program
from autosched.ir.value import Index
from autosched.logic import TRUE, Int, Var, evaluate, free_vars
from autosched.logic.walk import substitute_int
from autosched.tensorize.intrinsic import Operand
from autosched.tiling.analysis.accesses import all_reads
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.plan import Part, TensorPart

WARPS = (1, 2, 4, 8)
"""Among which the rows of a block may be split."""
MOST_HELD = 64
"""Elements of the tensor that a thread holds beside the sums of the product that reads it."""
MOST_ELEMENTS = 1 << 14
"""Of all fragments that cover it: so many owners are compared."""
LANES = 32

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RowSplit:
    """So many `warps`, of which each has `made` tiles of the first product along one axis and `taken` tiles of the
    second along another; the other axes are not split."""

    warps: int
    along: NestAxis
    made: int
    rows: NestAxis
    taken: int


@dataclass(frozen=True)
class HandedOn:
    """`tensor`, which `maker` leaves and `taker` takes as its `operand`, by any of `splits`. `dims` names the axis of
    the maker that each of its dimensions is (None: one element)."""

    tensor: str
    maker: TensorPart
    taker: TensorPart
    operand: str
    dims: tuple[NestAxis | None, ...]
    splits: tuple[RowSplit, ...] = field(default=())

    def fragment_index(self, split: RowSplit, index: Sequence[Int]) -> tuple[tuple[Int, ...], Int]:
        """Which of a warp's tiles has an element of the tensor, and where in its fragment (row-major)."""
        nest = self.maker.nest
        at = {a.name: i for a, i in zip(self.dims, index, strict=True) if a is not None}
        tiles = []
        for axis in nest.lanes:
            unit = at[axis.name] // axis.unit  # beyond the last where the taker's tiles reach further
            tiles.append(unit % (split.made if axis is split.along else axis.units))
        out = nest.intrinsic.accumulator
        inside = {a.intrinsic_axis: at[a.name] % a.unit for a in nest.lanes}
        number: Int | None = None
        for name, extent in zip(nest.intrinsic.operand_axes[out.name], out.shape, strict=True):
            number = inside[name] if number is None else number * extent + inside[name]
        assert number is not None
        return tuple(tiles), number

    def registers(self, split: RowSplit) -> int:
        """32-bit registers that it takes of a thread."""
        bits = self.maker.nest.mapping.program.tensors[self.tensor].dtype.bits
        return -(-prod(self.shape(split)) // (split.warps * LANES) * bits // 32)

    def shape(self, split: RowSplit) -> tuple[int, ...]:
        """Of the registers that hold it: warps, a warp's tiles along each axis, elements of one."""
        nest = self.maker.nest
        counts = (split.made if a is split.along else a.units for a in nest.lanes)
        return (split.warps, *counts, nest.intrinsic.accumulator.elements)


def handed_on(program: Program, parts: Sequence[Part]) -> list[HandedOn]:
    """What products of one body may hand on to others in registers."""
    products = [p for p in parts if isinstance(p, TensorPart) and p.scheme == "gpu"]
    found: list[HandedOn] = []
    for number, maker in enumerate(products):
        made = left_by(maker)
        if made is None or not _made_once(program, made.tensor):
            continue
        for taker in products[number + 1 :]:
            operand = _operand(taker.nest, made.tensor)
            readers = [s.name for s in program.stages for r in all_reads(s) if r.tensor == made.tensor]
            if operand is None or readers != [taker.nest.stage.name]:
                continue
            dims = dims_of(maker.nest, made.index)
            splits = splits_of(maker.nest, made, taker.nest, operand) if dims is not None else ()
            if dims is not None and splits:
                found.append(HandedOn(made.tensor, maker, taker, operand, dims, splits))
    return found


def left_by(part: TensorPart) -> Assign | None:
    """What a product leaves in memory, in its own axes: its sums, or what the only fused stage makes of them."""
    own = part.nest.stage.assign
    if not part.epilogue:
        return own
    if part.keep or len(part.epilogue) > 1:
        return None
    (last,) = part.epilogue
    target = last.stage.assign
    if target.tensor == own.tensor or last.stage.guards or not all(isinstance(i, Int) for i in target.index):
        return None
    axes: dict[str, Int] = {mine: Var(theirs) for mine, theirs in last.axes.items()}
    index = tuple(substitute_int(i, axes) for i in target.index if isinstance(i, Int))
    return Assign(target.tensor, index, target.op, target.value, target.location)


def _made_once(program: Program, tensor: str) -> bool:
    """Whether it is an intermediate that one stage writes."""
    writers = [s for s in program.stages if s.assign.tensor == tensor]
    if not program.tensors[tensor].intermediate or len(writers) != 1:
        return False
    return writers[0].assign.op == "=" or writers[0].init is not None


def _operand(nest: Nest, tensor: str) -> str | None:
    """The operand that is this tensor, where just one is."""
    found = [o.name for o in nest.intrinsic.inputs if nest.mapping.operands[o.name].tensor == tensor]
    return found[0] if len(found) == 1 and found[0] not in nest.computed else None


def dims_of(nest: Nest, index: Sequence[Index]) -> tuple[NestAxis | None, ...] | None:
    """The nest's axis that each subscript is; None where one is anything else."""
    of = {a.members[0][0]: a for a in nest.spatial if len(a.members) == 1 and a.members[0][1] == 0}
    dims: list[NestAxis | None] = []
    for part in index:
        if isinstance(part, Var) and part.name in of and of[part.name] not in dims:
            dims.append(of[part.name])
        elif isinstance(part, Int) and all(n in of and of[n].extent == 1 for n in free_vars(part)):
            dims.append(None)
        else:
            return None
    return tuple(dims) if all(a in dims for a in nest.lanes) else None


def splits_of(maker: Nest, made: Assign, taker: Nest, operand: str) -> tuple[RowSplit, ...]:
    """The splits by which each lane of the taker finds in its own registers what it needs."""
    if not (_whole(maker) and _whole(taker)) or taker.guarded[operand] != TRUE or taker.depth is None:
        return ()
    out, wanted = maker.intrinsic.accumulator, taker.intrinsic.operands[operand]
    read = taker.mapping.operands[operand].index
    if out.fragment is None or wanted.fragment is None or wanted.dtype.sub_byte:
        return ()
    rows = [a for a in taker.operand_axes(operand) if not a.reduction and a.extent > 1]
    mine = maker.lanes
    each = prod(a.units for a in mine) * out.elements
    if len(rows) != 1 or each > MOST_ELEMENTS or set(maker.intrinsic.operand_axes[out.name]) - {
        a.intrinsic_axis for a in mine
    }:
        return ()
    extents = maker.mapping.program.tensors[made.tensor].extents
    source, target = _Fragments(maker, out, made.index, extents), _Fragments(taker, wanted, read, extents)
    found: list[RowSplit] = []
    for axis in mine:
        for warps in WARPS:
            if axis.units % warps or rows[0].units % warps or each > MOST_HELD * LANES * warps:
                continue
            if source.give(target, axis, rows[0], warps):
                found.append(RowSplit(warps, axis, axis.units // warps, rows[0], rows[0].units // warps))
    first = {s.warps: s for s in reversed(found)}
    return tuple(first[warps] for warps in sorted(first))


def _whole(nest: Nest) -> bool:
    """Whether its tiles are a warp's, one block has them, and all their elements count."""
    return (
        nest.intrinsic.scope == "warp"
        and nest.written == TRUE
        and nest.accumulate_mask == TRUE
        and all(a is nest.depth or a.units == 1 for a in nest.reduction)
        and all(a.intrinsic_axis is not None or a.units == 1 for a in nest.spatial)
    )


class _Fragments:
    """An operand's fragments over all tiles: which lane of which tile has which element of a tensor."""

    def __init__(self, nest: Nest, operand: Operand, index: Sequence[Index], extents: Sequence[int]) -> None:
        axes = nest.spatial if operand is nest.intrinsic.accumulator else nest.operand_axes(operand.name)
        self.units: dict[str, Numbers] = {}
        *units, element = np.meshgrid(*(np.arange(a.units) for a in axes), np.arange(operand.elements), indexing="ij")
        lanes = nest.lane_coordinates(operand.name, Var("e"))
        inside = {n: np.asarray(evaluate(c, {"e": element})) for n, c in lanes.items()}
        places = {a.name: np.zeros_like(element) for a in nest.axes}
        real = np.ones_like(element, dtype=bool)
        for axis, unit in zip(axes, units, strict=True):
            self.units[axis.name] = unit
            places[axis.name] = unit * axis.unit + inside.get(axis.intrinsic_axis or "", 0)
            real &= places[axis.name] < axis.extent
        at = nest.at({a.name: Var(a.name) for a in nest.axes})
        self.number = np.zeros_like(element)
        for part, extent in zip(index, extents, strict=True):
            assert isinstance(part, Int)
            self.number = self.number * extent + np.asarray(evaluate(substitute_int(part, at), places))
        self.lane, self.real = owners(operand)[0][element], real

    def give(self, other: _Fragments, along: NestAxis, rows: NestAxis, warps: int) -> bool:
        """Whether all that the other wants is where it wants it, with these axes split among so many warps."""
        here = self.units[along.name] // (along.units // warps) * LANES + self.lane
        there = other.units[rows.name] // (rows.units // warps) * LANES + other.lane
        if len(np.unique(self.number[self.real])) != int(self.real.sum()):
            return False  # an element has two places
        holder = np.full(int(max(self.number.max(), other.number.max())) + 1, -1)
        holder[self.number[self.real]] = here[self.real]
        return bool((holder[other.number[other.real]] == there[other.real]).all())


def owners(operand: Operand) -> tuple[Numbers, Numbers]:
    """The lane that holds each element of a fragment, by its row-major number, and its number among that lane's."""
    assert operand.fragment is not None
    t, v = np.meshgrid(np.arange(LANES), np.arange(operand.elements // LANES), indexing="ij")
    number = np.zeros_like(t)
    for coordinate, extent in zip(operand.fragment.coordinates, operand.shape, strict=True):
        number = number * extent + np.asarray(evaluate(coordinate, {"t": t, "v": v}))
    lane, own = np.full(operand.elements, -1), np.full(operand.elements, -1)
    lane[number], own[number] = t, v
    return lane, own
