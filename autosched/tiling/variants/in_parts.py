"""Programs with stages of one axis in one pass over parts of that axis, each with states of its own, and the merge of
these (`ir.rewrites.online.parts`): for rows that are fewer than workers, as one query that attends to a long cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from autosched.ir.nodes import Axis
from autosched.ir.program import Program
from autosched.ir.rewrites.online.members import Cascade, cascades_of
from autosched.ir.rewrites.online.search import online
from autosched.ir.rewrites.online.tiled import can_tile
from autosched.ir.rewrites.refusal import NotRewritten
from autosched.ir.rewrites.rewrite import simplify
from autosched.ir.rewrites.versions import separate_versions
from autosched.machine.target import Target
from autosched.numerics_levels import accepts
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.matcher.match import match
from autosched.tiling.analysis.windows import nested, new_loops
from autosched.tiling.plans.scalar_parts import is_constant
from autosched.tiling.steps import is_gpu
from autosched.tiling.variants.adapted import Variant
from autosched.tiling.variants.one_pass import groups

ROWS = 64
"""Rows of a tile, at most: those that share blocks of what they all read."""
LEAST, LEAST_OF_GRID = 256, 64
"""Elements of a block, at least, of a thread and of a block of a GPU's grid."""
ELEMENTS, ELEMENTS_OF_GRID = 1 << 13, 1 << 11
"""Elements of a block in all rows of a tile, at most: what is handed on is to stay in a cache, or in shared memory. A
part that is one block moves no reference."""
TIMES = (1, 2)
"""Parts of all tiles for each core of a GPU: several hide each other's latency."""


@dataclass(frozen=True)
class PartSizes:
    """`parts` of the axis, each in blocks of `block` elements for tiles of `tile` rows."""

    parts: int
    tile: int
    block: int

    def __str__(self) -> str:
        return f"parts {self.parts} {self.tile}x{self.block}"


def in_parts_programs(
    program: Program,
    target: Target,
    intrinsics: Sequence[Intrinsic],
    numerics: str,
    threads: int,
    sizes: Sequence[PartSizes] = (),
) -> Iterator[Variant]:
    """A variant for each of `sizes`, else of those of `part_sizes`, of the first pass that is proved at the level asked
    for and has fewer tiles of rows than there are workers."""
    if program.symbolic or not accepts(numerics, "rescaled"):
        return
    plain, _ = simplify(program)
    separate = separate_versions(program).program
    for cascade in cascades_of(separate):
        if isinstance(cascade, NotRewritten):
            continue
        found = [
            variant
            for size in sizes or part_sizes(separate, cascade, target, threads)
            if (variant := _variant(plain, separate, cascade, size, intrinsics, numerics, is_gpu(target))) is not None
        ]
        yield from found
        if found:
            return


def _variant(
    plain: Program,
    separate: Program,
    cascade: Cascade,
    sizes: PartSizes,
    intrinsics: Sequence[Intrinsic],
    numerics: str,
    one_loop: bool,
) -> Variant | None:
    """The program with a cascade in parts; None where that is not proved at the level asked for."""
    names = {m.stage.name for m in cascade.members}
    layout = sizes.block, sizes.parts, sizes.tile
    every = online(separate, numerics == "real", *layout, branches=True, one_loop=one_loop)
    found = next((v for v in every if v.after is not None and set(v.stages) <= names), None)
    if found is None or found.after is None or found.numerics is None or not accepts(numerics, found.numerics):
        return None
    if any(separate.stage(n).assign.op in ("max=", "min=") for n in (*found.rescale, *found.deferred)):
        return None  # kernels are checked for the same extremes, bit by bit
    after, _ = simplify(found.after, _around_merges(separate, found.after))
    left = [s.name for s in after.stages if s.reduction and s in plain.stages]
    matches = tuple(match(after, intrinsics, numerics, left)) if left else ()
    named = replace(found, name=str(sizes), after=None)
    return Variant(after, matches, rewrites=(named,), loops=new_loops(plain, after))


def _around_merges(before: Program, after: Program) -> list[str]:
    """An axis around each new body that is done once: a loop keeps it together, and apart from other stages."""
    made = [nested((stmt,))[0] for stmt in after.body if stmt not in before.body]
    return [loops[-1].name for loops in made if loops and all(is_constant(a) and a.extent == 1 for a in loops)]


def part_sizes(program: Program, cascade: Cascade, target: Target, threads: int) -> list[PartSizes]:
    """The parts that give all workers some of a pass; none where its tiles of rows do."""
    if why_whole(program, cascade, target, threads):
        return []
    *outer, last = cascade.rows
    length, found = cascade.axes[0].extent, dict[PartSizes, None]()
    for tile in tiles_of(program, last):
        tiles = prod(a.extent for a in outer) * -(-last.extent // tile)
        for count in counts(tiles, target, threads):
            parts = parts_of(length, count, target)
            blocks = blocks_of(tile, -(-length // parts), target)
            found |= dict.fromkeys(PartSizes(parts, tile, block) for block in blocks if parts > 1)
        if found and is_gpu(target):  # warps hold the rows of small blocks, and fetch the next block meanwhile
            least, _ = least_and_most(target)
            found[PartSizes([*found][-1].parts, tile, least)] = None
    return list(found)


def tiles_of(program: Program, last: Axis) -> list[int]:
    """Rows of a tile: those that share what they read, else as many as there are."""
    shared = [g for g in groups(program) if last.extent % g == 0]
    return list(dict.fromkeys((*shared, min(ROWS, last.extent))))


def blocks_of(tile: int, part: int, target: Target) -> tuple[int, ...]:
    """Elements of a block for tiles of so many rows: as much of a part as its memory holds, and on a CPU the least."""
    least, most = least_and_most(target)
    large = max(least, min(part, most // tile))
    return (large,) if is_gpu(target) else tuple(dict.fromkeys((large, least)))


def least_and_most(target: Target) -> tuple[int, int]:
    return (LEAST_OF_GRID, ELEMENTS_OF_GRID) if is_gpu(target) else (LEAST, ELEMENTS)


def counts(tiles: int, target: Target, threads: int) -> list[int]:
    """How many parts of each tile give all workers one, or a GPU's a few; none where tiles do."""
    if is_gpu(target):
        return [n * target.cores // tiles for n in TIMES if tiles < target.cores]
    return [threads] if tiles < threads else []


def parts_of(length: int, count: int, target: Target) -> int:
    """So many parts, no more than have a block of the least size. On a GPU up to half as many, if that makes them equal
    or even leaves whole blocks: no thread of a CPU is to be idle."""
    least, _ = least_and_most(target)
    count = min(count, length // least)
    near = range(count, count // 2, -1) if is_gpu(target) else ()
    whole = (n for n in near if length % (n * least) == 0)
    equal = (n for n in near if length % n == 0)
    return next(whole, next(equal, count))


def why_whole(program: Program, cascade: Cascade, target: Target, threads: int) -> str:
    """Why a pass has no plans with parts; nothing where it has."""
    ranges = (*cascade.rows, *cascade.axes)
    if not cascade.rows or not can_tile(cascade) or not all(map(is_constant, ranges)):
        return "its rows have no tiles, or not all of one length"
    workers, each = (target.cores, "multiprocessors") if is_gpu(target) else (threads, "threads")
    if workers < 2:
        return "one thread computes all of a row (--threads)"
    *outer, last = cascade.rows
    tiles = prod(a.extent for a in outer) * min(-(-last.extent // t) for t in tiles_of(program, last))
    if tiles >= workers:
        return f"{tiles} tiles of rows are enough for {workers} {each}"
    least, _ = least_and_most(target)
    if cascade.axes[0].extent < 2 * least:
        return f"its {cascade.axes[0].extent} elements are no two parts of {least}"
    return ""
