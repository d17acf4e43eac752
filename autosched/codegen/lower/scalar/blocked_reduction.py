"""A reduction outside the vectors: a few of its iterations at a time are added to a stretch of results in memory.

for p in 0..k step 4:                     Y = x A reads rows of A from end to end,
  for j in the stretch, in vectors:       and Y's stretch stays in the first cache
    Y[j] = Y[j] + x[p] A[p, j] + … + x[p + 3] A[p + 3, j]
"""

from __future__ import annotations

from dataclasses import replace

from autosched.codegen.lower.common.context import identifier
from autosched.codegen.lower.common.positions import LANE
from autosched.codegen.lower.scalar.reduction import Reduction
from autosched.codegen.lower.scalar.scalar_stage import ScalarStage
from autosched.codegen.lower.scalar.shape import Ats, shared_out
from autosched.codegen.tree.kernel import For, Stmt
from autosched.ir.nodes import Axis
from autosched.logic import TRUE, Const, Var, minimum

STRETCH_BYTES = 16 << 10
"""Of results that stay in the first cache while the reduction passes: a part of it, since rows stream through it."""


def blocked(scalar: ScalarStage, axis: Axis, k: int, ats: Ats) -> tuple[Stmt, ...]:
    """The whole vectors of `axis` (several at a time) in stretches, each with all of the reduction."""
    shape, stage = scalar.shape, scalar.stage
    var, step = Var(identifier(axis.name)), shape.width * shape.unroll
    (summed,) = stage.reduction
    over = Var(identifier(summed.name))
    assert isinstance(axis.lower, Const)
    assert isinstance(summed.lower, Const)
    low, full = axis.lower.value, axis.extent // step * step
    threads = shape.threads if k == 0 and scalar.part.parallel else 1
    most = max(1, STRETCH_BYTES // stage.assign.value.dtype.bytes // step) * step
    stretch = min(most, -(-full // (threads * step)) * step)
    start = Var(f"{var.name}b")
    end = minimum(start + stretch, low + full)
    vectors = tuple(at | {axis.name: var + (Var(LANE) + u * shape.width)} for u in range(shape.unroll) for at in ats)

    def sweep(body: tuple[Stmt, ...]) -> Stmt:
        return For(var.name, start, end, body, step=step)

    def added(count: int) -> tuple[Stmt, ...]:
        """The next `count` iterations of the reduction, onto what memory holds."""
        inner = Reduction(replace(scalar, stage=replace(stage, init=None)), (), vectors, True)
        updates = [
            stmt
            for p in range(count)
            for stmt in inner.updates(tuple(at | {summed.name: over + p} for at in vectors), 1, None)
        ]
        ends = [inner.ends(copy, at, TRUE) for copy, at in enumerate(vectors)]
        return (*(s for e in ends for s in e[0]), *updates, *(s for e in ends for s in e[1]))

    first = Reduction(scalar, (), vectors, True)
    begun = [stmt for copy, at in enumerate(vectors) for stmts in first.ends(copy, at, TRUE) for stmt in stmts]
    begin, finish, count = summed.lower.value, summed.lower.value + summed.extent, shape.block
    whole = begin + summed.extent // count * count
    body = [sweep(tuple(begun))]
    if whole > begin:
        body.append(For(over.name, Const(begin), Const(whole), (sweep(added(count)),), step=count))
    if finish > whole:
        body.append(For(over.name, Const(whole), Const(finish), (sweep(added(1)),)))
    loop = For(start.name, Const(low), Const(low + full), tuple(body), step=stretch, note=f"a stretch of {axis.name}")
    return shared_out(loop, threads)
