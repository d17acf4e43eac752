"""Scalar parts: how the loops of a stage without an instruction are ordered, vectorised and shared out, as far as its
dependences allow."""

from __future__ import annotations

from autosched.ir.nodes import Axis, Stage
from autosched.ir.program import Program
from autosched.ir.value import Index, Read
from autosched.ir.variables import condition_vars
from autosched.logic import Const, Int, affine, all_of, conjuncts, free_vars
from autosched.tiling.analysis.dependence import Dependences
from autosched.tiling.analysis.running_sums import running_axis
from autosched.tiling.plans.carried_elements import element_before
from autosched.tiling.plans.float_policy import FloatPolicy
from autosched.tiling.plans.guards import spatial_formulas, stays_inside
from autosched.tiling.plans.nest import box_of
from autosched.tiling.plans.plan import ScalarPart
from autosched.tiling.plans.step_names import StepNames

EXTREMES = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f16", "bf16", "f32", "f64")
"""Dtypes with a number (or infinity) that every other is at least, or at most."""


def scalar_part(
    program: Program,
    stage: Stage,
    names: StepNames,
    dependences: Dependences,
    policy: FloatPolicy = FloatPolicy(),
    fused: bool = False,
    serial: bool = True,
) -> ScalarPart:
    """Spatial loops go outside where all of them are independent; otherwise loops stay as written. `fused`: the target
    multiplies and adds in one instruction; `serial`: one thread computes neighbours one after the other."""
    found = dependences.stage(stage.name)
    independent = set(found.of_kind("independent"))
    spatial = [a.name for a in stage.spatial]
    written = [a.name for a in stage.axes]
    order = written
    free = not found.of_kind("serial") and set(spatial) <= independent and not _needs_order(stage, spatial)
    if free:
        order = spatial + [n for n in written if n not in spatial]
    running = running_axis(stage) if serial and free and _in_register(program, stage) else None
    if running is not None:
        order = [n for n in order if n != running]
        order.insert(len(spatial) - 1, running)
    inner = next((n for n in reversed(order) if n in spatial and n != running), None)
    after = order[order.index(inner) + 1 :] if inner else []
    vector = inner if inner in independent and _may_move(stage, inner) else None
    if vector and not set(after) <= {running, *(a.name for a in stage.reduction)}:
        vector = None
    innermost = set(order[len(spatial) :]) == {a.name for a in stage.reduction}
    register = bool(stage.reduction) and innermost and _in_register(program, stage)
    across = _across(stage, order[len(spatial) :], policy) if register and free and running is None else None
    if across is not None:
        order = [n for n in order if n != across] + [across]
    reductions = [a.name for a in stage.reduction]
    alone = len(reductions) == 1 and _may_move(stage, reductions[0]) and not stage.guards
    last = order[-1] if order else ""
    carried = last if serial and _may_move(stage, last) and element_before(stage, last) is not None else None
    beside = order[-2] if carried and len(order) > 1 and order[-2] in independent else None
    return ScalarPart(
        stage,
        names,
        tuple(order),
        vector,
        parallel=bool(order) and order[0] in independent and order[0] != running,
        register=register,
        across=across,
        rows=inner if across and inner in independent and _may_move(stage, inner) else beside,
        blocked=reductions[0] if register and free and alone and vector and stage.init is not None else None,
        running=running,
        carried=carried,
        policy=policy,
        fused=fused and policy.reassociate,
    )


def _across(stage: Stage, reductions: list[str], policy: FloatPolicy) -> str | None:
    """The reduction axis along which operands lie side by side in memory, if terms may come in any order."""
    op, dtype = stage.assign.op, stage.assign.value.dtype
    if not policy.reorders(op, dtype) or (op in ("min=", "max=") and dtype.name not in EXTREMES):
        return None
    for name in reversed(reductions):
        innermost = name == reductions[-1] and _turns(stage, name)
        if (innermost or _may_move(stage, name)) and any(side_by_side(r, name) for r in stage.reads):
            moved = reductions[-1] != name
            if not moved or all(_may_move(stage, n) for n in reductions):
                return name
    return None


def side_by_side(read: Read, axis: str) -> bool:
    """Whether the elements read along the axis are neighbours in memory; a row that data choose is one row along it."""
    *outer, last = (slope_along(i, axis) for i in read.index) if read.index else (None,)
    return last == 1 and all(slope == 0 for slope in outer)


def slope_along(part: Index, axis: str) -> int | None:
    """How far a subscript moves for each step along an axis; None where that is no constant."""
    if not isinstance(part, Int):
        return 0 if axis not in condition_vars(part) else None
    form = affine(part)
    if form is None:
        return 0 if axis not in free_vars(part) else None
    return form.coefficient(axis)


def _may_move(stage: Stage, name: str | None) -> bool:
    """Whether an axis has constant bounds, runs at all, and bounds no other axis."""
    axis = {a.name: a for a in stage.axes}.get(name or "")
    return axis is not None and is_constant(axis) and axis.extent > 0 and not _bounded_by(stage, axis.name)


def _in_register(program: Program, stage: Stage) -> bool:
    """Whether the target may be loaded before the reductions and stored after them: nobody reads it meanwhile, it is
    not just overwritten (then it need not be there before), and its address needs no guard of a reduction."""
    assign = stage.assign
    if assign.op == "=" or assign.tensor in {r.tensor for r in stage.reads}:
        return False
    if stage.init is not None:
        return True
    try:
        box, bounds = box_of(stage.axes, program.symbolic)
    except ValueError:
        return False
    ranges = program.symbolic | {name: (low, low + extent - 1) for name, (low, extent) in box.items()}
    facts = all_of(bounds, *spatial_formulas(stage))
    over_spatial = all_of(*(c for c in conjuncts(facts) if free_vars(c) <= {a.name for a in stage.spatial}))
    return stays_inside(stage.target, program.tensors[assign.tensor].extents, ranges, over_spatial)


def is_constant(axis: Axis) -> bool:
    """Whether neither bound depends on other axes or on a symbolic size."""
    return isinstance(axis.lower, Const) and isinstance(axis.upper, Const)


def _turns(stage: Stage, name: str) -> bool:
    """Whether an innermost axis runs from a bound to another that axes around it decide, perhaps not at all."""
    axis = {a.name: a for a in stage.axes}[name]
    return affine(axis.lower) is not None and affine(axis.upper) is not None and not _bounded_by(stage, name)


def _bounded_by(stage: Stage, axis: str) -> bool:
    return any(axis in free_vars(a.lower) | free_vars(a.upper) for a in stage.axes)


def _needs_order(stage: Stage, spatial: list[str]) -> bool:
    """Whether a spatial axis's bounds depend on a reduction axis, so that it cannot go outside it."""
    outer = {a.name for a in stage.axes} - set(spatial)
    return any(outer & (free_vars(a.lower) | free_vars(a.upper)) for a in stage.spatial)
