"""Stages that share an axis, a tile of it at a time.

    for i: H[i, :] = X[i, :] W1         for t: for i in tile: H_tile[t, i, :] = X[t * 32 + i, :] W1
    for i: Y[i, :] = H[i, :] W2                for i in tile: Y[t * 32 + i, :] = H_tile[t, i, :] W2

Where a stage reads rows around its own (a window of 3 lines), a tile needs more rows of the stage before. Each tile
computes all that it needs, some for a second time; or, where rows are **kept**, those that no tile before needed:

    for y: H[y] = X[y] W                for t: for y in 34: H_tile[t, y] = X[t * 32 + y - 1] W
    for y, r: Y[y] += H[y + r - 1] …           for y in 32, r: Y[t * 32 + y] += H_tile[t, y + r] …

    kept:                               for t: for y in 32: H_tile[2 + y] = X[t * 32 + y + 1] W
                                               for y in 32, r: Y[t * 32 + y] += H_tile[y + r] …
                                               for y in 2: H_tile[y] = H_tile[32 + y]

That a tile may be computed by itself is the caller's to prove (`tiling.analysis.row_needs`). Tiles at a border, where a
guard rules out what a stage reads, are computed before and after the loop, whose body has no guard on them:

    for y, r: if 0 <= y + r - 1 < 56:   rows 0 to 7 with guards; for t: for y, r: …; rows 48 to 55 with guards
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from autosched.ir.nodes import Assign, Axis, Loop, Statement, Tensor
from autosched.ir.program import Program
from autosched.ir.rewrites.names import FreeNames
from autosched.ir.rewrites.tiles.guards import decided, row_guards
from autosched.ir.rewrites.tiles.placed import RowPlace, placed, rows_of
from autosched.ir.rewrites.tiles.rows import HeldRows, RowRange, TileRun
from autosched.ir.value import Read
from autosched.logic import Const, Int, Var


def tiled_rows(program: Program, run: TileRun, tile: int, inside: TileRun | None = None) -> Program | None:
    """The program with a run of stages in tiles of so many rows of the last. `inside`: the run as the loop has it,
    where that keeps rows. What is left behind whole tiles is a tile of its own, and so are the tiles before and after
    those in which no guard on rows says no. None where no tile has all rows that it needs, or no tile is before those
    that keep some; and where a tile at the border needs no row at all of a stage."""
    return _Tiled(program, run, inside or run, tile).program()


@dataclass
class _Tiled:
    before: Program
    run: TileRun
    inside: TileRun
    tile: int
    names: FreeNames = field(init=False)
    tensors: dict[str, Tensor] = field(init=False)
    statements: tuple[Statement, ...] = field(init=False)
    bounds: list[tuple[int, int]] = field(init=False)
    """The first row of each stage, and the one behind its last."""

    def __post_init__(self) -> None:
        first, members = self.run.first, self.run.members
        self.names = FreeNames(self.before)
        self.tensors = dict(self.before.tensors)
        self.statements = self.before.body[first : first + len(members)]
        self.bounds = [_bounds(s, m.axis) for s, m in zip(self.statements, members, strict=True)]

    def program(self) -> Program | None:
        low, end = self.bounds[-1]
        found = self.whole_tiles()
        kept = {t: b for t, b in self.inside.buffers.items() if b.kept}
        if kept and found is not None and found[0] == low:
            found = (low + self.tile, found[1])
        if found is None or found[0] >= found[1]:
            return None
        begin, stop = found
        if any(b.rows.again > b.rows.scale * self.tile for b in kept.values()):
            return None
        if not all(self.needs_rows(*rows) for rows in ((low, begin), (stop, end)) if rows[0] < rows[1]):
            return None
        ahead, places = self.apart(low, begin)
        loop, handed = self.loop(begin, stop)
        copies = []
        for tensor, buffer in kept.items():
            source, (first, _) = places[tensor], buffer.rows.of(begin, stop)
            assert isinstance(source.start, Const)
            copies.append(self.copy(buffer, source.name, first - source.start.value, handed[tensor].name))
        behind, _ = self.apart(stop, end)
        for name in self.run.buffers:
            del self.tensors[name]
        first, count = self.run.first, len(self.statements)
        body = (
            *self.before.body[:first], *ahead, *copies, loop, *behind, *self.before.body[first + count :],
        )  # fmt: skip
        return replace(self.before, body=body, tensors=self.tensors)

    def whole_tiles(self) -> tuple[int, int] | None:
        """The first row of the tiles that one loop runs over, and the one behind them: those that have all rows that
        they need, and of these the ones in which all guards hold, if there are any."""
        low, end = self.bounds[-1]
        starts = [low + k * self.tile for k in range((end - low) // self.tile)]
        whole = [s for s in starts if self.has_all_rows(s)]
        chosen = [s for s in whole if self.passes_guards(s)] or whole
        return (chosen[0], chosen[-1] + self.tile) if chosen else None

    def has_all_rows(self, begin: int) -> bool:
        rows = (m.rows.of(begin, begin + self.tile) for m in self.run.members)
        return all(low <= a and b <= end for (a, b), (low, end) in zip(rows, self.bounds, strict=True))

    def needs_rows(self, begin: int, stop: int) -> bool:
        """Whether these rows need some of each stage."""
        rows = (_clipped(m.rows.of(begin, stop), b) for m, b in zip(self.run.members, self.bounds, strict=True))
        return all(first < end for first, end in rows)

    def passes_guards(self, begin: int) -> bool:
        return all(
            guard.holds(*member.rows.of(begin, begin + self.tile))
            for stmt, member in zip(self.statements, self.run.members, strict=True)
            for guard in row_guards(stmt, member.axis)
        )

    def apart(self, begin: int, stop: int) -> tuple[list[Statement], dict[str, RowPlace]]:
        """Rows `begin` until `stop` outside the loop, with all that they need and there is; and where that lies."""
        if begin == stop:
            return [], {}
        places: dict[str, RowPlace] = {}
        for name, buffer in self.run.buffers.items():
            first, end = self.there(name, buffer.rows, begin, stop)
            places[name] = self.place(name, buffer, end - first, Const(first))
        made = []
        for stmt, member, bounds in zip(self.statements, self.run.members, self.bounds, strict=True):
            first, end = _clipped(member.rows.of(begin, stop), bounds)
            known = decided(stmt, member.axis, first, end)
            made.append(placed(rows_of(known, member.axis, Const(first), end - first, self.names), places))
        return made, places

    def there(self, tensor: str, rows: RowRange, begin: int, stop: int) -> tuple[int, int]:
        """Of the rows of an intermediate that rows `begin` until `stop` need, those that its stages compute."""
        written = [b for s, b in zip(self.statements, self.bounds, strict=True) if _written(s) == tensor]
        return _clipped(rows.of(begin, stop), written[0])

    def loop(self, begin: int, stop: int) -> tuple[Loop, dict[str, RowPlace]]:
        """The loop over tiles of rows `begin` until `stop`, and where a tile has its intermediates."""
        name = self.names(f"{self.inside.members[0].axis}_tile")
        count = (stop - begin) // self.tile
        row = Var(name) * self.tile + begin
        places: dict[str, RowPlace] = {}
        for tensor, buffer in self.inside.buffers.items():
            start = row * buffer.rows.scale + buffer.rows.low
            around = () if buffer.kept else (count,)
            tile = () if buffer.kept else (Var(name),)
            places[tensor] = self.place(tensor, buffer, buffer.rows.count(self.tile), start, around, tile)
        body: list[Statement] = []
        for stmt, member in zip(self.statements, self.inside.members, strict=True):
            known = decided(stmt, member.axis, member.rows.of(begin, stop)[0], member.rows.of(begin, stop)[1])
            start = row * member.rows.scale + member.rows.low
            moved = rows_of(known, member.axis, start, member.rows.count(self.tile), self.names)
            body.append(placed(moved, places))
        for tensor, buffer in self.inside.buffers.items():
            if buffer.kept:
                own = places[tensor].name
                body.append(self.copy(buffer, own, self.tile * buffer.rows.scale, own))
        return Loop(Axis(name, Const(0), Const(count)), tuple(body)), places

    def place(
        self,
        tensor: str,
        buffer: HeldRows,
        rows: int,
        start: Int,
        around: Sequence[int] = (),
        tile: tuple[Int, ...] = (),
    ) -> RowPlace:
        """A new tensor for so many rows of an intermediate."""
        old, name, d = self.tensors[tensor], self.names(tensor), buffer.dimension
        shape = (*map(Const, around), *old.shape[:d], Const(rows), *old.shape[d + 1 :])
        self.tensors[name] = replace(old, name=name, shape=shape)
        return RowPlace(name, d, start, tile)

    def copy(self, buffer: HeldRows, source: str, first: int, to: str) -> Statement:
        """The rows that come again, from row `first` of one tensor on, as the first rows of another."""
        shape = self.tensors[to].shape
        names = [self.names("k") for _ in shape]
        index = tuple(map(Var, names))
        d = buffer.dimension
        taken = Read(source, (*index[:d], index[d] + first, *index[d + 1 :]), self.tensors[to].dtype)
        stmt: Statement = Assign(to, index, "=", taken)
        for k, (name, size) in reversed([*enumerate(zip(names, shape, strict=True))]):
            stmt = Loop(Axis(name, Const(0), Const(buffer.rows.again) if k == d else size), (stmt,))
        return stmt


def _bounds(statement: Statement, axis: str) -> tuple[int, int]:
    """The first value of a loop around all of a statement, and the one behind its last."""
    while isinstance(statement, Loop):
        if statement.axis.name == axis:
            lower, upper = statement.axis.lower, statement.axis.upper
            assert isinstance(lower, Const)
            assert isinstance(upper, Const)
            return lower.value, upper.value
        (statement,) = statement.body
    raise AssertionError(axis)


def _clipped(rows: tuple[int, int], bounds: tuple[int, int]) -> tuple[int, int]:
    """Those of the rows that there are."""
    return max(rows[0], bounds[0]), min(rows[1], bounds[1])


def _written(statement: Statement) -> str:
    """The tensor that a stage's statement writes."""
    while not isinstance(statement, Assign):
        statement = statement.body[-1]
    return statement.tensor
