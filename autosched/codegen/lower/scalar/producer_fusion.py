"""Rows: a stage computed on the way of the reduction behind it, which takes each vector where it is made.

for j: Y[i, j] = exp(X[i, j] - M[i])        for j: y = exp(X[i, j] - M[i])
for j: S[i] += Y[i, j]                             Y[i, j] = y
                                                   S[i] += y
"""

from __future__ import annotations

from dataclasses import dataclass

from autosched.codegen.lower.common.positions import LANE
from autosched.codegen.lower.scalar.scalar_stage import ScalarStage
from autosched.codegen.tree.kernel import Assign, Stmt
from autosched.codegen.tree.rename import place_index
from autosched.ir.value import Read, Value, is_value, map_value, reads
from autosched.logic import Bool, Const, Int, Var
from autosched.logic.walk import substitute_int
from autosched.tiling.plans.plan import ScalarPart
from autosched.tiling.plans.scalar_parts import is_constant


def fusible(first: ScalarPart, second: ScalarPart, shared: int) -> bool:
    """Whether the stage `first` fills, along one axis inside `shared` loops, just the elements that the reduction
    `second` then takes along its own: nothing else passes between the two."""
    made, summed = first.stage, second.stage
    if made.guards or summed.guards or made.reduction or made.assign.op != "=" or not second.register:
        return False
    if first.order[shared:] != (first.vector,) or second.order[shared:] != (second.across,):
        return False
    along, over = made.axes[-1], summed.axes[-1]
    if not (is_constant(along) and is_constant(over)) or (along.lower, along.upper) != (over.lower, over.upper):
        return False
    tensor = made.assign.tensor
    if summed.assign.tensor in {tensor, *(r.tensor for r in made.reads)}:
        return False
    if any(is_value(i) for i in made.assign.index):
        return False
    names = {along.name: Var(over.name)}
    element = tuple(substitute_int(i, names) for i in made.assign.index if isinstance(i, Int))
    taken = [r.index for r in reads(summed.assign.value) if r.tensor == tensor]
    return bool(taken) and all(index == element for index in taken)


@dataclass(frozen=True)
class FusedProducer:
    """The stage that a reduction `over` an axis consumes, its unchanging parts in registers; `register` holds its
    vectors."""

    stage: ScalarStage
    register: str
    over: str

    def stored(self, at: dict[str, Int], number: int, copy: int, valid: Bool) -> list[Stmt]:
        """Compute the reduction's vector `number` at a place of one copy, and store it; lanes not `valid` stay 0."""
        stage, lane = self.stage.stage, self.stage.shape.lane
        here = at | {self.stage.axes[-1].name: at[self.over]}
        index = place_index(stage.assign.index, here)
        value = self.stage.placed(stage.assign.value, here, copy)
        return [
            Assign(self.register, (Const(number), Var(LANE)), value, lane, valid),
            Assign(stage.assign.tensor, index, self.held(number), lane, valid),
        ]

    def held(self, number: int) -> Read:
        """The vector `number`."""
        return Read(self.register, (Const(number), Var(LANE)), self.stage.stage.assign.value.dtype)

    def taken(self, term: Value, number: int) -> Value:
        """The reduction's term with the register in place of what memory holds."""
        tensor = self.stage.stage.assign.tensor
        return map_value(term, lambda v: self.held(number) if isinstance(v, Read) and v.tensor == tensor else v)
