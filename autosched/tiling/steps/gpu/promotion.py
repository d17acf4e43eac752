"""Promotion: sums on an accumulator of few bits are emptied into one of full precision every few slices.

Hopper's fp8 instructions keep 13 fraction bits of a sum; public kernels add partial sums up every 128 terms.
"""

from __future__ import annotations

from autosched.logic import Const, Var, minimum
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.step import Decision, Handle, Rule, Step

INTERVALS = (0, 1, 2, 4)
PROMOTE = Handle("promote", 0)


def may_promote(nest: Nest) -> bool:
    """Whether the instruction's accumulator keeps fewer bits than its type has."""
    accumulator = nest.intrinsic.accumulator.dtype
    few = accumulator.is_float and nest.intrinsic.numerics.kept_bits(accumulator.mantissa) < accumulator.mantissa
    return few and nest.depth is not None and nest.stage.assign.op == "+="


def gpu_promote(nest: Nest, names: StepNames) -> Step:
    """`promote`: slices after which partial sums are added up (0: never). Derived: `promoted`, 1 where they are."""
    promoted = names("promoted")
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
