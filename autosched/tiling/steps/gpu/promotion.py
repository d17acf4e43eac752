"""Promotion: sums on an accumulator of few bits are emptied into one of full precision every few slices.

Hopper's fp8 instructions keep 13 fraction bits of a sum; public kernels add partial sums up every 128 terms. Sums of
groups (`tiling.plans.group_sums`) are added up likewise, each when its group is done.
"""

from __future__ import annotations

from functools import partial
from math import prod

from autosched.ir.value import Value, map_value
from autosched.logic import Const, Int, Var, minimum
from autosched.logic.walk import substitute_int
from autosched.tiling.plans.cached_on_nest import of_nest
from autosched.tiling.plans.group_sums import GroupSums
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.step import Decision, Handle, Rule, Step

INTERVALS = (0, 1, 2, 4)
PROMOTE = Handle("promote", 0)
TILES_SEEN = 16
MOST_KEPT = 8
"""Numbers that a thread loads of a factor of one tile before a group is summed, to have them when it is."""


def may_promote(nest: Nest) -> bool:
    """Whether the instruction's accumulator keeps fewer bits than its type has."""
    accumulator = nest.intrinsic.accumulator.dtype
    few = accumulator.is_float and nest.intrinsic.numerics.kept_bits(accumulator.mantissa) < accumulator.mantissa
    return few and nest.depth is not None and nest.stage.assign.op == "+="


def gpu_promote(nest: Nest, names: StepNames) -> Step:
    """`promote`: slices after which partial sums are added up (0: never); of sums of groups it is derived, and no
    decision. Derived: `promoted`, 1 where they are added up."""
    promoted = names("promoted")
    if nest.groups is not None:
        return _groups(nest, names)
    if not may_promote(nest):
        return Step("gpu promote", (), (), {promoted: Const(0)})
    interval, each = Var(names(PROMOTE.name)), Var(names("split_slices"))
    sentence = "partial sums of {" + interval.name + "} slices are all of a share's {" + each.name + "}"
    return Step(
        "gpu promote",
        (Decision(interval.name, INTERVALS, ("never", *(str(n) for n in INTERVALS[1:]))),),
        (Rule(interval.name, interval.eq(0) | (interval < each), sentence),),
        {promoted: minimum(1, interval)},
        {interval.name: Var(names("staged")).eq(0)},
    )


def _groups(nest: Nest, names: StepNames) -> Step:
    """A block has whole groups, whose slices it fetches into shared memory."""
    each, staged = names(PROMOTE.name), Var(names("staged"))
    long, share = group_slices(nest, Var(names("slices"))), Var(names("split_slices"))
    rules = (
        Rule(names("groups_staged"), staged > 0, "sums of groups are of slices in shared memory"),
        Rule(names("groups_split"), (share % long).eq(0), "a share's {" + share.name + "} slices are no whole groups"),
    )
    return Step("gpu promote", (), rules, {names("promoted"): Const(1), each: long})


def group_slices(nest: Nest, slices: Int) -> Int:
    """The slices of a group, of all `slices` of the reduction."""
    assert nest.groups is not None
    return slices // prod(nest.by_name[nest.members[g].name].extent for g in nest.groups.groups)


def kept_factors(nest: Nest, threads: int) -> tuple[Value, ...]:
    """The factors of a group's sum that a thread, of so many that hold a tile of sums, loads before it has the sum."""
    return tuple(factor for factor, n in _counted(nest, threads) if n <= MOST_KEPT)


def factor_registers(nest: Nest, threads: int) -> int:
    """Registers of a thread for the factors of one tile. Compilers load all that are loaded late at once, each by an
    address of its own: 38 of a tile of 152 columns did not fit beside two sets of sums, 32 of 128 columns did."""
    return sum(n if n <= MOST_KEPT else 3 * n for _, n in _counted(nest, threads))


@of_nest
def _counted(nest: Nest, threads: int) -> tuple[tuple[Value, int], ...]:
    """The factors of a group's sum, each with the numbers of it that a thread multiplies one tile by."""
    groups = nest.groups
    return () if groups is None else tuple((v, _numbers(nest, groups, v, threads)) for v in groups.known)


def _numbers(nest: Nest, groups: GroupSums, factor: Value, threads: int) -> int:
    """How many elements of a factor the first of these threads multiplies by: those that are the same in all tiles (of
    those that are looked at) are one."""
    out = nest.intrinsic.accumulator
    held, names = out.fragment or out.order, nest.intrinsic.operand_axes[out.name]
    places: set[tuple[Value, ...]] = set()
    for element in range(out.lane_elements(threads)):
        first = {v: Const(element if v == held.domain[-1][0] else 0) for v, _ in held.domain}
        where = (substitute_int(c, first) for c in held.coordinates)
        lanes = {n: c for n, c in zip(names, where, strict=True) if n is not None}
        found = []
        for tile in range(TILES_SEEN):
            axes = nest.at({a.name: lanes.get(a.intrinsic_axis or "", Const(0)) + tile * a.unit for a in nest.axes})
            at = {own: axes[other] for own, other in groups.axes.items()}
            found.append(map_value(factor, on_int=partial(substitute_int, values=at)))
        places.add(tuple(found))
    return len(places)
