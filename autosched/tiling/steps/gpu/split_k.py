"""The reduction of one tile shared by several blocks: split-K, or stream-K, where all blocks get as many slices.

Partial sums go to memory, and a second grid adds them up; or the blocks of a share are a cluster, and each worker of
theirs adds up what the others leave in their shared memory: nothing goes through memory, and nothing is launched twice.
Sums in another order than the program's need an instruction that promises no order, or exact arithmetic.
"""

from __future__ import annotations

from math import prod

from autosched.ir.value import Literal
from autosched.logic import Const, Int, Var, any_of, ceil_div, where
from autosched.machine.target import Target
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.step import Decision, Handle, Rule, Step
from autosched.tiling.steps.gpu.block_tile import gpu_pair, outside_blocks, workers_name
from autosched.tiling.steps.gpu.warp_roles import BARRIER_BYTES, PRODUCER, offers_roles

STREAM = 0
SPLITS = (1, 2, 4, 8)
MEMORY, CLUSTER = 0, 1
GATHERED = (2, 4)
"""Blocks of a split that may be a cluster."""
SLICES_EACH = 2
"""Slices that one block of a split has at least: a shorter reduction is not worth a second pass over the output."""
SPLIT = Handle("split", 1)
GATHER = Handle("gather", MEMORY)


def may_split(nest: Nest) -> bool:
    """Whether partial sums may be added up in another order: sums, exact or of no promised order."""
    numerics = nest.intrinsic.numerics
    unordered = numerics.accumulate in ("exact", "unordered")
    return nest.depth is not None and nest.stage.assign.op == "+=" and unordered


def may_gather(nest: Nest, target: Target) -> bool:
    """Whether blocks of a cluster can add up their shares: workers that a producer feeds, of sums that begin with 0."""
    init = nest.stage.init
    zero = isinstance(init, Literal) and init.value == 0
    able = offers_roles(nest, target) and bool(nest.intrinsic.shared_memory)
    return may_split(nest) and able and zero and len(nest.intrinsic.accumulator.shape) == 2


def share_columns(nest: Nest) -> int:
    """Elements from one row of a share to the next in shared memory: an odd number of 32 bytes, so that eight rows meet
    all banks once."""
    out = nest.intrinsic.accumulator
    eighth = 32 // out.dtype.bytes
    return out.shape[1] + (eighth if out.shape[1] // eighth % 2 == 0 else 0)


def share_bytes(nest: Nest, names: StepNames) -> Int:
    """Bytes of a block's shares in its shared memory, with the barrier that says they are there."""
    out = nest.intrinsic.accumulator
    total: Int = Const(out.shape[0] * share_columns(nest) * out.dtype.bytes)
    for axis in gpu_pair(nest):
        total = total * Var(names.register(axis)) * Var(workers_name(nest, names, axis))
    return total + BARRIER_BYTES


def gpu_split(nest: Nest, target: Target, names: StepNames) -> Step:
    """`split`: blocks that share the reduction of each tile; `stream`: all slices of all tiles are cut evenly among as
    many blocks as there are cores; `gather`: where shares are added up. Derived: `split_slices` (slices of one block's
    share), `work` (shares in all), `share_bytes` (in shared memory)."""
    each, work, slices, held = names("split_slices"), names("work"), Var(names("slices")), names("share_bytes")
    if not may_split(nest):
        return Step("gpu split", (), (), {each: slices, work: Var(names("tiles")), held: Const(0)})
    split, tiles, persistent = Var(names(SPLIT.name)), Var(names("tiles")), Var(names("persistent"))
    resident = Var(names("resident"))
    stream = split.eq(STREAM)
    share = where(stream, ceil_div(tiles * slices, resident), ceil_div(slices, where(stream, 1, split)))
    used = stream | split.eq(1) | ceil_div(slices, Var(each)).eq(split)
    whole = stream | split.eq(1) | persistent.eq(0) | (slices % where(stream, 1, split)).eq(0)
    long = split.eq(1) | (Var(each) >= SLICES_EACH)
    rules: tuple[Rule, ...] = (
        Rule(split.name, used, "{" + split.name + "} blocks for {" + slices.name + "} slices: some have none"),
        Rule(names("split_even"), whole, "{" + split.name + "} does not divide {" + slices.name + "} slices, and "
             "persistent blocks take shares of one length"),
        Rule(names("split_waves"), split.eq(1) | (tiles < resident * 2), "{" + tiles.name + "} tiles keep cores busy"),
        Rule(each, long, "{" + each + f"}} slices in a share < {SLICES_EACH}"),
        Rule(names("stream"), ~stream | persistent.eq(0), "stream-K blocks are as many as cores already"),
        Rule(names("stream_tiles"), ~stream | (tiles * slices >= resident * SLICES_EACH) & (tiles % resident).ne(0),
             "stream-K of {" + tiles.name + "} tiles on {" + resident.name + "} blocks: even without it, or too few"),
    )  # fmt: skip
    decisions: tuple[Decision, ...] = (
        Decision(
            split.name, (1, *SPLITS[1:], STREAM), ("1", *map(str, SPLITS[1:]), "stream"), held=_even(nest, target)
        ),
    )
    derived = {each: share, work: where(stream, resident, tiles * where(stream, 1, split)), held: Const(0)}
    inert = {split.name: Var(names("staged")).eq(0)}
    if may_gather(nest, target):
        gather = Var(names(GATHER.name))
        decisions += (Decision(gather.name, (MEMORY, CLUSTER), ("memory", "cluster"), held=MEMORY),)
        rules += _gathered(nest, gather, names)
        derived[held] = where(gather.eq(CLUSTER), share_bytes(nest, names), 0)
        inert[gather.name] = split.eq(1) | stream
    return Step("gpu split", decisions, rules, derived, inert)


def _even(nest: Nest, target: Target) -> int | None:
    """No split where blocks of any tile are so many that none is legal; None where one may be."""
    out = nest.intrinsic.accumulator
    each = target.limits.get("registers_per_core", 65536) * 32 // (out.elements * out.dtype.bits)
    tiles = outside_blocks(nest) * prod(a.units for a in gpu_pair(nest)) // max(1, each)
    return 1 if tiles >= 2 * target.cores else None


def _gathered(nest: Nest, gather: Var, names: StepNames) -> tuple[Rule, ...]:
    """All blocks of a cluster take as many slices: beyond the depth's end, but of no other axis, they hold zeros."""
    split, memory = Var(names(SPLIT.name)), gather.eq(MEMORY)
    few = any_of(*(split.eq(n) for n in GATHERED))
    free = Var(names("cluster")).eq(0) & Var(names("persistent")).eq(0) & Var(names("roles")).eq(PRODUCER)
    even = (Var(names("slices")) % where(memory, 1, split)).eq(0)
    alone = all(a.units == 1 for a in nest.reduction if a is not nest.depth)
    rules = (
        Rule(names(GATHER.name), memory | few, "a cluster of {" + split.name + "} blocks shares a reduction"),
        Rule(names("gather_free"), memory | free, "a cluster that shares a reduction has one tile, and producers"),
    )
    sentence = "{" + split.name + "} blocks of a cluster share {" + names("slices") + "} slices: not all as many"
    return rules if alone else (*rules, Rule(names("gather_even"), memory | even, sentence))
