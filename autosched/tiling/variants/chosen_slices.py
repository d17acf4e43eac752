"""Programs with products of slices that data choose (`ir.rewrites.chosen_blocks`): the weights of an expert for a block
of rows, a page of keys. What is inside of the loops that choose is a product of plain matrices."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import prod

from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.ir.rewrites.chosen_blocks import ChoiceBlock, blocks_of, chosen_blocks, chosen_reads
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.ir.value import Read, is_value, reads
from autosched.ir.variables import index_vars
from autosched.numerics_levels import accepts
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.matcher.match import match
from autosched.tiling.analysis.dependence import analyse
from autosched.tiling.variants.adapted import Variant
from autosched.tiling.variants.products import is_product

FEWEST = 4
"""Results that share an element of an operand, inside of the loops: with fewer it is no product of matrices, which
instructions compute out of registers."""


def chosen_programs(program: Program, intrinsics: Sequence[Intrinsic], numerics: str) -> Iterator[Variant]:
    """A variant for each product with a slice that data choose for a block of results: the loops that choose go around
    the rest."""
    for stage, blocks in choices(program, numerics):
        made = chosen_blocks(program, stage, blocks)
        if made is None:
            continue
        after, loops = made
        kept = frozenset(loops)
        others = [s.name for s in after.stages if s.reduction and not kept & {a.name for a in s.axes}]
        matches = tuple(match(after, intrinsics, numerics, others)) if others else ()
        level = "bitwise" if _in_order(stage, blocks) else "reassociated"
        said = tuple(f"{stage.name}: {_said(b)}" for b in blocks)
        axes = ", ".join(b.axis for b in blocks)
        verdict = RewriteVerdict("chosen slices", axes, (stage.name,), level, because=said)
        yield Variant(after, matches, rewrites=(verdict,), loops=kept)


def choices(program: Program, numerics: str) -> Iterator[tuple[Stage, tuple[ChoiceBlock, ...]]]:
    """Products with a slice that data choose, each with the blocks of its axes for which it is one."""
    if program.symbolic:
        return
    for stage in program.stages:
        if not is_product(stage):
            continue
        reads_: list[Read | None] = [*chosen_reads(stage.assign.value)]
        if any(is_value(g) for g in stage.guards):
            reads_.append(None)
        for blocks in dict.fromkeys(_blocks(stage, read) for read in reads_):
            if blocks and _shared(stage, blocks) and _may_go_outside(program, stage, blocks, numerics):
                yield stage, blocks


def _said(block: ChoiceBlock) -> str:
    each = f"{block.size} neighbouring iterations" if block.size > 1 else "an iteration"
    return f"data choose one slice for {each} of {block.axis}, and no two of these meet outside of a sum"


def _blocks(stage: Stage, read: Read | None) -> tuple[ChoiceBlock, ...]:
    return blocks_of(stage, read) or ()


def _shared(stage: Stage, blocks: Sequence[ChoiceBlock]) -> bool:
    """Whether what is left inside is a product of matrices: several results share each element of each operand."""
    sizes = {b.axis: b.size for b in blocks}
    left = {a.name: sizes.get(a.name, a.extent) for a in stage.spatial}
    summed = {a.name for a in stage.reduction}
    moving = [_moving(r, sizes) for r in reads(stage.assign.value) if summed & index_vars(r.index)]
    return all(prod(n for name, n in left.items() if name not in names) >= FEWEST for names in moving)


def _moving(read: Read, blocks: Collection[str]) -> frozenset[str]:
    """The axes of a stage that move an operand inside of the loops that choose, which choose by `blocks`."""
    own = (index_vars((part,)) - (frozenset(blocks) if is_value(part) else frozenset()) for part in read.index)
    return frozenset().union(*own)


def _may_go_outside(program: Program, stage: Stage, blocks: Sequence[ChoiceBlock], numerics: str) -> bool:
    """Whether the loops may be outermost: no two of their iterations meet but in the sum itself, which keeps its order
    or need not."""
    found = analyse(program).stage(stage.name)
    kinds = {a.axis: a.kind for a in found.axes}
    return all(kind != "serial" for kind in kinds.values()) and (
        _in_order(stage, blocks) or accepts(numerics, "reassociated")
    )


def _in_order(stage: Stage, blocks: Sequence[ChoiceBlock]) -> bool:
    """Whether each sum takes its terms in the order of the program: the loops that reduce are the outermost of those,
    and only the last is in blocks of several."""
    names = [a.name for a in stage.reduction]
    moved = [b for b in blocks if b.axis in names]
    first = [b.axis for b in moved] == names[: len(moved)]
    return first and all(b.size == 1 for b in moved[:-1])
