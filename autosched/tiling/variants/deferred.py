"""Programs with products whose factors are applied to their sums (`ir.rewrites.factors.defer`): the scale of a group of
weights once a group, and no more for each weight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from autosched.ir.program import Program
from autosched.ir.rewrites.factors.defer import defer
from autosched.ir.rewrites.listing import accepted
from autosched.ir.rewrites.rewrite import simplify
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.ir.rewrites.versions import separate_versions
from autosched.numerics_levels import accepts
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.matcher.match import match
from autosched.tiling.variants.adapted import Variant, adapted_programs
from autosched.tiling.variants.products import is_product


def deferred_programs(
    program: Program, intrinsics: Sequence[Intrinsic], numerics: str, conditions: str, typed: bool = False
) -> Iterator[Variant]:
    """The program with the factors of all its products deferred, where that is proved at the level asked for, and what
    adapters make of it. `conditions` and `typed` as in `variants.adapted`."""
    if program.symbolic or not accepts(numerics, "rescaled"):
        return
    after = separate_versions(program).program
    steps: list[RewriteVerdict] = []
    for name in [s.name for s in after.stages if is_product(s)]:
        found = next((v for v in defer(after, name) if accepted(v, numerics)), None)
        if found is not None and found.after is not None:
            after = found.after
            steps.append(replace(found, after=None))
    if not steps:
        return
    after, _ = simplify(after)
    matches = match(after, intrinsics, numerics)
    for variant in adapted_programs(after, matches, intrinsics, numerics, conditions, typed=typed):
        yield replace(variant, rewrites=tuple(steps))
