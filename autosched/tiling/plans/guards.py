"""Where the guards of a tensorized stage are held: as fills staged into operands, as lanes that are not written, or as
lanes whose sum is dropped.

A guard that does not hold means "no contribution", which a zero in one operand of a product says, and in both of a
difference: the mapping knows the sets of operands that do. And it may be what keeps an address inside its tensor, which
concerns every access by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from autosched.ir.nodes import Stage
from autosched.ir.value import Index, Read
from autosched.logic import (
    TRUE,
    Bool,
    Int,
    Var,
    all_of,
    any_of,
    conjuncts,
    free_vars,
    interval,
    to_z3,
)
from autosched.logic.solver import proving, z3
from autosched.tiling.plans.nest_geometry import NestGeometry
from autosched.tiling.plans.windowed_operands import determined

_Z3_TIMEOUT_MS = 2000


@dataclass(frozen=True)
class GuardPlacement:
    """`staged`: input operand to the condition under which its element is real, elsewhere it holds its fill; `written`:
    the condition over spatial axes under which the output's element is one that the stage writes; `accumulate_mask`:
    the one under which what was accumulated counts, else the element keeps the value that it started with; `stepped`:
    the one under which a step is added to an element at all."""

    staged: dict[str, Bool]
    written: Bool
    accumulate_mask: Bool = TRUE
    stepped: Bool = TRUE


def place_guards(nest: NestGeometry) -> GuardPlacement:
    """Each conjunct goes where it can be held. Raises LookupError where there is no such place."""
    written = _written(nest)
    staged: dict[str, Bool] = {}
    spatial = {a.name for a in nest.spatial}
    everything = conjuncts(all_of(nest.guard, nest.bounds))
    left = [c for c in nest.mapping.left_out if c in everything and c not in conjuncts(written)]
    summed: list[Bool] = [c for c in left if _axes(nest, c) <= spatial]
    stepped = [c for c in left if c not in summed]
    held = {*conjuncts(written), *left}
    sees = {o.name: {a.name for a in nest.operand_axes(o.name)} for o in nest.intrinsic.inputs}
    for operand in nest.intrinsic.inputs:
        read = nest.mapping.operands[operand.name]
        staged[operand.name] = TRUE
        if not _inside(nest, read, TRUE):
            mine = (c for c in everything if _axes(nest, c) <= sees[operand.name] and determined(nest, operand.name, c))
            staged[operand.name] = all_of(*mine)
            if not _inside(nest, read, staged[operand.name]):
                raise LookupError(f"{read.tensor} is read outside its shape where no guard on its own axes holds")
    for part in everything:
        if part not in held:
            able = {n for n in staged if _axes(nest, part) <= sees[n] and determined(nest, n, part)}
            already = {n for n in able if part in conjuncts(staged[n])}
            chosen = [n for n, parts in nest.mapping.guards.items() if part in parts]  # what the match proved
            sets = [tuple(chosen)] if chosen else list(nest.mapping.neutral)
            sets = [s for s in sets if able.issuperset(s)]
            if sets:
                for name in set(min(sets, key=lambda s: len(set(s) - already))) - already:
                    staged[name] = all_of(staged[name], part)
            elif _axes(nest, part) <= spatial:
                summed.append(part)
            else:
                raise LookupError(f"no operand that could say so depends on all axes of {part}")
    return GuardPlacement(staged, written, all_of(*summed), all_of(*stepped))


def _written(nest: NestGeometry) -> Bool:
    """Bounds of loops that are not a box leave elements unwritten. Guards do not, unless only they keep the address
    inside: a guarded element is written with what was there, or with its initial value. An instruction that overwrites
    its target has no such value, and guards leave its elements unwritten."""
    if not nest.intrinsic.accumulates:
        everywhere = all_of(nest.bounds, nest.guard)
        if not _inside(nest, nest.stage.target, everywhere):
            raise LookupError(f"{nest.stage.target.tensor} is written outside its shape")
        return everywhere
    spatial = {a.name for a in nest.spatial}
    over_spatial = [c for c in conjuncts(nest.bounds) if _axes(nest, c) <= spatial]
    bounds = all_of(*over_spatial)
    target = nest.stage.target
    if _inside(nest, target, bounds):
        return bounds
    guards = [c for c in conjuncts(nest.guard) if _axes(nest, c) <= spatial]
    written = all_of(bounds, *guards)
    if nest.stage.init is not None or not _inside(nest, target, written):
        raise LookupError(f"{target.tensor} is written outside its shape where a guard on a reduction does not hold")
    return written


def spatial_formulas(stage: Stage) -> tuple[Bool, ...]:
    """The conjuncts of a stage's guards that are formulas over its spatial axes: they hold or not for an element."""
    spatial = {a.name for a in stage.spatial}
    formulas = all_of(*(g for g in stage.guards if isinstance(g, Bool)))
    return tuple(c for c in conjuncts(formulas) if free_vars(c) <= spatial)


def _inside(nest: NestGeometry, read: Read, facts: Bool) -> bool:
    return stays_inside(read, nest.mapping.program.tensors[read.tensor].extents, nest.ranges, facts)


def stays_inside(read: Read, extents: tuple[int, ...], ranges: Mapping[str, tuple[int, int]], facts: Bool) -> bool:
    """Whether the element exists all over the box `ranges` (inclusive), wherever `facts` hold. False if not proved."""
    return _stays_inside(read.index, extents, tuple(sorted(ranges.items())), facts)


@proving
@lru_cache(maxsize=1 << 12)  # all mappings of a stage ask the same
def _stays_inside(
    index: tuple[Index, ...], extents: tuple[int, ...], box_of: tuple[tuple[str, tuple[int, int]], ...], facts: Bool
) -> bool:
    ranges = dict(box_of)
    leaves: list[Bool] = []
    for part, extent in zip(index, extents, strict=True):
        if not isinstance(part, Int):
            return False
        low, high = interval(part, ranges)
        leaves += [part < 0] if low < 0 else []
        leaves += [part >= extent] if high >= extent else []
    if not leaves:
        return True
    names = free_vars(all_of(any_of(*leaves), facts))
    box = [b for n in names if n in ranges for b in (Var(n) >= ranges[n][0], Var(n) <= ranges[n][1])]
    solver = z3.Solver()
    solver.set("timeout", _Z3_TIMEOUT_MS)
    env = {n: z3.Int(n) for n in names}
    solver.add(to_z3(all_of(*box, facts, any_of(*leaves)), env))
    return bool(solver.check() == z3.unsat)


def _axes(nest: NestGeometry, condition: Bool) -> set[str]:
    """The axes that a condition speaks of; a size that is not known is the same everywhere."""
    return {nest.members[v].name for v in free_vars(condition) if v in nest.members}
