"""The end of a register tile: sums go to memory, and fused stages behind them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from autosched.codegen.lower.common.context import identifier
from autosched.codegen.lower.common.fused_stages import epilogue
from autosched.codegen.lower.common.sums import Sums
from autosched.codegen.lower.common.tile_places import Places, TilePlaces
from autosched.codegen.tree.kernel import Assign, For, If, Stmt
from autosched.codegen.tree.rename import place_index
from autosched.logic import TRUE, Bool, Const, Int


@dataclass(frozen=True, eq=False)
class FinishingTile(TilePlaces):
    """Emits what comes after a tile's reduction."""

    def finish(self, at: Places, counts: dict[str, int], last: Bool) -> tuple[Stmt, ...]:
        """Partial or final sums go to memory where they are needed; fused stages follow on the last visit."""
        axes, valid = self.output(at)
        target, n = self.nest.stage.assign, self.accumulator.elements
        store = Assign(target.tensor, place_index(target.index, axes), self.acc_read(), self.lane(n), valid)
        stored = final = self.stores(counts, (store,))
        inside = [stage.stage.assign.tensor == target.tensor for stage in self.part.epilogue]
        whole: tuple[Stmt, ...]
        fused: list[Stmt] = []
        if self.waiting is not None:
            fused, whole = self.row_by_row(at, counts, self.waiting, axes, store)
        else:
            for k, stage in enumerate(self.part.epilogue):
                behind = epilogue(stage, target, self.acc_read(), axes, self.lane(n), valid, self.ctx)
                if self.transposer and self.part.keep and inside[k] and k == len(inside) - 1:
                    # As one, so that its reads turn.
                    final = self.stores(counts, (replace(store, value=behind[0].value),))
                else:
                    fused += self.stores(counts, behind)
            whole = (*fused, *(final if self.part.keep else ()))
        if last == TRUE:
            return whole
        if self.sums is not None:
            place_of_tile = self.sums.index(at, (*self.acc_index(), self.element(n)))
            there = Assign(self.sums.buffer, place_of_tile, self.acc_read(), self.lane(n), valid)
            return (If(~last, self.over(self.tiled, counts, (there,))), If(last, whole))
        if any(inside) or not self.part.keep:
            return (If(~last, stored), *((If(last, whole),) if whole else ()))
        return (*stored, *((If(last, tuple(fused)),) if fused else ()))

    def row_by_row(
        self, at: Places, counts: dict[str, int], waiting: Sums, axes: dict[str, Int], store: Assign
    ) -> tuple[list[Stmt], tuple[Stmt, ...]]:
        """The fused stages in a loop over the tile's rows, and the same with the `store` of what must reach memory."""
        n, row = self.accumulator.elements, self.tiled[0]
        place_of_tile = waiting.index(at, (*self.acc_index(), self.element(n)))
        held = replace(self.acc_read(), tensor=waiting.buffer, index=place_of_tile)
        hold = Assign(waiting.buffer, place_of_tile, self.acc_read(), self.lane(n))
        target = self.nest.stage.assign
        stages = [
            stmt
            for stage in self.part.epilogue
            for stmt in epilogue(stage, target, held, axes, self.lane(n), store.valid, self.ctx)
        ]

        def rows(behind: list[Assign]) -> Stmt:
            body = tuple(s for stmt in behind for s in self.over(self.tiled[1:], counts, (stmt,)))
            return For(f"{identifier(row.name)}r", Const(0), Const(counts[row.name]), body)

        together = self.over(self.tiled, counts, (hold,))
        fused = [*together, rows(stages)]
        kept = [replace(store, value=held)] if self.part.keep else []
        return fused, (*together, rows([*stages, *kept]))

    def stores(self, counts: dict[str, int], stores: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        """The tile's stores to memory, turned where that leaves fewer of them."""
        found: list[Stmt] = []
        for store in stores:
            transposed = self.transposer.stores(store, counts) if self.transposer else ()
            row = self.transposer.row if self.transposer and transposed else None
            found += self.over(tuple(a for a in self.tiled if a is not row), counts, transposed or (store,))
        return tuple(found)
