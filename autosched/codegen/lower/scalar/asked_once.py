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
from autosched.codegen.tree.kernel import Branch, If, Stmt
from autosched.codegen.tree.rename import place_condition
from autosched.ir.nodes import Axis
from autosched.logic import Bool
from autosched.tiling.plans.asked_once import asked_first


def reduction(scalar: ScalarStage, axes: tuple[Axis, ...], ats: Ats, vectored: bool) -> tuple[Stmt, ...]:
    """The reduction loops `axes` for all copies, behind branches where the rows of a copy are alike in all lanes and
    keep what they have where a condition fails."""
    stage, first = scalar.stage, asked_first(scalar.stage)
    if vectored or not first:
        return Reduction(scalar, axes, ats, vectored).emit()
    rest = replace(scalar, stage=replace(stage, guards=stage.guards[len(first) :]))
    stmts: list[Stmt] = []
    for at in ats:
        inside = Reduction(rest, axes, (at,), vectored).emit()
        for guard in reversed(first):
            placed = place_condition(guard, at)
            inside = (If(placed, inside),) if isinstance(placed, Bool) else (Branch(placed, inside),)
        stmts += inside
    return tuple(stmts)
