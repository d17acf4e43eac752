"""The same instruction on registers that hold matrices of fewer rows than they could: what the end of an axis leaves of
a register is then neither loaded, computed nor stored."""

from __future__ import annotations

from collections.abc import Mapping as Sizes
from dataclasses import replace
from math import prod

import numpy as np

from autosched.ir.nodes import Axis, Guard, Loop, Statement
from autosched.ir.program import Program
from autosched.logic import Const, evaluate
from autosched.tensorize.intrinsic import Intrinsic, Operand
from autosched.tensorize.match_types import Mapping

FEWEST = 2
"""A loop of one iteration is no axis."""


def axis_of_rows(intrinsic: Intrinsic) -> Axis | None:
    """The axis whose positions are the rows of every register that has it, and that no sum runs over; None where there
    is none, or the registers always have all their rows."""
    if intrinsic.matrices is None or intrinsic.matrices.rows_at is None:
        return None
    for axis in intrinsic.spatial:
        having = [o for o in intrinsic.operands.values() if axis.name in intrinsic.operand_axes[o.name]]
        if having and all(_along_rows(intrinsic, o, axis.name) for o in having):
            return axis
    return None


def _along_rows(intrinsic: Intrinsic, operand: Operand, axis: str) -> bool:
    """Whether the register's rows are the axis's positions."""
    assert intrinsic.matrices is not None
    elements = np.arange(operand.elements, dtype=np.int64)
    ((variable, _),) = operand.order.domain
    coordinate = operand.order.coordinates[intrinsic.operand_axes[operand.name].index(axis)]
    row = elements // intrinsic.matrices.row_elements(operand.dtype)
    return bool(np.array_equal(np.asarray(evaluate(coordinate, {variable: elements})), row))


def with_rows(intrinsic: Intrinsic, axis: Axis, rows: int) -> Intrinsic:
    """The intrinsic with so many positions of the axis that `axis_of_rows` gives. Its latency falls with its interval
    (three sums of 7 rows take turns every 26 cycles on an Emerald Rapids, of 16 every 47)."""
    part = _interval(intrinsic, axis.extent, rows) / _interval(intrinsic, axis.extent, axis.extent)
    operands = {}
    for operand in intrinsic.operands.values():
        names = intrinsic.operand_axes[operand.name]
        shape = tuple(rows if n == axis.name else size for n, size in zip(names, operand.shape, strict=True))
        shorter = replace(operand, shape=shape)
        ((variable, _),) = operand.order.domain
        order = replace(operand.order, domain=((variable, shorter.elements),))
        operands[operand.name] = replace(shorter, order=order)
    tensors = {
        name: replace(tensor, shape=tuple(Const(n) for n in operands[name].shape))
        for name, tensor in intrinsic.program.tensors.items()
    }
    program = replace(intrinsic.program, tensors=tensors, body=_cut(intrinsic.program, axis, rows))
    timing = {name: cycles * part for name, cycles in intrinsic.timing.items()}
    made = replace(intrinsic, program=program, operands=operands, timing=timing, second=None)
    return replace(made, share=intrinsic.share * part)


def _interval(intrinsic: Intrinsic, full: int, rows: int) -> float:
    """Cycles between two issues on so many rows of `full`: in a straight line between those that are known, fewer than
    the first as long as that. In proportion where none is known."""
    known = {n: cycles for n, cycles in intrinsic.interval_by_rows or [(0, 0.0)] if n < full}
    known[full] = intrinsic.timing.get("interval", 1.0)
    return float(np.interp(rows, list(known), list(known.values())))


def _cut(program: Program, axis: Axis, rows: int) -> tuple[Statement, ...]:
    """The program's statements with so many iterations of the axis."""

    def cut(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        found: list[Statement] = []
        for stmt in body:
            match stmt:
                case Loop(there, inner):
                    here = replace(there, upper=Const(rows)) if there.name == axis.name else there
                    found.append(replace(stmt, axis=here, body=cut(inner)))
                case Guard(_, inner):
                    found.append(replace(stmt, body=cut(inner)))
                case _:
                    found.append(stmt)
        return tuple(found)

    return cut(program.body)


def choose_tile_rows(mapping: Mapping, box: Sizes[str, tuple[int, int]]) -> Mapping:
    """The mapping with an instruction on fewer rows, where the axis on its rows needs no more of them: 56 pixels of a
    line are four tiles of 14, not three of 16 and one of 8. `box` has each program axis's lower bound and extent. There
    are as many tiles as before, so nothing else changes."""
    axis = axis_of_rows(mapping.intrinsic)
    if axis is None:
        return mapping
    extent = prod(box[name][1] for name in mapping.axes.get(axis.name, ()))
    tiles = -(-extent // axis.extent)
    rows = max(FEWEST, -(-extent // tiles))
    if rows >= axis.extent:
        return mapping
    padding = mapping.padding | {axis.name: (extent, tiles * rows)}
    return replace(mapping, intrinsic=with_rows(mapping.intrinsic, axis, rows), padding=padding)
