"""Programs with stages of one axis in one pass over tiles of rows and blocks of that axis (`ir.rewrites.online`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.ir.rewrites.online.search import online
from autosched.ir.rewrites.rewrite import simplify
from autosched.ir.rewrites.versions import separate_versions
from autosched.logic import Binary, Const, Int, Var
from autosched.numerics_levels import accepts
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.matcher.match import match
from autosched.tiling.analysis.windows import new_loops
from autosched.tiling.variants.adapted import Variant
from autosched.tiling.variants.products import is_product

SIZES = ((64, 256), (128, 256), (64, 128), (32, 128))
"""Rows of a tile and elements of a block: what is handed on is to stay in the first or second cache."""
BLOCK_SIZES = ((128, 64), (64, 64), (32, 64))
"""The same where a block of a GPU's grid has a tile: what is handed on is to stay in shared memory."""
GROUP_BLOCK = 256
"""Elements of a block where a tile has the rows that share a group of a tensor (heads of queries that share one of
keys)."""


def one_pass_programs(
    program: Program,
    intrinsics: Sequence[Intrinsic],
    numerics: str,
    sizes: Sequence[tuple[int, int]] = SIZES,
    one_loop: bool = False,
) -> Iterator[Variant]:
    """A variant for each size of tiles and blocks (those of grouped rows before `sizes`), where the pass is proved at
    the level asked for and has products: without them its rows are in a cache as the program is written. None for a
    program with sizes that are not known. `one_loop`: blocks that a mask cuts are computed as the others. In one
    loop warps may hold the rows; a second one would hold none. Where products may be on instructions whose registers
    hold matrices, sums of these blocks are computed whole: no lane of such a register can be left out."""
    if program.symbolic or not accepts(numerics, "rescaled"):
        return
    plain, _ = simplify(program)
    separate = separate_versions(program).program
    left = set(plain.stages)
    skips = not any(_on_matrices(s, intrinsics) for s in plain.stages)
    ops = {s.name: s.assign.op for s in separate.stages}
    seen = set()
    for tile, block in (*((g, GROUP_BLOCK) for g in groups(program)), *sizes):
        real = numerics == "real"
        for found in online(separate, real, block, tile=tile, branches=True, one_loop=one_loop, skips=skips):
            if found.numerics is None or found.after is None or not accepts(numerics, found.numerics):
                continue
            if any(ops.get(n) in ("max=", "min=") for n in (*found.rescale, *found.deferred)):
                continue  # kernels are checked for the same extremes, bit by bit
            after, _ = simplify(found.after)
            if str(after) not in seen and _makes_products(left, after):
                seen.add(str(after))
                named = replace(found, name=f"{found.name} {tile}x{block}", after=None)
                # Stages that are left as they were are matched here, those of a pass in its loops.
                names = [s.name for s in after.stages if s.reduction and s in left]
                matches = tuple(match(after, intrinsics, numerics, names)) if names else ()
                yield Variant(after, matches, rewrites=(named,), loops=new_loops(plain, after))
            break


def has_products(program: Program, after: Program) -> bool:
    """Whether a program in one pass has products inside that pass."""
    return _makes_products(simplify(program)[0].stages, simplify(after)[0])


def _makes_products(left: Collection[Stage], after: Program) -> bool:
    return any(is_product(s) and len(s.spatial) > 1 for s in after.stages if s not in left)


def _on_matrices(stage: Stage, intrinsics: Sequence[Intrinsic]) -> bool:
    """Whether a product is of the types of an instruction whose registers hold matrices."""
    types = sorted(r.dtype.name for r in stage.reads if r.tensor != stage.assign.tensor)
    known = (sorted(o.dtype.name for o in i.inputs) for i in intrinsics if i.matrices is not None)
    return is_product(stage) and types in known


def groups(program: Program) -> list[int]:
    """How many iterations of an axis share one of a dimension: `K[i // 4, j]`."""
    found: dict[int, None] = {}
    for stage in program.stages:
        for read in stage.reads:
            for index in read.index:
                if isinstance(index, Int) and (size := _group(index)) is not None:
                    found[size] = None
    return list(found)


def _group(index: Int) -> int | None:
    match index:
        case Binary("//", Var(), Const(size)) if size > 1:
            return size
    return None
