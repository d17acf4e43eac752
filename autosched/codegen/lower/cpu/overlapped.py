"""What follows a tile's sums, computed beside the products of the next tile.

    for jt, it:                                  tiles
      acc = 0
      for er in 0..16:                           rows of an accumulator
        for pu in …:                             a sixteenth of the depth
          acc += A_reg B_reg
        if this is not the first tile:
          P[the tile before, er] = gelu(tile[er] + bias)
      tile = acc                                 the waiting room, in the first cache
    P[the last tile] = gelu(tile + bias)

An instruction on registers that hold matrices keeps one unit busy for many cycles and vector units idle. A core looks
some hundred instructions ahead, less than a tile has, so it finds vector work only where that stands between products.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from autosched.codegen.lower.common.context import identifier
from autosched.codegen.lower.common.matrix_rows import ROW
from autosched.codegen.lower.common.positions import Position
from autosched.codegen.lower.common.register_tile import DepthRange, where_it_holds
from autosched.codegen.lower.cpu.matrix_tile import MatrixTile
from autosched.codegen.passes.substitute import bind
from autosched.codegen.tree.kernel import For, Stmt
from autosched.logic import Const, Int, Var, all_of, any_of, maximum, minimum
from autosched.tiling.plans.nest_geometry import NestAxis

Places = dict[str, Position]
Body = Callable[[Places, dict[str, int]], tuple[Stmt, ...]]


@dataclass(frozen=True)
class AxisRange:
    """What a loop over an axis covers: tiles (or units, where the axis is not tiled) from `lower` to `upper`."""

    lower: Int
    upper: Int


class Loops(Protocol):
    """What makes loops over the tiles of an axis."""

    register: dict[str, int]

    def tile_loop(
        self, axis: NestAxis, r: AxisRange, at: Places, counts: dict[str, int], body: Body
    ) -> tuple[Stmt, ...]: ...


@dataclass(frozen=True, eq=False)
class Overlapped:
    """Tile loops over `axes`, innermost last, of tiles that `micro` emits on their last visit, `depth`. Whole tiles of
    the two innermost loops finish one another; tiles at an axis's end are finished on their own."""

    nest: Loops
    micro: MatrixTile
    axes: Sequence[NestAxis]
    ranges: Mapping[str, AxisRange]
    depth: DepthRange

    def loops(self, at: Places, counts: dict[str, int]) -> tuple[Stmt, ...]:
        """All tile loops."""
        return self._around(0, at, counts)

    def _around(self, k: int, at: Places, counts: dict[str, int]) -> tuple[Stmt, ...]:
        """The loops from number `k` on, those around the two innermost first."""
        axis = self.axes[k]
        if k + 2 < len(self.axes):
            return self._loop(axis, at, counts, lambda a, c: self._around(k + 1, a, c))
        if k + 1 == len(self.axes):
            return (*self._loop(axis, at, counts, self._tile((axis,))), *self._last((axis,), at, counts))
        outer, inner = self.axes[k:]

        def inside(a: Places, c: dict[str, int]) -> tuple[Stmt, ...]:
            whole = self._is_whole(outer, a, c)
            return self._loop(inner, a, c, self._tile((outer, inner)) if whole else self._alone)

        return (*self._loop(outer, at, counts, inside), *self._last((outer, inner), at, counts))

    def _loop(self, axis: NestAxis, at: Places, counts: dict[str, int], body: Body) -> tuple[Stmt, ...]:
        return self.nest.tile_loop(axis, self.ranges[axis.name], at, counts, body)

    def _alone(self, at: Places, counts: dict[str, int]) -> tuple[Stmt, ...]:
        return self.micro.emit(at, counts, self.depth)

    def _is_whole(self, axis: NestAxis, at: Places, counts: dict[str, int]) -> bool:
        return counts[axis.name] == self.nest.register[axis.name] and not at[axis.name].partial

    def _whole(self, axis: NestAxis) -> tuple[Int, Int]:
        """The first whole tile of an axis here, and the one after the last."""
        size, r = self.nest.register[axis.name], self.ranges[axis.name]
        full = axis.full_units // size
        return r.lower, minimum(r.upper, full) if axis.units > full * size else r.upper

    def _tile(self, loops: Sequence[NestAxis]) -> Body:
        """A tile in these loops, beside whose products the one before is finished, if there is one."""

        def body(at: Places, counts: dict[str, int]) -> tuple[Stmt, ...]:
            if not self._is_whole(loops[-1], at, counts):
                return self._alone(at, counts)
            tiles = [Var(_tile(a)) for a in loops]
            ranges = [self._whole(a) for a in loops]
            there = any_of(*(tile > lower for tile, (lower, _) in zip(tiles, ranges, strict=True)))
            (lower, upper), inner = ranges[-1], tiles[-1]
            most = loops[-1].units
            # In front of an inner loop's first tile is its last one, an iteration of the outer loop before.
            before: dict[str, Int] = {inner.name: inner - 1}
            if len(loops) == 2:
                before[inner.name] = maximum(inner - 1, upper - 1 - (inner - lower) * most)
                before[tiles[0].name] = tiles[0] - maximum(lower + 1 - inner, 0)
            named = {name: Var(f"{identifier(a.name)}bt") for name, a in zip(reversed(before), loops, strict=True)}
            row = bind(self.micro.finished_row(at, counts), named)
            found = self.micro.beside(at, counts, self.depth, where_it_holds(there, row))
            for name, var in named.items():
                found = (For(var.name, before[name], before[name] + 1, found),)
            return found

        return body

    def _last(self, loops: Sequence[NestAxis], at: Places, counts: dict[str, int]) -> tuple[Stmt, ...]:
        """The end of the last whole tile in these loops."""
        size, ranges = self.nest.register, [self._whole(a) for a in loops]
        if any(upper == Const(0) for _, upper in ranges):
            return ()
        there = {
            a.name: Position(Var(_tile(a)), Var(_tile(a)) * size[a.name] + Var(f"{identifier(a.name)}r"))
            for a in loops
        }
        row = self.micro.finished_row(at | there, counts | {a.name: size[a.name] for a in loops})
        found: tuple[Stmt, ...] = (For(ROW, Const(0), Const(self.micro.rows), row),)
        for a, (_, upper) in zip(loops, ranges, strict=True):
            if isinstance(upper, Const):
                found = bind(found, {_tile(a): Const(upper.value - 1)})
            else:
                found = (For(_tile(a), upper - 1, upper, found),)
        return where_it_holds(all_of(*(lower < upper for lower, upper in ranges)), found)


def _tile(axis: NestAxis) -> str:
    """The variable of a loop over tiles of an axis."""
    return f"{identifier(axis.name)}t"
