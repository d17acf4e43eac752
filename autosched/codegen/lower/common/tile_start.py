"""The start of a register tile: what its accumulators hold before the first call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from autosched.codegen.lower.common.fused_stages import fused_start
from autosched.codegen.lower.common.guarded_steps import (
    all_count,
)
from autosched.codegen.lower.common.positions import LANE
from autosched.codegen.lower.common.tile_places import Places, TilePlaces
from autosched.codegen.tree.kernel import Assign, If, Prefetch, Stmt
from autosched.codegen.tree.rename import place, place_index
from autosched.ir.value import Literal, Read, Select, Value
from autosched.logic import TRUE, Bool, Const, free_vars
from autosched.logic.walk import substitute_bool, substitute_int
from autosched.tiling.steps.cpu.prefetch import PREFETCH_OUT


@dataclass(frozen=True, eq=False)
class StartingTile(TilePlaces):
    """Emits what comes before a tile's reduction."""

    def prefetch_out(self, at: Places, counts: dict[str, int]) -> tuple[Stmt, ...]:
        if not PREFETCH_OUT.of(self.names, self.ctx.values):
            return ()
        axes, _ = self.output(at)
        target = self.nest.stage.assign
        first = tuple(substitute_int(i, {LANE: Const(0)}) for i in place_index(target.index, axes))
        return self.over(self.tiled, counts, (Prefetch(target.tensor, first, write=True),))

    def start(self, at: Places, counts: dict[str, int], first: Bool) -> tuple[Stmt, ...]:
        """Accumulators take the initial value on the first visit, the stored partial sums on later ones; none where
        the intrinsic overwrites them."""
        if not self.intrinsic.accumulates:
            self.ctx.tensor(self.nest.stage.assign.tensor)
            return ()
        return self.started(at, counts, first, lambda value: value)

    def drop(self, at: Places, counts: dict[str, int], first: Bool) -> tuple[Stmt, ...]:
        """Where a guard over spatial axes does not hold, accumulators take back what they started with."""
        if self.nest.accumulate_mask == TRUE:
            return ()
        axes, _ = self.output(at)
        counted = substitute_bool(self.nest.accumulate_mask, axes)
        if LANE not in free_vars(counted) and not self.owner:
            return self.started(at, counts, first, lambda value: value, ~counted)
        taken = self.started(at, counts, first, lambda v: Select(counted, self.acc_read(), v, v.dtype))
        some = ~all_count(self.nest, at, counts) if self.part.scheme == "cpu" else TRUE
        return taken if some == TRUE else (If(some, taken),)

    def started(
        self, at: Places, counts: dict[str, int], first: Bool, taken: Callable[[Value], Value], only: Bool = TRUE
    ) -> tuple[Stmt, ...]:
        """Accumulators take `taken` of the value that this visit starts with, `only` where that holds."""
        stage, n = self.nest.stage, self.accumulator.elements
        axes, valid = self.output(at)
        self.ctx.tensor(stage.assign.tensor)
        index = (*self.acc_index(), self.element(n))
        stored = Read(stage.assign.tensor, place_index(stage.assign.index, axes), self.accumulator.dtype)

        def assign(value: Value, valid: Bool) -> tuple[Stmt, ...]:
            stmt: Stmt = Assign(self.acc, index, taken(value), self.lane(n), valid)
            return self.over(self.tiled, counts, (stmt if only == TRUE else If(only, (stmt,)),))

        if self.part.start is not None:
            initial = assign(fused_start(self.part.start, axes, self.ctx), valid)
        elif stage.init is None:
            initial = assign(stored, valid)
        else:
            initial = assign(place(stage.init, axes), TRUE if isinstance(stage.init, Literal) else valid)
        if first == TRUE or (stage.init is None and self.part.start is None and self.sums is None):
            return initial
        if self.sums is not None:
            stored = replace(stored, tensor=self.sums.buffer, index=self.sums.index(at, index))
        return (If(first, initial), If(~first, assign(stored, valid)))
