"""Which operands of a program's nests may be computed on the way, and where: the ways to lay out its plans."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from autosched.ir.formula import Formulas, apply_formulas
from autosched.ir.program import Program
from autosched.machine.target import Target
from autosched.tiling.planner.scheme import scheme_of
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.on_the_way import BLOCK, LOAD, PACKING, OnTheWay, computed_on_the_way
from autosched.tiling.steps.common.computed import element_bytes, sources
from autosched.tiling.steps.cpu.pack import panel_fits
from autosched.tiling.steps.gpu.operands.computed_slices import computable, source_bytes

NARROW = 0.75
"""Constants are converted before the run, unless computing them on the way reads so small a share of the bytes."""
DEFAULT_L1 = 32 << 10
PLACES = {"cpu": (LOAD, PACKING), "gpu": (BLOCK,)}


def on_the_way(
    program: Program, nests: Mapping[str, Nest], target: Target, formulas: Formulas
) -> Iterator[dict[str, Nest]]:
    """The nests of a plan, by stage, with operands computed on the way, functions by these formulas."""
    places = PLACES.get(scheme_of(target), ())
    seen = [{n: nest.computed for n, nest in nests.items()}]
    for first in places:
        turn = sorted(places, key=lambda p: p != first)
        placed = {name: _placed(program, nest, target, turn, formulas) for name, nest in nests.items()}
        computed = {n: nest.computed for n, nest in placed.items()}
        if computed not in seen:
            seen.append(computed)
            yield placed


def _placed(program: Program, nest: Nest, target: Target, places: Sequence[str], formulas: Formulas) -> Nest:
    """The nest with all operands computed on the way that can and are worth it, each at the first of the places where
    that may be; itself where there are none."""
    found: dict[str, OnTheWay] = {}
    if nest.mapping.conditions or nest.mapping.assumed:
        return nest  # they may be about the operand's own tensor, which is checked in memory
    for operand in nest.intrinsic.inputs:
        read = nest.mapping.operands[operand.name]
        for place in places:
            computed = computed_on_the_way(program, nest.stage, read, place)
            if computed is None:
                break
            computed = replace(computed, value=apply_formulas(computed.value, formulas))
            if _fits(program, replace(nest, computed={operand.name: computed}), operand.name, target):
                found[operand.name] = computed
                break
    return replace(nest, computed=found) if found else nest


def _fits(program: Program, nest: Nest, operand: str, target: Target) -> bool:
    """Whether the operand can be computed at its place, and may save time there. A panel is for what several register
    tiles read."""
    if nest.computed[operand].place == BLOCK:
        return computable(nest, operand, target) and _worth(program, nest, operand, target)
    if nest.computed[operand].place == LOAD:
        return sources(nest, operand) is not None and _worth(program, nest, operand, target)
    others = prod(a.units for a in nest.spatial if a not in nest.operand_axes(operand))
    made_before = nest.computed[operand].tensor in program.prepared
    reused = others > target.limits.get("vector_registers", 16)
    return not made_before and reused and panel_fits(nest, operand)


def _worth(program: Program, nest: Nest, operand: str, target: Target) -> bool:
    """Whether computing an operand in each load may save time: it is no constant that would be converted before the
    run, or it is narrower in memory than in registers, and outgrows the first cache of a CPU."""
    tensor = program.tensors[nest.computed[operand].tensor]
    if tensor.name not in program.prepared:
        return True
    wide = tensor.dtype.bytes
    for extent in tensor.extents:
        wide *= extent
    narrow = NARROW * tensor.dtype.bytes
    if nest.computed[operand].place == BLOCK:
        return source_bytes(nest, operand) <= narrow
    first = next((m.bytes for m in target.memories if m.name == "L1"), DEFAULT_L1)
    return wide > first and element_bytes(nest, operand) <= narrow
