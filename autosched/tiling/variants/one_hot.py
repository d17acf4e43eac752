"""Programs with sums over numbers of which data say one (`ir.rewrites.one_hot`): the element is read at that number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from autosched.ir.program import Program
from autosched.ir.rewrites.listing import accepted
from autosched.ir.rewrites.one_hot import one_hot
from autosched.ir.rewrites.rewrite import simplify
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.matcher.match import match
from autosched.tiling.variants.adapted import Variant, adapted_programs

MOST = 8
"""Sums of a program that are looked up."""


def one_hot_programs(
    program: Program, intrinsics: Sequence[Intrinsic], numerics: str, conditions: str, typed: bool = False
) -> Iterator[Variant]:
    """The program with all such sums looked up, where that is proved at the level asked for, and what adapters make of
    it. `conditions` and `typed` as in `variants.adapted`."""
    if program.symbolic:
        return
    after, steps = program, list[RewriteVerdict]()
    while len(steps) < MOST:
        found = next((v for v in one_hot(after) if accepted(v, numerics)), None)
        if found is None or found.after is None:
            break
        after = found.after
        steps.append(replace(found, after=None))
    if not steps:
        return
    after, _ = simplify(after)
    matches = match(after, intrinsics, numerics)
    for variant in adapted_programs(after, matches, intrinsics, numerics, conditions, typed=typed):
        yield replace(variant, rewrites=tuple(steps))
