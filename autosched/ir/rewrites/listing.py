"""`rewrites_of`: every rewrite of a program that applies, with its proof, and those that were tried and refused."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from autosched.ir.program import Program
from autosched.ir.rewrites.factors.defer import defer
from autosched.ir.rewrites.inline import inline_intermediates
from autosched.ir.rewrites.mask_bounds import mask_bounds
from autosched.ir.rewrites.one_hot import one_hot
from autosched.ir.rewrites.online.by_hand import states_by_hand
from autosched.ir.rewrites.online.search import BLOCK, online
from autosched.ir.rewrites.reuse import keep_common
from autosched.ir.rewrites.rewrite import Rewrite
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.ir.rewrites.versions import separate_versions
from autosched.numerics_levels import DEFAULT_NUMERICS, accepts

NAMES = ("online", "defer", "mask to bounds", "one-hot", "inline", "stage")
"""Names of rewrites, in the order in which they are listed."""


def rewrites_of(
    program: Program,
    numerics: str = DEFAULT_NUMERICS,
    block: int = BLOCK,
    parts: int = 1,
    tile: int | None = None,
    kinds: Collection[str] = NAMES,
) -> Iterator[RewriteVerdict]:
    """The verdicts of some `kinds` on a program. One that needs a weaker level than `numerics` says so and is listed
    all the same: its `numerics` is the level to accept. `block`, `parts` and `tile` are `online`'s, which takes the
    factors of its stages out: beside it these are not listed under `defer`."""
    single = separate_versions(program)
    taken = set[str]()
    if "online" in kinds:
        one_pass = [single.told(v) for v in online(single.program, numerics == "real", block, parts, tile)]
        yield from one_pass
        yield from map(single.told, states_by_hand(single.program))
        taken = {s for v in one_pass if v.reason is None for s in v.stages}
    if "defer" in kinds:
        yield from (v for v in map(single.told, defer(single.program)) if v.stages[0] not in taken)
    if "mask to bounds" in kinds:
        yield from mask_bounds(program)
    if "one-hot" in kinds:
        yield from one_hot(program)
    for name, make in (("inline", inline_intermediates), ("stage", keep_common)):
        found = make(program) if name in kinds else None
        if found is not None:
            yield _plain(name, found)


def _plain(name: str, found: Rewrite) -> RewriteVerdict:
    """A step that moves a computation, and changes no operation."""
    moved = tuple(s.name for s in found.before.stages if s not in found.after.stages)
    return RewriteVerdict(name, "", moved, "bitwise", after=found.after, because=found.proof)


def accepted(verdict: RewriteVerdict, numerics: str) -> bool:
    """Whether a rewrite is proved, and its level is one that `numerics` accepts."""
    level = verdict.numerics
    return level is not None and verdict.reason is None and accepts(numerics, level)
