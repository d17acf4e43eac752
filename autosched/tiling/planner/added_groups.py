"""Which nests of a program's stages may add up the sums of groups as they are summed (`tiling.plans.group_sums`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from autosched.ir.nodes import Stage, is_zero
from autosched.ir.program import Program
from autosched.ir.value import Literal
from autosched.logic import Int, Var
from autosched.logic.walk import substitute_int
from autosched.machine.target import Target
from autosched.tiling.analysis.accesses import all_reads
from autosched.tiling.analysis.dependence import Dependences
from autosched.tiling.plans.epilogue import corresponding
from autosched.tiling.plans.group_sums import GroupSums
from autosched.tiling.plans.nest import Nest, make_nest
from autosched.tiling.plans.scalar_parts import is_constant
from autosched.tiling.steps import is_gpu
from autosched.tiling.steps.gpu.block_tile import worker_threads
from autosched.tiling.steps.gpu.promotion import factor_registers
from autosched.tiling.steps.gpu.thread_registers import MOST_ADDRESSED, taken_by, thread_registers


def with_group_sums(
    program: Program, nests: Mapping[str, Nest], dependences: Dependences, elsewhere: Collection[str], target: Target
) -> dict[str, Nest] | None:
    """The nests of a plan on a GPU, by stage, with those that can adding up sums of groups, in the place of the stages
    that add them, unless these are computed `elsewhere`; None where none can."""
    made: dict[str, Nest] = {}
    replaced: set[str] = set()
    for name, nest in nests.items() if is_gpu(target) else ():
        both = adding_up(program, nest)
        if both is None or name in made or both.stage.name in elsewhere or not _fits(both, target):
            continue
        alone = dependences.stage(both.stage.name).of_kind("independent")
        if {a.name for a in program.stage(both.stage.name).spatial} <= {*alone}:  # each sum is one iteration's
            made[both.stage.name] = both
            replaced |= {name, both.stage.name}
    return {n: nest for n, nest in nests.items() if n not in replaced} | made if made else None


def _fits(nest: Nest, target: Target) -> bool:
    """Whether a thread has room for its part of one tile of sums, and of a group's beside it."""
    threads = worker_threads(nest.intrinsic, target)
    each = 2 * thread_registers(nest.intrinsic.accumulator, threads) + factor_registers(nest, threads)
    return taken_by(nest).base + each <= target.limits.get("registers_per_thread", MOST_ADDRESSED)


def adding_up(program: Program, nest: Nest) -> Nest | None:
    """The nest of a stage and of the one that adds its sums up, group by group; None where that is not the same.

    One other stage reads the sums, and adds something made of each, once, to elements of its own, all groups of which
    it adds up. The nest runs at the place of the second, so nothing between the two writes what the first reads; no
    loop has bounds that move, no guard leaves anything out, and it is known which lane holds which of the sums.
    """
    stage, mapping = nest.mapping.stage, nest.mapping
    stages = list(program.stages)
    first = next((k for k, s in enumerate(stages) if s.name == stage.name), None)
    if first is None or mapping.conditions or mapping.assumed or stage.guards:
        return None
    if nest.intrinsic.accumulator.opaque is not None or not nest.intrinsic.accumulates or nest.intrinsic.selected:
        return None
    tensor = stage.assign.tensor
    touched = ({s.assign.tensor, *(r.tensor for r in all_reads(s))} for s in stages)
    readers = [k for k, tensors in enumerate(touched) if k != first and tensor in tensors]
    if not program.tensors[tensor].intermediate or len(readers) != 1 or readers[0] < first:
        return None
    adding, between = stages[readers[0]], stages[first + 1 : readers[0]]
    sources = {r.tensor for r in stages[first].reads}
    axes = _axes(stages[first], adding)
    if axes is None or not stage.reduction or any(s.assign.tensor in sources for s in between):
        return None
    groups = tuple(axes[a.name] for a in adding.reduction)
    if not {*groups} <= {*mapping.outer}:
        return None
    summed = _summed(stage, adding, axes, groups)
    same = program.tensors[tensor].dtype == program.tensors[adding.assign.tensor].dtype == summed.target.dtype
    if not same or not groups or not all(map(is_constant, summed.axes)):
        return None
    made = make_nest(replace(mapping, stage=summed))
    return replace(made, computed=nest.computed, groups=GroupSums(tensor, stage.name, adding, axes, groups))


def _axes(stage: Stage, adding: Stage) -> dict[str, str] | None:
    """The axes of the second in terms of the first's, where it adds what it makes of each sum to an element, once."""
    tensor, init = stage.assign.tensor, adding.init
    plain = adding.assign.op == "+=" and not adding.guards and (init is None or isinstance(init, Literal))
    if not plain or stage.assign.op != "+=" or not is_zero(stage.init):
        return None
    elements = [r.index for r in adding.reads if r.tensor == tensor]
    if adding.assign.tensor in {r.tensor for r in (*adding.reads, *stage.reads)}:
        return None
    return next(corresponding(stage, adding, elements), None)


def _summed(stage: Stage, adding: Stage, axes: dict[str, str], groups: Sequence[str]) -> Stage:
    """Both as one sum over groups and what is in them, at the first one's axes and without factors."""
    names = {own: Var(other) for own, other in axes.items()}
    index = tuple(substitute_int(i, names) for i in adding.assign.index if isinstance(i, Int))
    by_name = {a.name: a for a in stage.axes}
    spatial = [axes[a.name] for a in adding.spatial]
    order = [by_name[n] for n in (*spatial, *groups)] + [a for a in stage.axes if a.name not in axes.values()]
    assign = replace(stage.assign, tensor=adding.assign.tensor, index=index)
    return Stage(adding.name, tuple(order), (), assign, adding.init)
