"""Packing: where each operand is read from: its tensor, a panel in the order of use (of all of it, or of one cache
block at a time; or one whose registers lie in columns), or a copy of the tensor in another shape (with a border of
zeros, or interleaved)."""

from __future__ import annotations

from autosched.logic import TRUE, Bool, Int, Var
from autosched.machine.target import Target
from autosched.tiling.nest import Nest
from autosched.tiling.step import Decision, Rule, Step
from autosched.tiling.steps.block_panel import BLOCK, block_panel, offers_blocks
from autosched.tiling.steps.columns import COLUMNS, offers_columns, several_columns
from autosched.tiling.steps.copy_each import copy_each
from autosched.tiling.steps.interleave import interleave
from autosched.tiling.steps.layout import pads, panel_elements, rows_apart, runs, tensor_elements, vectorises
from autosched.tiling.steps.names import StepNames

DIRECT, PANEL, PADDED, INTERLEAVED = 0, 1, 2, 3
COPIES = {PADDED, INTERLEAVED}
"""Those that are copies of the tensor in its own order of dimensions."""
LABELS = ("direct", "panel", "padded", "interleaved", "block", "columns")
PANELS = (PANEL, BLOCK, COLUMNS)
"""Those that are copies in the order of use."""
PANEL_GROWTH = 16
"""A panel may hold each element this many times at most (im2col copies one element for every window it is in)."""


def pack(nest: Nest, target: Target, names: StepNames) -> Step:
    """One decision per input operand. `direct` is offered where a register fills by one vector load, splat or group, or
    by a few loads and shuffles (but for constants, which are laid out before the run); `padded` where a guard says no
    more than that the address is inside the tensor; `interleaved` as `interleave` says; `block` where a panel that
    is packed within the call outgrows a cache, and loops can be around it; `columns` as `offers_columns` says. What
    `copy_each` decides stands beside."""
    decisions: list[Decision] = []
    rules: list[Rule] = []
    derived: dict[str, Int] = {}
    inert: dict[str, Bool] = {}
    for operand in nest.intrinsic.inputs:
        kinds = [DIRECT] if in_place(nest, operand.name) else []
        if panel_fits(nest, operand.name):
            kinds.append(PANEL)
        if shuffles(nest, operand.name):
            kinds.append(DIRECT)
        if nest.guarded[operand.name] != TRUE and DIRECT in kinds and pads(nest, operand.name):
            kinds.append(PADDED)
        if interleave(nest, operand.name) is not None:
            kinds.append(INTERLEAVED)
        if nest.mapping.fills.get(operand.name):
            kinds = [PANEL]  # a masked load leaves zeros
        known = nest.mapping.program.known(nest.mapping.operands[operand.name].tensor)
        if PANEL in kinds and not known and offers_blocks(nest, operand.name, target):
            kinds.append(BLOCK)
            rule, quantities = block_panel(nest, operand.name, target, names)
            rules.append(rule)
            derived |= quantities
        if PANEL in kinds and known and offers_columns(nest, operand.name):
            kinds.append(COLUMNS)
            rules.append(several_columns(nest, operand.name, names))
        kinds = kinds or [DIRECT]
        decisions.append(Decision(names.pack(operand.name), tuple(kinds), tuple(LABELS[k] for k in kinds)))
        copied = Var(names.pack(operand.name)).is_in([k for k in kinds if k in COPIES])
        parts = None if known or not COPIES & {*kinds} else copy_each(nest, operand.name, copied, target, names)
        if parts is not None:
            decisions += parts.decisions
            rules += parts.rules
            inert |= parts.inert
    return Step("pack", tuple(decisions), tuple(rules), derived, inert)


def panel_fits(nest: Nest, operand: str) -> bool:
    """Whether a panel holds each element not too often."""
    return panel_elements(nest, operand) <= PANEL_GROWTH * tensor_elements(nest, operand)


def in_place(nest: Nest, operand: str) -> bool:
    """Whether loads fill the operand's registers from its tensor as it lies. A register that holds a matrix is loaded
    whole or not at all: no guard, and no end of an axis, may cut one."""
    if nest.intrinsic.matrices is None:
        return vectorises(nest, operand)
    on = [a for a in nest.axes if a.intrinsic_axis in nest.intrinsic.operand_axes[operand]]
    whole = all(a.extent % a.unit == 0 for a in on) and nest.guarded[operand] == TRUE
    return whole and rows_apart(nest, operand) is not None


def shuffles(nest: Nest, operand: str) -> bool:
    """Whether a register of the operand is worth putting together from a few vector loads each time it is needed."""
    if nest.intrinsic.matrices is not None:
        return False
    known = nest.mapping.program.known(nest.mapping.operands[operand].tensor)
    return not known and not vectorises(nest, operand) and runs(nest, operand) is not None
