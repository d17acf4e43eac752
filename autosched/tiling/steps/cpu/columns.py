"""Panels whose registers lie in columns: each register of a tile has a stretch of its own, along the whole depth, so
that a tile which walks along the depth reads as many streams. A panel in the order of use is one stream, and some cores
get less out of memory by one: Zen 3 reads 64 MiB at 14 to 21 GB/s by one stream and at 26 to 29 by two to eight, Zen 5
at 61 by one and by two."""

from __future__ import annotations

from autosched.logic import Var
from autosched.tiling.plans.nest import Nest
from autosched.tiling.plans.step_names import StepNames, tiled_axes
from autosched.tiling.step import Rule
from autosched.tiling.steps.common.computed import element_bytes
from autosched.tiling.steps.common.layout import tensor_elements

COLUMNS = 5
"""The value of `pack_x`, beside those of `steps.pack`."""
STREAMED_BYTES = 4 << 20
"""An operand of more than that is taken to come from memory."""
PAGE_BYTES, APART_BYTES = 4096, 256
"""Columns that are whole pages long begin that many bytes further: in caches their lines would share a set (from
columns of 128 KiB, ten and twelve at a time, 8 to 10 GB/s; with a line or more between them 23)."""


def is_streamed(nest: Nest, operand: str) -> bool:
    """Whether a panel of the operand is a stream from memory along the depth, of one tiled axis."""
    mine = nest.operand_axes(operand)
    size = tensor_elements(nest, operand) * element_bytes(nest, operand)
    return size > STREAMED_BYTES and nest.depth in mine and sum(a in mine for a in tiled_axes(nest)) == 1


def several_columns(nest: Nest, operand: str, names: StepNames) -> Rule:
    """One register is one column: the panel in the order of use."""
    (axis,) = (a for a in tiled_axes(nest) if a in nest.operand_axes(operand))
    several = Var(names.register(axis)) > 1
    rule = Var(names.pack(operand)).eq(COLUMNS).implies(several)
    return Rule(names(f"columns_{operand}"), rule, f"a tile of {operand} has several registers, which lie in columns")


def column_units(units: int, unit_bytes: int) -> int:
    """Depth units from one column to the next, where a column has `units` of so many bytes."""
    apart = units * unit_bytes % PAGE_BYTES == 0
    return units + (-(-APART_BYTES // unit_bytes) if apart else 0)
