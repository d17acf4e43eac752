"""The reduction of one tile shared by several blocks: split-K, or stream-K, where all blocks get as many slices.

Partial sums go to memory, and a second grid adds them up. Sums in another order than the program's need an instruction
that promises no order, or exact arithmetic.
"""

from __future__ import annotations

from autosched.logic import Var, ceil_div, where
from autosched.tiling.nest import Nest
from autosched.tiling.step import Decision, Rule, Step
from autosched.tiling.steps.names import StepNames

STREAM = 0
SPLITS = (1, 2, 4, 8)
SLICES_EACH = 2
"""Slices that one block of a split has at least: a shorter reduction is not worth a second pass over the output."""


def may_split(nest: Nest) -> bool:
    """Whether partial sums may be added up in another order: sums, exact or of no promised order."""
    numerics = nest.intrinsic.numerics
    unordered = numerics.accumulate in ("exact", "unordered")
    return nest.depth is not None and nest.stage.assign.op == "+=" and unordered


def gpu_split(nest: Nest, names: StepNames) -> Step:
    """`split`: blocks that share the reduction of each tile; `stream`: all slices of all tiles are cut evenly among as
    many blocks as there are cores. Derived: `split_slices` (slices of one block's share), `work` (shares in all)."""
    each, work, slices = names("split_slices"), names("work"), Var(names("slices"))
    if not may_split(nest):
        return Step("gpu split", (), (), {each: slices, work: Var(names("tiles"))})
    split, tiles, persistent = Var(names("split")), Var(names("tiles")), Var(names("persistent"))
    resident = Var(names("resident"))
    stream = split.eq(STREAM)
    share = where(stream, ceil_div(tiles * slices, resident), ceil_div(slices, where(stream, 1, split)))
    used = stream | split.eq(1) | ceil_div(slices, Var(each)).eq(split)
    whole = stream | split.eq(1) | persistent.eq(0) | (slices % where(stream, 1, split)).eq(0)
    long = split.eq(1) | (Var(each) >= SLICES_EACH)
    rules = (
        Rule(split.name, used, "{" + split.name + "} blocks for {" + slices.name + "} slices: some have none"),
        Rule(names("split_even"), whole, "{" + split.name + "} does not divide {" + slices.name + "} slices, and "
             "persistent blocks take shares of one length"),
        Rule(names("split_waves"), split.eq(1) | (tiles < resident * 2), "{" + tiles.name + "} tiles keep cores busy"),
        Rule(each, long, "{" + each + f"}} slices in a share < {SLICES_EACH}"),
        Rule(names("stream"), ~stream | persistent.eq(0), "stream-K blocks are as many as cores already"),
        Rule(names("stream_tiles"), ~stream | (tiles * slices >= resident * SLICES_EACH) & (tiles % resident).ne(0),
             "stream-K of {" + tiles.name + "} tiles on {" + resident.name + "} blocks: even without it, or too few"),
    )  # fmt: skip
    return Step(
        "gpu split",
        (Decision(split.name, (1, *SPLITS[1:], STREAM), ("1", *map(str, SPLITS[1:]), "stream")),),
        rules,
        {each: share, work: where(stream, resident, tiles * where(stream, 1, split))},
        {split.name: Var(names("staged")).eq(0)},
    )
