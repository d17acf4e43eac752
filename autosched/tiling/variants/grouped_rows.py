"""Programs with members of groups as an axis of their own, so that those of a group share a tile of a product, and what
they all read is read once for them (`ir.rewrites.grouped_loops`): heads of queries that share one of keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from autosched.ir.program import Program
from autosched.ir.rewrites.grouped_loops import split_axes, split_groups
from autosched.ir.rewrites.rewrite import simplify
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.matcher.match import match
from autosched.tiling.variants.adapted import Variant, adapted_programs
from autosched.tiling.variants.products import is_product

GROUPS = "grouped rows"
"""The name of the rewrite."""


def grouped_programs(
    program: Program, intrinsics: Sequence[Intrinsic], numerics: str, conditions: str, typed: bool
) -> Iterator[Variant]:
    """The program and what adapters make of it, with groups apart; nothing where no product has an operand that members
    of a group share."""
    found = None if program.symbolic else split_groups(program)
    if found is None:
        return
    after, _ = simplify(found.after)
    products = {s.assign.tensor for s in program.stages if is_product(s)}
    apart = [s for s in after.stages if s.assign.tensor in products and len(s.axes) > len(program.stage(s.name).axes)]
    if not apart:
        return
    names = tuple(s.name for s in apart)
    axis = split_axes(program.stage(apart[0].name), apart[0])[0]
    verdict = RewriteVerdict(GROUPS, axis.name, names, "bitwise", because=found.proof)
    matches = tuple(match(after, intrinsics, numerics=numerics))
    for variant in adapted_programs(after, matches, intrinsics, numerics, conditions, typed=typed):
        yield replace(variant, rewrites=(verdict,))
