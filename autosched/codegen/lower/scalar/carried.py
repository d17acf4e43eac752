"""Elements that are each computed from the one before, which a register hands on; rows take turns."""

from __future__ import annotations

from autosched.codegen.lower.common.context import identifier
from autosched.codegen.lower.scalar.scalar_stage import ScalarStage
from autosched.codegen.lower.scalar.shape import Ats
from autosched.codegen.tree.kernel import Assign, For, Stmt
from autosched.codegen.tree.rename import place_index
from autosched.ir.nodes import Axis
from autosched.ir.rewrites.online.states import replaced
from autosched.ir.value import Read
from autosched.logic import Const, Int, Var
from autosched.tiling.plans.carried_elements import begins_apart, element_before


def carried(scalar: ScalarStage, axis: Axis, ats: Ats) -> tuple[Stmt, ...]:
    """The loop over `axis` for all rows `ats`: memory is read once before it, and written in it. A first element that
    may not read the one before is computed as written, in front of the loop."""
    stage, before = scalar.stage, element_before(scalar.stage, axis.name)
    assert before is not None
    assign, dtype = stage.assign, stage.assign.value.dtype
    register = scalar.ctx.declare(f"{assign.tensor}_before", dtype, (len(ats), 1), "register").name
    var = Var(identifier(axis.name))
    apart = begins_apart(stage, before)
    starts: list[Stmt] = []
    steps: list[Stmt] = []
    for number, at in enumerate(ats):
        place: tuple[Int, ...] = (Const(number), Const(0))
        held = Read(register, place, dtype)
        here, first = at | {axis.name: var}, at | {axis.name: axis.lower}
        if apart:
            starts.append(Assign(register, place, scalar.placed(assign.value, first, 0)))
            starts.append(Assign(assign.tensor, place_index(assign.index, first), held))
        else:
            starts.append(Assign(register, place, Read(assign.tensor, place_index(before.index, first), dtype)))
        value = replaced(assign.value, {before: held})
        steps.append(Assign(register, place, scalar.placed(value, here, 0)))
        steps.append(Assign(assign.tensor, place_index(assign.index, here), held))
    return (*starts, For(var.name, axis.lower + int(apart), axis.upper, tuple(steps)))
