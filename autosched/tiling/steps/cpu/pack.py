"""Packing: where each operand is read from: its tensor, a panel in the order of use (of all of it, or of one cache
block at a time; or one whose registers lie in columns), or a copy of the tensor in another shape (with a border of
zeros, or interleaved)."""

from __future__ import annotations

from math import prod

from autosched.logic import TRUE, Bool, Const, Int, Var, all_of
from autosched.machine.target import Target
from autosched.tiling.plans.cached_on_nest import of_nest
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.step_names import StepNames
from autosched.tiling.step import Decision, Rule, Step
from autosched.tiling.steps.common.computed import group_units, loaded
from autosched.tiling.steps.common.layout import (
    even_rows,
    pads,
    panel_elements,
    rows_apart,
    runs,
    tensor_elements,
    vectorises,
)
from autosched.tiling.steps.cpu.block_panel import BLOCK, block_panel, offers_blocks
from autosched.tiling.steps.cpu.columns import COLUMNS, is_streamed, several_columns
from autosched.tiling.steps.cpu.computed_once import computed_once
from autosched.tiling.steps.cpu.copy_granularity import copy_granularity
from autosched.tiling.steps.cpu.fills import copied_extents, copied_offset, cut_by_ends, reach_ends
from autosched.tiling.steps.cpu.interleave import interleave

DIRECT, PANEL, PADDED, INTERLEAVED = 0, 1, 2, 3
COPIES = {PADDED, INTERLEAVED}
"""Those that are copies of the tensor in its own order of dimensions."""
LOAD = 6
"""Computed where registers are loaded, from narrow panels or from the tensors as they lie."""
LABELS = ("direct", "panel", "padded", "interleaved", "block", "columns", "load")
PANELS = (PANEL, BLOCK, COLUMNS)
"""Those that are copies in the order of use."""
PANEL_GROWTH = 16
"""A panel may hold each element this many times at most (im2col copies one element for every window it is in)."""


def pack(nest: Nest, target: Target, names: StepNames) -> Step:
    """One decision per input operand. `direct` is offered where a register fills by one vector load, splat or group, or
    by a few loads and shuffles (but for constants, which are laid out before the run); `padded` where a guard says no
    more than that the address is inside the tensor; `interleaved` as `interleave` says; `block` where a panel that
    is packed within the call outgrows a cache, and loops can be around it; `columns` where a constant `is_streamed`;
    `load` alone where the operand is computed there (`computed_once`: in which tiles).
    What `copy_granularity` decides stands beside."""
    decisions: list[Decision] = []
    rules: list[Rule] = []
    derived: dict[str, Int] = {}
    inert: dict[str, Bool] = {}
    for operand in nest.intrinsic.inputs:
        if loaded(nest, operand.name):
            decisions.append(Decision(names.pack(operand.name), (LOAD,), (LABELS[LOAD],)))
            rules += whole_groups(nest, operand.name, names)
            if (once := computed_once(nest, operand.name, target, names)) is not None:
                decisions += once.decisions
                rules += once.rules
            continue
        computed = operand.name in nest.computed
        kinds = [DIRECT] if not computed and in_place(nest, operand.name) else []
        if panel_fits(nest, operand.name):
            kinds.append(PANEL)
        if not computed and shuffles(nest, operand.name):
            kinds.append(DIRECT)
        if not computed and padded(nest, operand.name, DIRECT in kinds):
            kinds.append(PADDED)
        if not computed and interleave(nest, operand.name) is not None:
            kinds.append(INTERLEAVED)
        if nest.mapping.fills.get(operand.name):
            kinds = [PANEL]  # a masked load leaves zeros
        known = not computed and nest.mapping.program.known(nest.mapping.operands[operand.name].tensor)
        if PANEL in kinds and not known and offers_blocks(nest, operand.name, target):
            kinds.append(BLOCK)
            rule, quantities = block_panel(nest, operand.name, target, names)
            rules.append(rule)
            derived |= quantities
        if PANEL in kinds and known and is_streamed(nest, operand.name):
            kinds.append(COLUMNS)
            rules.append(several_columns(nest, operand.name, names))
        kinds = kinds or [DIRECT]
        decisions.append(Decision(names.pack(operand.name), tuple(kinds), tuple(LABELS[k] for k in kinds)))
        copied = Var(names.pack(operand.name)).is_in([k for k in kinds if k in COPIES])
        parts = None if known or not COPIES & {*kinds} else copy_granularity(nest, operand.name, copied, target, names)
        if parts is not None:
            decisions += parts.decisions
            rules += parts.rules
            inert |= parts.inert
    return Step("pack", tuple(decisions), tuple(rules), derived, inert)


def whole_groups(nest: Nest, operand: str, names: StepNames) -> tuple[Rule, ...]:
    """Blocks of the depth, and trips of its loop, hold whole groups of units, or groups whole trips."""
    group, depth = group_units(nest, operand), nest.depth
    if group == 1 or depth is None:
        return ()
    block, unroll = Var(names.block(depth)), names.var("unroll")
    fits = all_of((block % group).eq(0), (Const(group) % unroll).eq(0))
    said = f"blocks of {{{block.name}}} and trips of {{{unroll.name}}} units in groups of {group}"
    return (Rule(names(f"groups_{operand}"), fits, said),)


def panel_fits(nest: Nest, operand: str) -> bool:
    """Whether a panel holds each element not too often."""
    return panel_elements(nest, operand) <= PANEL_GROWTH * tensor_elements(nest, operand)


def in_place(nest: Nest, operand: str) -> bool:
    """Whether loads fill the operand's registers from its tensor as it lies. A register that holds a matrix is loaded
    whole or not at all: no guard may cut one. Those that the end of an axis cuts come from panels of their own, which
    are only worth it beside others, and of what is not laid out before the run anyway."""
    if nest.intrinsic.matrices is None:
        return vectorises(nest, operand)
    if nest.guarded[operand] != TRUE or rows_apart(nest, operand) is None:
        return False
    known = nest.mapping.program.known(nest.mapping.operands[operand].tensor)
    return all(a.full_units and not known for a in cut_by_ends(nest, operand))


def padded(nest: Nest, operand: str, direct: bool) -> bool:
    """Whether loads fill the operand's registers from a copy of its tensor with a border: where they do from the tensor
    itself (`direct`), but for a guard. A register that holds a matrix has no other loads, so axes that end within one
    are reason enough: the copy goes on to its end."""
    if nest.intrinsic.matrices is None:
        return direct and nest.guarded[operand] != TRUE and pads(nest, operand)
    known = nest.mapping.program.known(nest.mapping.operands[operand].tensor)
    return not direct and not known and copied_rows(nest, operand) is not None


@of_nest
def copied_rows(nest: Nest, operand: str) -> int | None:
    """Elements from one row to the next of a register that holds a matrix in a copy of the operand's tensor with a
    border; None where no such copy fills it."""
    if (nest.guarded[operand] != TRUE and not pads(nest, operand)) or not reach_ends(nest, operand):
        return None
    if prod(copied_extents(nest, operand)) > PANEL_GROWTH * tensor_elements(nest, operand):
        return None
    return even_rows(nest, operand, copied_offset(nest, operand))


def fillable(nest: Nest, operand: str) -> bool:
    """Whether anything fills registers of the operand that hold matrices."""
    copied = padded(nest, operand, direct=False) or interleave(nest, operand) is not None
    return copied or in_place(nest, operand) or panel_fits(nest, operand)


def shuffles(nest: Nest, operand: str) -> bool:
    """Whether a register of the operand is worth putting together from a few vector loads each time it is needed."""
    if nest.intrinsic.matrices is not None:
        return False
    known = nest.mapping.program.known(nest.mapping.operands[operand].tensor)
    return not known and not vectorises(nest, operand) and runs(nest, operand) is not None
