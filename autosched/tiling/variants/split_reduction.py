"""Programs with a sum cut into lanes: for operands that lie side by side along the sum, as the rows of a matrix times
a vector do, an instruction's lanes then hold partial sums, and no copy has to bring its operands together. Or cut into
stretches, one for each thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.ir.rewrites.split_reduction import Cut, split_reduction
from autosched.tensorize.intrinsic import Intrinsic
from autosched.tensorize.match_types import Obligation
from autosched.tensorize.matcher.match import match
from autosched.tiling.plans.float_policy import FloatPolicy
from autosched.tiling.plans.scalar_parts import is_constant, side_by_side
from autosched.tiling.variants.adapted import Variant

REUSE = 16
"""Points of a stage for each element of its largest operand: beyond, copying it costs little beside computing."""
LONG = 1 << 14
"""Terms of a sum that are worth sharing out among threads."""
MOST = 2
"""Cuts tried for one stage, of the widest instructions."""


def split_programs(
    program: Program, intrinsics: Sequence[Intrinsic], numerics: str, policy: FloatPolicy, threads: int = 1
) -> Iterator[Variant]:
    """A variant for each sum along which all operands lie side by side, and each instruction that adds up groups."""
    if threads > 1:
        yield from _stretches(program, threads, policy)
    for stage in program.stages:
        axis = _along(program, stage)
        if axis is None or not policy.reorders(stage.assign.op, stage.assign.value.dtype):
            continue
        fitting = [i for i in intrinsics if _groups(i) is not None and _takes(i, program, stage)]
        fitting.sort(key=lambda i: -i.operations)
        cuts = dict.fromkeys(c for i in fitting if (c := _groups(i)) is not None)
        for cut in list(cuts)[:MOST]:
            found = split_reduction(program, stage, axis, cut)
            if found is None:
                continue
            (made,) = set(found.after.tensors) - set(program.tensors)
            name = next(s.name for s in found.after.stages if s.assign.tensor == made)
            same = [i for i in fitting if _groups(i) == cut]
            matches = tuple(match(found.after, same, numerics, [name]))
            mapping = next((m for answer in matches for m in answer.mappings), None)
            if mapping is not None:
                proved = tuple(Obligation("adapter", argument, "structure") for argument in found.proof)
                yield Variant(found.after, matches, (found.name,), {name: mapping.adapted((found.name,), proved)})


def _stretches(program: Program, threads: int, policy: FloatPolicy) -> Iterator[Variant]:
    """Long sums with fewer results than threads, one stretch a thread."""
    for stage in program.stages:
        constant = all(is_constant(a) for a in stage.axes)
        if not constant or not stage.reduction or prod(a.extent for a in stage.spatial) >= threads:
            continue
        axis = max(stage.reduction, key=lambda a: a.extent)
        if axis.extent >= LONG and policy.reorders(stage.assign.op, stage.assign.value.dtype):
            found = split_reduction(program, stage, axis.name, Cut(threads, inside=False))
            if found is not None:
                yield Variant(found.after, (), (found.name,))


def _along(program: Program, stage: Stage) -> str | None:
    """The reduction axis along which every operand lies side by side, if there is little reuse."""
    if not all(is_constant(a) for a in stage.axes) or len(stage.reads) < 2:
        return None
    largest = max(prod(program.tensors[r.tensor].extents) for r in stage.reads)
    if prod(a.extent for a in stage.axes) > REUSE * largest:
        return None
    names = [a.name for a in stage.reduction if all(side_by_side(r, a.name) for r in stage.reads)]
    return names[0] if names else None


def _groups(intrinsic: Intrinsic) -> Cut | None:
    """The lanes of an instruction with one axis of results, and how many terms each adds up."""
    if len(intrinsic.spatial) != 1 or len(intrinsic.reduction) != 1 or intrinsic.scope != "thread":
        return None
    return Cut(intrinsic.spatial[0].extent, intrinsic.reduction[0].extent)


def _takes(intrinsic: Intrinsic, program: Program, stage: Stage) -> bool:
    """Whether the instruction's operands have the dtypes of the stage's."""
    own = sorted(o.dtype.name for o in intrinsic.inputs)
    return own == sorted(program.tensors[r.tensor].dtype.name for r in stage.reads)
