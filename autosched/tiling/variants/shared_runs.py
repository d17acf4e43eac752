"""Runs of neighbouring stages that may be computed a tile of rows at a time, and what they hand on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from autosched.ir.nodes import Assign, Axis, Loop, Stage, Statement
from autosched.ir.program import Program
from autosched.ir.rewrites.tiles.rows import TileRun
from autosched.logic import Const
from autosched.tiling.analysis import accesses
from autosched.tiling.analysis.row_needs import RowNeeds
from autosched.tiling.plans.epilogue import epilogue_chain

MOST_AGAIN = 1 / 2
"""Of all rows: how many a tile may compute that its neighbours compute too. Deeper runs of windows are cut."""


@dataclass(frozen=True)
class SharedRun:
    """A run of stages, `members` by name, with rows of the last as many as `extent`. `keeping`: the same run where a
    tile keeps rows for the next, if windows of neighbouring tiles overlap. `handed_bytes`:
    of what they hand on through memory, as a whole; `in_memory` names that."""

    program: Program
    members: tuple[str, ...]
    run: TileRun
    keeping: TileRun | None
    extent: int
    handed_bytes: int
    in_memory: frozenset[str]

    @property
    def axis(self) -> str:
        """The loop over rows, as the first stage calls it."""
        return self.run.members[0].axis

    @property
    def first(self) -> int:
        """Where the run begins among the top-level statements."""
        return self.run.first

    @cached_property
    def again(self) -> float:
        """How many rows a tile computes that its neighbours compute too, at most of all stages, in rows of the last."""
        return max(0.0, *(m.rows.again / m.rows.scale for m in self.run.members))

    def tile_of(self, room: int) -> int:
        """The most rows of a tile of which what is handed on takes no more bytes than `room`; half of all at most."""
        border = self._tile_bytes(0)
        return max(0, min((room - border) // max(1, self.row_bytes), self.extent // 2))

    def tiles(self, caches: Sequence[int]) -> tuple[int, ...]:
        """Rows of tiles that fill half of each of these caches; where no row does so, those that fill the largest."""
        halves = [n for size in caches if (n := self.tile_of(size // 2)) > 0]
        return tuple(halves or (n for size in caches[-1:] if (n := self.tile_of(size)) > 0))

    @property
    def row_bytes(self) -> int:
        """Bytes that one row more hands on."""
        return self._tile_bytes(1) - self._tile_bytes(0)

    def _tile_bytes(self, tile: int) -> int:
        total = 0
        for name in self.in_memory:
            tensor, held = self.program.tensors[name], self.run.buffers.get(name)
            size = prod(tensor.extents) * tensor.dtype.bits // 8
            if held is None:  # rows of a result, each of its own tile
                total += size // self.extent * tile
            else:
                total += size // tensor.extents[held.dimension] * held.rows.count(tile)
        return total


def shared_runs(program: Program, least_bytes: int) -> tuple[SharedRun, ...]:
    """The longest run of stages that may be computed in tiles and hand on more than `least_bytes`, of those in which
    each tile computes rows of its own alone; and the longest of those in which neighbours compute some twice, where
    that is longer."""
    plain: SharedRun | None = None
    twice: SharedRun | None = None
    for found in runs(program, least_bytes):
        if found.again == 0:
            plain = found if plain is None or len(found.members) > len(plain.members) else plain
        elif found.again <= MOST_AGAIN * found.extent:
            twice = found if twice is None or len(found.members) > len(twice.members) else twice
    if twice is not None and plain is not None and len(twice.members) <= len(plain.members):
        twice = None
    return tuple(r for r in (plain, twice) if r is not None)


def runs(program: Program, least_bytes: int) -> Iterator[SharedRun]:
    """For each stage and each loop of it the longest run that ends with it."""
    stages = _owners(program)
    statements: dict[str, list[accesses.Statement]] = {}
    for s in accesses.statements(program):
        statements.setdefault(s.stage, []).append(s)
    for last, stage in enumerate(stages):
        for axis, extent in _extents(program.body[last]).items():
            if stage is None or extent < 2:
                continue
            length = _longest(program, stages, statements, last, axis)
            for first in range(last - length + 1, last):
                found = _shared(program, stages, statements, first, last, axis, extent)
                if found is not None and found.handed_bytes > least_bytes:
                    yield found
                    break


def _longest(
    program: Program,
    stages: Sequence[Stage | None],
    statements: Mapping[str, Sequence[accesses.Statement]],
    last: int,
    axis: str,
) -> int:
    """How many stages up to the last one have loops whose rows are needed."""
    needs, count = RowNeeds(program, statements), 1
    start = stages[last]
    assert start is not None
    needs.start(start.name, axis)
    while count <= last and (stage := stages[last - count]) is not None and needs.extend(stage.name):
        if needs.members[stage.name].axis not in _extents(program.body[last - count]):
            break
        count += 1
    return count


def _shared(
    program: Program,
    stages: Sequence[Stage | None],
    statements: Mapping[str, Sequence[accesses.Statement]],
    first: int,
    last: int,
    axis: str,
    extent: int,
) -> SharedRun | None:
    """The run of these statements, where it is proved."""
    members = [s for s in stages[first : last + 1] if s is not None]
    handed = frozenset(_through_memory(members))
    if not handed:
        return None  # all of them may be computed on each finished element of the first, in registers
    runs: list[TileRun | None] = []
    for keep in (False, True):
        needs = RowNeeds(program, statements, keep)
        needs.start(members[-1].name, axis)
        for stage in reversed(members[:-1]):
            needs.extend(stage.name)
        runs.append(needs.run(first))
    run, keeping = runs
    if run is None:
        return None
    if keeping is not None and not any(b.kept for b in keeping.buffers.values()):
        keeping = None
    size = sum(prod(program.tensors[n].extents) * program.tensors[n].dtype.bits // 8 for n in handed)
    return SharedRun(program, tuple(s.name for s in members), run, keeping, extent, size, handed)


def _through_memory(members: Sequence[Stage]) -> Iterator[str]:
    """What stages hand on to others that cannot be computed on each finished element, in registers."""
    behind = {s.name: {e.consumer for e in epilogue_chain(s, members[k + 1 :])} for k, s in enumerate(members)}
    for k, stage in enumerate(members):
        first = next((s for s in members[:k] if stage.name in behind[s.name]), stage)
        readers = [s for s in members if any(r.tensor == stage.assign.tensor for r in s.reads)]
        if any(s.name not in behind[first.name] for s in readers):
            yield stage.assign.tensor


def _owners(program: Program) -> list[Stage | None]:
    """For each top-level statement the stage that it is; None where it is of several, or a part of one."""
    stages = {s.name: s for s in program.stages}
    each = iter(accesses.statements(program))
    found: list[Stage | None] = []
    for stmt in program.body:
        names = {next(each).stage for _ in range(_assignments(stmt))}
        found.append(stages[names.pop()] if len(names) == 1 else None)
    once = [s.name for s in found if s is not None]
    return [s if s is not None and once.count(s.name) == 1 else None for s in found]


def _assignments(stmt: Statement) -> int:
    return 1 if isinstance(stmt, Assign) else sum(map(_assignments, stmt.body))


def _extents(stmt: Statement) -> dict[str, int]:
    """Loops of constant bounds that are nested around all of a statement, with their lengths."""
    found: dict[str, int] = {}
    while isinstance(stmt, Loop):
        if _constant(stmt.axis):
            found[stmt.axis.name] = stmt.axis.extent
        if len(stmt.body) != 1:
            break
        (stmt,) = stmt.body
    return found


def _constant(axis: Axis) -> bool:
    return isinstance(axis.lower, Const) and isinstance(axis.upper, Const)
