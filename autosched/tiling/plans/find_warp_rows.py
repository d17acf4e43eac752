"""Which tensors of a body the warps that share its rows may hold in registers (`warp_rows.WarpRows`).

From a product's sums on, every stage hands its rows and columns to what it writes. A tensor that something touches at
another place than the lane's own element, or an operand of which a lane would want what another has, is held by nobody.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np

from autosched.ir.nodes import Stage
from autosched.ir.value import Read
from autosched.logic import TRUE, Const, Int, Var, evaluate, free_vars
from autosched.logic.walk import substitute_int
from autosched.tensorize.fragment import Fragment
from autosched.tiling.analysis.accesses import all_reads
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.plan import (
    FusedLoopsPart,
    LiteralPart,
    Part,
    ScalarPart,
    TensorPart,
    TileLoopsPart,
    WarpCooperativePart,
)
from autosched.tiling.plans.scalar_parts import is_constant
from autosched.tiling.plans.teams import plain_stage, summed
from autosched.tiling.plans.warp_rows import (
    FragmentStage,
    RowProduct,
    Spread,
    WarpRows,
    policy_of,
    stages_of,
)

WARPS = (1, 2, 4, 8)
"""Among which, or among as many warpgroups, the rows of a body may be split."""
SCOPES = ("warp", "warpgroup")
"""Of instructions whose sums lie over several threads."""
MOST_HELD = 192
"""32-bit registers of a thread for what is held, were all of it there at once."""
MOST_ELEMENTS = 1 << 15
"""Of all fragments that cover a tensor: so many owners are compared."""
MOST_BESIDE = 3
"""Products of a body of which each may also leave its sums elsewhere."""
COORDINATES = 2
"""Of a fragment's elements: rows and columns."""


def warp_rows(loops: TileLoopsPart) -> WarpRows | None:
    """How the body of tile loops may keep in registers what its rows are made of: the way that keeps the most there.
    None where no product's fragments are handed on, or outlive an iteration."""
    if warp_rows not in loops.cache:
        loops.cache[warp_rows] = _most(loops)
    found: WarpRows | None = loops.cache[warp_rows]
    return found


def _most(loops: TileLoopsPart) -> WarpRows | None:
    products = [p for p in loops.member.parts if isinstance(p, TensorPart) and p.scheme == "gpu" and _whole(p.nest)]
    found = (
        _Body(loops, products, (first, *beside), along).rows()
        for first in products
        for beside in _subsets([p for p in products if p is not first])
        for along in range(COORDINATES)
    )
    kept = [rows for rows in found if rows is not None]
    return max(kept, key=lambda r: (sum(len(p.taken) for p in r.products), len(r.held)), default=None)


def _subsets(parts: Sequence[TensorPart]) -> Iterator[tuple[TensorPart, ...]]:
    """All of them first; of many no others."""
    for count in reversed(range(len(parts) + 1)):
        if count == len(parts) or len(parts) <= MOST_BESIDE:
            yield from combinations(parts, count)


def rows_inside(loops: TileLoopsPart) -> Iterator[WarpRows]:
    """Those of tile loops and of the ones in their body."""
    own = warp_rows(loops)
    if own is not None:
        yield own
    for part in loops.member.parts:
        if isinstance(part, TileLoopsPart):
            yield from rows_inside(part)


class _Body:
    """One orientation of a body: the rows are those of the accumulators of `leaving`, along one of their coordinates.
    Others of its `products` may take operands from registers."""

    def __init__(
        self, loops: TileLoopsPart, products: Sequence[TensorPart], leaving: Sequence[TensorPart], along: int
    ) -> None:
        self.loops, self.program, self.along = loops, loops.member.program, along
        self.scope = leaving[0].nest.intrinsic.scope
        self.lanes = loops.member.target.backend.threads_of(self.scope)
        self.fragment = self._accumulators(leaving[0])
        self.parts = loops.member.parts
        self.products: dict[int, RowProduct] = {}
        self.extent = 0
        for part in leaving:
            self._join(part)
        self.others = [p for p in products if id(p) not in self.products]
        self.candidates = {n for n, t in self.program.tensors.items() if t.intermediate or self._carried(n)}
        self.spreads: dict[str, Spread] = {}
        self.excluded: set[str] = set()

    def _join(self, part: TensorPart) -> None:
        """Take a product in whose accumulators lie like the first one's, and have as many rows."""
        nest, own = part.nest, self._accumulators(part)
        out = nest.intrinsic.accumulator
        if id(part) in self.products or nest.intrinsic.scope != self.scope:
            return
        if own.shape != self.fragment.shape or (own.owners[0] != self.fragment.owners[0]).any():
            return
        of = {a.intrinsic_axis: a for a in nest.lanes}
        names = nest.intrinsic.operand_axes[out.name]
        if len(names) != COORDINATES or not all(n in of for n in names) or len(out.shape) != COORDINATES:
            return
        rows, columns = of[names[self.along]], of[names[1 - self.along]]
        single = all(len(a.members) == 1 and a.members[0][1] == 0 for a in (rows, columns))
        pieces = zip((rows, columns), (own.shape[self.along], own.shape[1 - self.along]), strict=True)
        if any(a.units * a.unit - a.extent >= size for a, size in pieces):  # some would lie beside the tensor
            return
        if single and self.extent in (0, rows.extent):
            self.extent = rows.extent
            self.products[id(part)] = RowProduct(part, rows, columns)

    def _accumulators(self, part: TensorPart) -> Fragment:
        """A piece of a product's accumulators."""
        return Fragment(part.nest.intrinsic.accumulator, self.lanes).piece

    def _carried(self, name: str) -> bool:
        """Whether a parameter of the body is the same in all iterations, and written."""
        window = self.loops.windows.get(name)
        return window is not None and name in self.program.written and not self.loops.moving(window)

    # -- which stages, which tensors -----------------------------------------------------------------------------------

    def rows(self) -> WarpRows | None:
        wide = self.fragment.shape[1 - self.along] if self.products else 0
        if not self.products or self.extent <= 1 or wide & (wide - 1):  # lanes of a row add up in pairs
            return None
        self._spread()
        while True:
            stages = self._stages()
            wrong = self._misused(stages)
            if not wrong:
                break
            self.excluded |= wrong
            for name in wrong:
                self.spreads.pop(name, None)
        taken = {p.taken[o] for p in self._with_operands() for o in p.taken}
        carried = frozenset(n for n in self.spreads if not self.program.tensors[n].intermediate)
        if not (taken or carried or stages):
            return None
        products = tuple(p for p in self._with_operands() if self._touches(p) or p.taken)
        held, lie = dict(self.spreads), (self.scope, self.fragment, self.along, self.extent)
        made = WarpRows(self.loops, *lie, products, stages, held, carried)
        splits = tuple(n for n in WARPS if self._splits(made, n))
        return replace(made, splits=splits) if splits and products else None

    def _touches(self, product: RowProduct) -> bool:
        tensors = {r.tensor for s in product.part.computed_stages for r in (s.target, *all_reads(s))}
        return bool(tensors & self.spreads.keys())

    def _spread(self) -> None:
        """Give every tensor that can have one its distribution, from the products' results on."""
        for product in self.products.values():
            names = product.kinds
            assert product.columns is not None
            self._give(product.part.nest.stage.target, names, product.columns.extent)
            for fused in product.part.epilogue:
                own = {mine: names[theirs] for mine, theirs in fused.axes.items() if theirs in names}
                self._give(fused.stage.target, own, product.columns.extent)
        known = -1
        while known != len(self.spreads):
            known = len(self.spreads)
            for part in self.parts:
                for stage in stages_of(part):
                    found = self._row_stage(stage)
                    if found is not None:
                        kinds = {found.rows: "rows"} | ({found.columns: "columns"} if found.columns else {})
                        axis = found.column_axis
                        self._give(stage.target, kinds, axis.extent if axis else 1)

    def _give(self, target: Read, kinds: Mapping[str, str], columns: int) -> None:
        """A distribution for what is written, if it may be held and is one row, or one row and column of so many, an
        element."""
        name = target.tensor
        if name in self.spreads or name in self.excluded or name not in self.candidates:
            return
        places: dict[str, int] = {}
        for dim, part in enumerate(target.index):
            kind = kinds.get(part.name) if isinstance(part, Var) else None
            if kind is not None and kind not in places:
                places[kind] = dim
            elif self.program.tensors[name].extents[dim] != 1:
                return
        tensor = self.program.tensors[name]
        if "rows" not in places or tensor.extents[places["rows"]] != self.extent or tensor.dtype.sub_byte:
            return
        if "columns" not in places or tensor.extents[places["columns"]] == columns:
            self.spreads[name] = Spread(tensor, places["rows"], places.get("columns"))

    def _row_stage(self, stage: Stage) -> FragmentStage | None:
        """The stage's axes of rows and columns, where it touches what is spread, and only so."""
        if not plain_stage(self.program, stage) or not all(is_constant(a) for a in stage.axes):
            return None
        wide = {a.name: a for a in stage.axes if a.extent > 1}
        rows: set[str] = set()
        columns: set[str] = set()
        for place in (stage.target, *all_reads(stage)):
            spread = self.spreads.get(place.tensor)
            if spread is None:
                continue
            for dim, part in enumerate(place.index):
                if dim == spread.rows or dim == spread.columns:
                    extent = spread.tensor.extents[dim]
                    if not isinstance(part, Var) or (part.name in wide and wide[part.name].extent != extent):
                        return None
                    (rows if dim == spread.rows else columns).add(part.name)
        others = wide.keys() - rows
        columns |= others
        if len(rows) != 1 or len(columns) > 1 or rows & columns or not rows <= wide.keys():
            return None
        (row,) = rows
        column = next(iter(columns), None)
        axes = [wide[row], *([wide[column]] if column in wide else [])]
        if any(a.lower != Const(0) for a in axes) or wide[row].extent != self.extent:
            return None
        found = FragmentStage(stage, row, column if column in wide else None)
        if not self._written_plainly(stage, row, column) or (found.reduces and not self._in_one_warp):
            return None
        return found

    @cached_property
    def _in_one_warp(self) -> bool:
        """Whether each row of a fragment lies in one warp, whose lanes alone shuffle: one of 64 rows by 8 columns lies
        in four warps along its columns, where the program's rows are those."""
        shape = self.fragment.shape
        warps = self.fragment.owners[0].reshape(shape) // self.loops.member.target.backend.threads_of("warp")
        rows = warps if self.along == 0 else warps.T
        return bool((rows == rows[:, :1]).all())

    def _written_plainly(self, stage: Stage, row: str, column: str | None) -> bool:
        """Whether each row (and column) writes an element of its own, which it alone reads of that tensor."""
        index = stage.target.index
        spatial = {a.name for a in stage.spatial if a.extent > 1}
        subscripts = {p.name for p in index if isinstance(p, Var)}
        varying = {n for p in index if isinstance(p, Int) for n in free_vars(p)} & {row, column}
        own = all(r.index == index for r in all_reads(stage) if r.tensor == stage.assign.tensor)
        return row in subscripts and spatial == varying <= subscripts and own

    def _stages(self) -> dict[str, FragmentStage]:
        """The stages without an instruction that touch what is spread."""
        found = {}
        for part in self.parts:
            for stage in stages_of(part):
                if self._tensors(stage) & self.spreads.keys():
                    row = self._row_stage(stage)
                    if row is not None and self._reorders(part, row):
                        found[stage.name] = row
        return found

    @staticmethod
    def _reorders(part: Part, row: FragmentStage) -> bool:
        """Whether lanes may share what a row is reduced to."""
        policy = policy_of(part)
        return policy is not None and (not row.reduces or summed(row.stage, policy))

    @staticmethod
    def _tensors(stage: Stage) -> set[str]:
        return {stage.assign.tensor, *(r.tensor for r in all_reads(stage))}

    def _misused(self, stages: Mapping[str, FragmentStage]) -> set[str]:
        """The tensors that something touches where other lanes, or nobody, may have them."""
        wrong: set[str] = set()
        spread = self.spreads.keys()
        for part in self.parts:
            product = self.products.get(id(part)) or next((t for t in self._takers() if t.part is part), None)
            if product is not None:
                wrong |= self._misused_by(product)
            elif isinstance(part, ScalarPart | WarpCooperativePart):
                own = stages_of(part)
                if not all(s.name in stages for s in own):  # a part is computed in fragments, or is as it was
                    wrong |= {n for s in own for n in self._tensors(s)} & spread
            else:
                wrong |= self._touched(part) & spread
        return wrong

    def _misused_by(self, product: RowProduct) -> set[str]:
        """What a product touches in another way than as its sums, its fused stages' elements, or proved operands."""
        part, stage = product.part, product.part.nest.stage
        wrong = {n for n, s in self.spreads.items() if s.columns is None and n in self._tensors(stage)}
        names = product.kinds
        operands = part.nest.mapping.operands
        places = [(t, operands[o].index) for o, t in self._operands(product).items()]
        for read in all_reads(stage):
            sums = read.tensor == stage.assign.tensor and read.index == stage.assign.index
            if read.tensor in self.spreads and not sums and (read.tensor, read.index) not in places:
                wrong.add(read.tensor)
        wrong |= self._elsewhere(stage.target, names)
        for fused in part.epilogue:
            own = {mine: names[theirs] for mine, theirs in fused.axes.items() if theirs in names}
            for place in (fused.stage.target, *all_reads(fused.stage)):
                wrong |= self._elsewhere(place, own)
        return wrong

    def _elsewhere(self, place: Read, kinds: Mapping[str, str]) -> set[str]:
        """The tensor of an access that is not the element of its own row and column; nothing where it is."""
        spread = self.spreads.get(place.tensor)
        if spread is None:
            return set()
        asked = {spread.rows: "rows", spread.columns: "columns"}
        for dim, part in enumerate(place.index):
            if dim in asked and not (isinstance(part, Var) and kinds.get(part.name) == asked[dim]):
                return {place.tensor}
        return set()

    def _touched(self, part: Part) -> set[str]:
        """The tensors that a part of another kind touches."""
        match part:
            case TileLoopsPart():
                return {w.tensor for w in part.windows.values()}
            case TensorPart():
                stages: Sequence[Stage] = part.computed_stages
            case FusedLoopsPart():
                stages = [m.stage for m in part.members]
            case LiteralPart():
                stages = [s for s in self.program.stages if s.name in part.stages]
            case _:
                stages = stages_of(part)
        return {n for s in stages for n in self._tensors(s)}

    # -- operands ------------------------------------------------------------------------------------------------------

    def _operands(self, product: RowProduct) -> dict[str, str]:
        """The operands of a product that are spread, and may be filled from registers by their addresses."""
        nest = product.part.nest
        found: dict[str, str] = {}
        for operand in nest.intrinsic.inputs:
            tensor = nest.mapping.operands[operand.name].tensor
            spread = self.spreads.get(tensor)
            own = tensor == nest.stage.assign.tensor
            if spread is None or spread.columns is None or operand.name in nest.computed or own:
                continue
            plain = not operand.dtype.sub_byte and not operand.in_fields and operand.copies == 1
            known = operand.fragment is not None and plain and nest.depth is not None
            rows = [a for a in nest.operand_axes(operand.name) if not a.reduction and a.extent > 1]
            if known and rows == [product.rows] and nest.guarded[operand.name] == TRUE:
                found[operand.name] = tensor
        of = list(found.values())
        return {o: t for o, t in found.items() if of.count(t) == 1 and self._gives_some(product, o, t)}

    def _gives_some(self, product: RowProduct, operand: str, tensor: str) -> bool:
        return any(self._gives(product, operand, self.spreads[tensor], warps) for warps in WARPS)

    def _takers(self) -> Iterator[RowProduct]:
        """Products whose sums lie elsewhere, and an operand of which has the body's rows in registers."""
        for part in (p for p in self.others if p.nest.intrinsic.scope == self.scope):
            for operand in part.nest.intrinsic.inputs:
                rows = [a for a in part.nest.operand_axes(operand.name) if not a.reduction and a.extent > 1]
                if len(rows) == 1 and rows[0].extent == self.extent:
                    product = RowProduct(part, rows[0], None)
                    if operand.name in (taken := self._operands(product)):
                        yield replace(product, taken=taken)
                        break

    def _with_operands(self) -> list[RowProduct]:
        return [*(replace(p, taken=self._operands(p)) for p in self.products.values()), *self._takers()]

    def _splits(self, rows: WarpRows, warps: int) -> bool:
        """Whether so many warps may share the rows, each lane with what it takes, and have the registers."""
        units = -(-self.extent // rows.row_unit)
        if units % warps or rows.registers(warps) > MOST_HELD:
            return False
        return all(
            self._gives(p, operand, self.spreads[tensor], warps)
            for p in rows.products
            for operand, tensor in p.taken.items()
        )

    def _gives(self, product: RowProduct, operand: str, spread: Spread, warps: int) -> bool:
        """Whether each lane holds all that its fragments of an operand want, where so many warps share the rows."""
        nest, wanted = product.part.nest, product.part.nest.intrinsic.operands[operand]
        tall, wide = self.fragment.shape[self.along], self.fragment.shape[1 - self.along]
        if product.rows.units % warps or -(-self.extent // tall) % warps:
            return False
        axes = nest.operand_axes(operand)
        if prod(a.units for a in axes) * wanted.elements > MOST_ELEMENTS:
            return False
        *units, element = np.meshgrid(*(np.arange(a.units) for a in axes), np.arange(wanted.elements), indexing="ij")
        lanes = nest.lane_coordinates(operand, Var("e"))
        inside = {n: np.asarray(evaluate(c, {"e": element})) for n, c in lanes.items()}
        places = {a.name: np.zeros_like(element) for a in nest.axes}
        real = np.ones_like(element, dtype=bool)
        taker = np.zeros_like(element)
        for axis, unit in zip(axes, units, strict=True):
            places[axis.name] = unit * axis.unit + inside.get(axis.intrinsic_axis or "", 0)
            real &= places[axis.name] < axis.extent
            if axis is product.rows:
                taker = unit // (axis.units // warps)
        at = nest.at({a.name: Var(a.name) for a in nest.axes})
        index = [np.asarray(evaluate(substitute_int(i, at), places)) for i in _plain(nest.mapping.operands[operand])]
        row, column = index[spread.rows], index[spread.columns or 0]
        inner = (row % tall, column % wide) if self.along == 0 else (column % wide, row % tall)
        number = inner[0] * self.fragment.shape[1] + inner[1]
        tiles = -(-self.extent // tall) // warps
        have = row // tall // tiles * self.lanes + self.fragment.owners[0][number]
        want = taker * self.lanes + Fragment(wanted, self.lanes).owners[0][element]
        return bool((have == want)[real].all())


def _plain(read: Read) -> list[Int]:
    return [i for i in read.index if isinstance(i, Int)]


def _whole(nest: Nest) -> bool:
    """Whether its tiles are a warp's or a warpgroup's whose lanes are known, one block has them, and all their elements
    count."""
    return (
        nest.intrinsic.scope in SCOPES
        and nest.intrinsic.accumulator.fragment is not None
        and nest.written == TRUE
        and nest.accumulate_mask == TRUE
        and all(a is nest.depth or a.units == 1 for a in nest.reduction)
        and all(a.intrinsic_axis is not None or a.units == 1 for a in nest.spatial)
    )
