"""Programs with products whose factors are applied to their sums (`ir.rewrites.factors.defer`): the scale of a group of
weights once a group, and no more for each weight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from autosched.ir.program import Program
from autosched.ir.rewrites.factors.defer import defer
from autosched.ir.rewrites.listing import accepted
from autosched.ir.rewrites.rewrite import simplify
from autosched.ir.rewrites.tiles.in_turn import in_turn
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.ir.rewrites.versions import separate_versions
from autosched.numerics_levels import accepts
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.matcher.match import match
from autosched.tiling.analysis.windows import new_loops
from autosched.tiling.variants.adapted import Variant, adapted_programs
from autosched.tiling.variants.products import is_product

BLOCK_TILES = ((128, 128), (64, 128), (64, 64), (16, 64))
"""Rows and columns of the sums that a block of a GPU's grid holds in registers."""
CORE_TILES = ((16, 64), (16, 128))
"""The same of a CPU, whose first cache has the tile between the groups: each group's sums stay in registers, and are
scaled once."""
MOST_TILES = 2
"""Of either, the first that divide the results have plans."""


def deferred_programs(
    program: Program,
    intrinsics: Sequence[Intrinsic],
    numerics: str,
    conditions: str,
    typed: bool = False,
    tiles: Sequence[tuple[int, int]] = (),
) -> Iterator[Variant]:
    """The program with the factors of all its products deferred, where that is proved at the level asked for, and what
    adapters make of it; and with sums of groups that are added up in `tiles` as they are finished. `conditions` and
    `typed` as in `variants.adapted`."""
    if program.symbolic or not accepts(numerics, "rescaled"):
        return
    after, checked = separate_versions(program).program, not accepts(numerics, "real")
    steps: list[RewriteVerdict] = []
    for name in [s.name for s in after.stages if is_product(s)]:
        found = next((v for v in defer(after, name, checked) if accepted(v, numerics)), None)
        if found is not None and found.after is not None:
            after = found.after
            steps.append(replace(found, after=None))
    if not steps:
        return
    plain, (after, _) = after, simplify(after)
    for tile, turn in islice(_in_turn(plain, tiles), MOST_TILES):
        named = [replace(v, name=f"{v.name} {tile[0]}x{tile[1]}") for v in steps]
        yield Variant(turn, (), rewrites=tuple(named), loops=new_loops(after, turn))
    matches = match(after, intrinsics, numerics)
    for variant in adapted_programs(after, matches, intrinsics, numerics, conditions, typed=typed):
        yield replace(variant, rewrites=tuple(steps))


def _in_turn(program: Program, tiles: Sequence[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], Program]]:
    """The program with sums of sums in tiles, for each shape that some of them have."""
    parts = [t.name for t in program.tensors.values() if t.intermediate]
    for tile in tiles:
        found = program
        for part in parts:
            found = in_turn(found, part, tile) or found
        if found is not program:
            yield tile, simplify(found)[0]
