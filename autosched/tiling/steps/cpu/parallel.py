"""Threads: how many, and the axis whose register tiles they share out in equal runs."""

from __future__ import annotations

from autosched.logic import Const, Int, Var, any_of, where
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.nest_geometry import NestAxis
from autosched.tiling.plans.step_names import StepNames, tiled_axes
from autosched.tiling.step import Decision, Handle, Rule, Step

THREADS = Handle("threads")
SPLIT = Handle("split")


def split_axes(nest: Nest) -> tuple[NestAxis, ...]:
    """Spatial axes with more than one intrinsic tile, outermost first."""
    return tuple(a for a in nest.spatial if a.units > 1)


def parallel(nest: Nest, threads: int, names: StepNames) -> Step:
    """`threads` and `split` (which spatial axis). A thread must have at least one tile of the axis."""
    axes = split_axes(nest)
    if threads == 1 or not axes:
        return Step("parallel", (Decision(names(THREADS.name), (1,)),))
    count, split = Var(names(THREADS.name)), Var(names(SPLIT.name))
    tiled = {a.name for a in tiled_axes(nest)}
    # An axis outside the register tile is shared out one by one.
    shares: list[Int] = [Var(names.tiles(a)) if a.name in tiled else Const(a.units) for a in axes]
    enough = any_of(*(split.eq(k) & (count <= share) for k, share in enumerate(shares)))
    share: Int = shares[-1]
    for k in reversed(range(len(axes) - 1)):
        share = where(split.eq(k), shares[k], share)
    tiles = {"shares": share}
    return Step(
        "parallel",
        (
            Decision(count.name, tuple(range(1, threads + 1))),
            Decision(split.name, tuple(range(len(axes))), tuple(a.name for a in axes)),
        ),
        (Rule(names(THREADS.name), enough, f"{{{count.name}}} threads > {{shares}} tiles of the split axis", tiles),),
        {names("shares"): share},
        {split.name: count.eq(1)},
    )
