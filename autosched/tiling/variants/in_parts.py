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
from autosched.tiling.analysis.windows import new_loops
from autosched.tiling.plans.scalar_parts import is_constant
from autosched.tiling.steps import is_gpu
from autosched.tiling.variants.adapted import Variant
from autosched.tiling.variants.one_pass import groups
from autosched.tiling.variants.products import is_product

ROWS = 64
"""Rows of a tile, at most: those that share blocks of what they all read."""
BLOCKS, BLOCK_OF_GRID = (256, 1024), 128
"""Elements of a block, of a thread and of a block of a GPU's grid: operands of a product are in its caches."""
ELEMENTS = 1 << 12
"""Elements of a block in all rows of a tile where nothing is multiplied."""
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
    program: Program, target: Target, intrinsics: Sequence[Intrinsic], numerics: str, threads: int
) -> Iterator[Variant]:
    """A variant for each number of parts and size of blocks, of the first pass that is proved at the level asked for
    and has fewer tiles of rows than there are workers."""
    if program.symbolic or not accepts(numerics, "rescaled"):
        return
    plain, _ = simplify(program)
    separate = separate_versions(program).program
    left = set(plain.stages)
    ops = {s.name: s.assign.op for s in separate.stages}
    for cascade in cascades_of(separate):
        if isinstance(cascade, NotRewritten):
            continue
        made = False
        for sizes in part_sizes(separate, cascade, target, threads):
            found = next(
                (
                    v
                    for v in online(separate, numerics == "real", sizes.block, sizes.parts, sizes.tile)
                    if v.after is not None and set(v.stages) <= {m.stage.name for m in cascade.members}
                ),
                None,
            )
            if found is None or found.after is None or not accepts(numerics, found.numerics or "real"):
                break
            if any(ops.get(n) in ("max=", "min=") for n in (*found.rescale, *found.deferred)):
                break  # kernels are checked for the same extremes, bit by bit
            after, _ = simplify(found.after)
            names = [s.name for s in after.stages if s.reduction and s in left]
            matches = tuple(match(after, intrinsics, numerics, names)) if names else ()
            named = replace(found, name=str(sizes), after=None)
            yield Variant(after, matches, rewrites=(named,), loops=new_loops(plain, after))
            made = True
        if made:
            return


def part_sizes(program: Program, cascade: Cascade, target: Target, threads: int) -> list[PartSizes]:
    """The parts that give all workers some of a pass; none where its tiles of rows do."""
    if why_whole(program, cascade, target, threads):
        return []
    *outer, last = cascade.rows
    length, found = cascade.axes[0].extent, dict[PartSizes, None]()
    for tile in tiles_of(program, last):
        tiles = prod(a.extent for a in outer) * -(-last.extent // tile)
        for block in blocks_of(program, tile, target):
            most = length // block
            for count in counts(tiles, target, threads):
                parts = dividing(min(count, most), length, block)
                if parts > 1:
                    found[PartSizes(parts, tile, block)] = None
    return list(found)


def tiles_of(program: Program, last: Axis) -> list[int]:
    """Rows of a tile: those that share what they read, else as many as there are."""
    shared = [g for g in groups(program) if last.extent % g == 0]
    return list(dict.fromkeys((*shared, min(ROWS, last.extent))))


def blocks_of(program: Program, tile: int, target: Target) -> tuple[int, ...]:
    """Elements of a block for tiles of so many rows."""
    if not any(is_product(s) for s in program.stages):
        return (max(BLOCKS[0], ELEMENTS // tile),)
    return (BLOCK_OF_GRID if tile < ROWS // 2 else BLOCK_OF_GRID // 2,) if is_gpu(target) else BLOCKS


def counts(tiles: int, target: Target, threads: int) -> list[int]:
    """How many parts of each tile give all workers one, or a GPU's a few; none where tiles do."""
    if is_gpu(target):
        return [n * target.cores // tiles for n in TIMES if tiles < target.cores]
    return [threads] if tiles < threads else []


def dividing(count: int, length: int, block: int) -> int:
    """So many parts, or up to half as many, that all are equal and have whole blocks, or at least are equal; `count`
    where none are."""
    near = range(count, max(1, count // 2), -1)
    whole = (n for n in near if length % n == 0 and length // n % block == 0)
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
    least = prod(a.extent for a in outer) * min(-(-last.extent // t) for t in tiles_of(program, last))
    if least >= workers:
        return f"{least} tiles of rows are enough for {workers} {each}"
    block = min(b for t in tiles_of(program, last) for b in blocks_of(program, t, target))
    if cascade.axes[0].extent < 2 * block:
        return f"its {cascade.axes[0].extent} elements are no two parts of {block}"
    return ""
