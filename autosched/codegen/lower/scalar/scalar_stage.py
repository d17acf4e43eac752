"""`ScalarStage`: one stage of a scalar part under one row, as the files that emit its loops read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from autosched.codegen.lower.common.context import Context
from autosched.codegen.lower.common.invariant import split_invariant
from autosched.codegen.lower.common.positions import LANE
from autosched.codegen.lower.scalar.shape import Ats, Shape
from autosched.codegen.tree.kernel import Assign, Stmt
from autosched.codegen.tree.rename import place
from autosched.ir.formula import apply_formulas
from autosched.ir.nodes import Axis, Stage
from autosched.ir.value import Read, Value, reads
from autosched.logic import Const, Int, Var
from autosched.tiling.plans.plan import ScalarPart


@dataclass(frozen=True)
class ScalarStage:
    """`stage`: the part's, rewritten for this row. `hoisted`: registers of values that are invariant along the
    vectorised axis, one for each of the `copies` of an unrolled body."""

    part: ScalarPart
    ctx: Context
    shape: Shape
    stage: Stage
    hoisted: frozenset[str] = frozenset()
    copies: int = 1

    @staticmethod
    def of(part: ScalarPart, ctx: Context, shape: Shape) -> ScalarStage:
        """The part's stage; its tensors become buffers."""
        stage = with_formulas(part.stage, part, shape)
        started = reads(stage.init) if stage.init is not None else ()
        for read in (*stage.reads, *started, stage.target):
            ctx.tensor(read.tensor)
        return ScalarStage(part, ctx, shape, stage)

    @property
    def axes(self) -> list[Axis]:
        """The stage's axes, outermost loop first."""
        by_name = {a.name: a for a in self.stage.axes}
        return [by_name[n] for n in self.part.order]

    def placed(self, value: Value, at: Mapping[str, Int], copy: int) -> Value:
        """A value at a point of one copy of the body, which reads that copy's hoisted registers."""

        def own(read: Read) -> Value:
            return Read(read.tensor, (Const(copy), Var(LANE)), read.dtype) if read.tensor in self.hoisted else read

        return place(value, at, own)

    def hoist(self, axis: Axis, ats: Ats) -> tuple[tuple[Stmt, ...], ScalarStage]:
        """Hoists what an elementwise stage computes once for the vectorised axis: these statements, and the stage that
        reads their registers."""
        stage = self.stage
        if stage.guards or stage.assign.op != "=":
            return (), self
        split = split_invariant(stage.assign.value, frozenset({axis.name}), stage.assign.tensor)
        if not split.parts:
            return (), self
        before: list[Stmt] = []
        held: list[Read] = []
        for part in split.parts:
            shape = (len(ats), self.shape.width)
            buffer = self.ctx.declare(f"{stage.assign.tensor}_inv", part.dtype, shape, "register").name
            for copy, at in enumerate(ats):
                before.append(Assign(buffer, (Const(copy), Var(LANE)), place(part, at), self.shape.lane))
            held.append(Read(buffer, (Const(0), Var(LANE)), part.dtype))
        inner = replace(stage, assign=replace(stage.assign, value=split.with_parts(tuple(held))))
        return tuple(before), replace(self, stage=inner, hoisted=frozenset(r.tensor for r in held), copies=len(ats))


def with_formulas(stage: Stage, part: ScalarPart, shape: Shape) -> Stage:
    """The stage with formulas in place of library calls, where the row says so."""
    if not shape.formulas:
        return stage
    known = part.policy.formulas
    init = None if stage.init is None else apply_formulas(stage.init, known)
    return replace(stage, assign=replace(stage.assign, value=apply_formulas(stage.assign.value, known)), init=init)
