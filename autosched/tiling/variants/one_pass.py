"""Programs with stages of one axis in one pass over tiles of rows and blocks of that axis (`ir.rewrites.online`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from autosched.ir.program import Program
from autosched.ir.rewrites.online.search import online
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Match
from autosched.tensorize.matcher.match import match
from autosched.tiling.variants.adapted import Variant

SIZES = ((64, 128), (128, 256), (32, 64))
"""Rows of a tile and elements of a block: what is handed on is to stay in the first or second cache."""
LEVELS = ("bitwise", "special", "reassociated", "rescaled", "real")


def one_pass_programs(program: Program, intrinsics: Sequence[Intrinsic], numerics: str) -> Iterator[Variant]:
    """A variant for each size of tiles and blocks, where the pass is proved at the level asked for. None for a program
    with sizes that are not known."""
    if program.symbolic or LEVELS.index(numerics) < LEVELS.index("rescaled"):
        return
    seen = set()
    for tile, block in SIZES:
        for found in online(program, numerics == "real", block=block, tile=tile):
            level = found.numerics
            if level is None or found.after is None or LEVELS.index(level) > LEVELS.index(numerics):
                continue
            if str(found.after) not in seen:
                seen.add(str(found.after))
                named = replace(found, name=f"{found.name} {tile}x{block}", after=None)
                yield Variant(found.after, _matches(program, found.after, intrinsics, numerics), rewrites=(named,))
            break


def _matches(
    program: Program, after: Program, intrinsics: Sequence[Intrinsic], numerics: str
) -> tuple[Match, ...]:
    """Matches of the stages that are left as they were: those of a pass are matched in its loops."""
    level = "reassociated" if numerics == "rescaled" else numerics
    names = [s.name for s in after.stages if s.reduction and s in program.stages]
    return tuple(match(after, intrinsics, level, names)) if names else ()
