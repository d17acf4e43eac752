"""Reductions of a stage on conditions that data decide and its reduction does not change: each row asks them once.

    if D[i] != 0:                          if (D[i] != 0) {
        for k in range(n):                   acc = y[i]; for (k…) acc += A[i][k]; y[i] = acc;
            y[i] += A[i, k]                }
"""

from __future__ import annotations

from dataclasses import replace

from autosched.codegen.lower.scalar.reduction import Reduction
from autosched.codegen.lower.scalar.scalar_stage import ScalarStage
from autosched.codegen.lower.scalar.shape import Ats
from autosched.codegen.tree.kernel import Branch, Stmt
from autosched.codegen.tree.rename import place_condition
from autosched.ir.nodes import Axis
from autosched.ir.value import Logical, is_value
from autosched.tiling.plans.asked_once import asked_once


def reduction(scalar: ScalarStage, axes: tuple[Axis, ...], ats: Ats, vectored: bool) -> tuple[Stmt, ...]:
    """The reduction loops `axes` for all copies, behind branches where the rows of a copy are alike in all lanes and
    keep what they have where the condition fails."""
    stage, once = scalar.stage, asked_once(scalar.stage)
    if vectored or not once:
        return Reduction(scalar, axes, ats, vectored).emit()
    rest = replace(scalar, stage=replace(stage, guards=tuple(g for g in stage.guards if g not in once)))
    stmts: list[Stmt] = []
    for at in ats:
        placed = tuple(v for g in once if is_value(v := place_condition(g, at)))
        condition = placed[0] if len(placed) == 1 else Logical("and", placed)
        stmts.append(Branch(condition, Reduction(rest, axes, (at,), vectored).emit()))
    return tuple(stmts)
