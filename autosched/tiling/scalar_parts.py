"""Scalar parts: how the loops of a stage without an instruction are ordered, vectorised and shared out, as far as its
dependences allow."""

from __future__ import annotations

from autosched.ir.program import Axis, Program, Stage
from autosched.logic import Const, all_of, conjuncts, free_vars
from autosched.tiling.dependence import Dependences
from autosched.tiling.guards import spatial_formulas, stays_inside
from autosched.tiling.nest import box_of
from autosched.tiling.plan import ScalarPart
from autosched.tiling.steps import StepNames


def scalar_part(program: Program, stage: Stage, names: StepNames, dependences: Dependences) -> ScalarPart:
    """Spatial loops go outside where all of them are independent; otherwise loops stay as written."""
    found = dependences.stage(stage.name)
    independent = set(found.of_kind("independent"))
    spatial = [a.name for a in stage.spatial]
    written = [a.name for a in stage.axes]
    order = written
    if not found.of_kind("serial") and set(spatial) <= independent and not _needs_order(stage, spatial):
        order = spatial + [n for n in written if n not in spatial]
    inner = next((n for n in reversed(order) if n in spatial), None)
    by_name = {a.name: a for a in stage.axes}
    after = order[order.index(inner) + 1 :] if inner else []
    vector = inner if inner in independent and is_constant(by_name[inner]) and not _bounded_by(stage, inner) else None
    if vector and not set(after) <= {a.name for a in stage.reduction}:
        vector = None
    innermost = set(order[len(spatial) :]) == {a.name for a in stage.reduction}
    return ScalarPart(
        stage,
        names,
        tuple(order),
        vector,
        parallel=bool(order) and order[0] in independent,
        register=bool(stage.reduction) and innermost and _in_register(program, stage),
    )


def _in_register(program: Program, stage: Stage) -> bool:
    """Whether the target may be loaded before the reductions and stored after them: nobody reads it meanwhile, it is
    not just overwritten (then it need not be there before), and its address needs no guard of a reduction."""
    assign = stage.assign
    if assign.op == "=" or assign.tensor in {r.tensor for r in stage.reads}:
        return False
    if stage.init is not None:
        return True
    try:
        box, bounds = box_of(stage.axes)
    except ValueError:
        return False
    ranges = {name: (low, low + extent - 1) for name, (low, extent) in box.items()}
    facts = all_of(bounds, *spatial_formulas(stage))
    over_spatial = all_of(*(c for c in conjuncts(facts) if free_vars(c) <= {a.name for a in stage.spatial}))
    return stays_inside(stage.target, program.tensors[assign.tensor].extents, ranges, over_spatial)


def is_constant(axis: Axis) -> bool:
    """Whether neither bound depends on other axes or on a symbolic size."""
    return isinstance(axis.lower, Const) and isinstance(axis.upper, Const)


def _bounded_by(stage: Stage, axis: str) -> bool:
    return any(axis in free_vars(a.lower) | free_vars(a.upper) for a in stage.axes)


def _needs_order(stage: Stage, spatial: list[str]) -> bool:
    """Whether a spatial axis's bounds depend on a reduction axis, so that it cannot go outside it."""
    outer = {a.name for a in stage.axes} - set(spatial)
    return any(outer & (free_vars(a.lower) | free_vars(a.upper)) for a in stage.spatial)
