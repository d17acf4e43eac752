"""`scalarize_intrinsics`: calls of lane-wise instructions on vectors wider than the target's become assignments.

    acc[r] = mac(a, b, acc[r])                of 16 lanes of s32, where vectors hold 8, becomes
    acc[r, e] = acc[r, e] + s32(a[e]) * s32(b[e])

`narrow` cuts those into several.
"""

from __future__ import annotations

from autosched.codegen import workarounds
from autosched.codegen.tree.kernel import Assign, IntrinsicCall, Kernel, Lane, Stmt
from autosched.ir.value import Arith, Read, Value, map_value, walk
from autosched.logic import FALSE, Int, Var
from autosched.tensorize.intrinsic import Intrinsic

LANE = "lane.e"
"""No loop of a program has such a name."""
SUMS = {"+=": "+", "-=": "-", "*=": "*", "min=": "min", "max=": "max"}


@workarounds.SCALARIZED
def scalarize_intrinsics(kernel: Kernel) -> Kernel:
    """The same kernel without calls that vectors of `kernel.vector_bytes` are too narrow for."""
    if not any(isinstance(stmt, IntrinsicCall) and _wide(stmt, kernel) for stmt in kernel.statements):
        return kernel

    def assigned(stmt: Stmt) -> tuple[Stmt]:
        return (_assigned(stmt, stmt.intrinsic) if isinstance(stmt, IntrinsicCall) and _wide(stmt, kernel) else stmt,)

    return kernel.rewritten(assigned)


def _wide(call: IntrinsicCall, kernel: Kernel) -> bool:
    target = call.intrinsic.accumulator
    return target.elements * target.dtype.bytes > kernel.vector_bytes and call.zero_init == FALSE and _by_lane(call)


def _by_lane(call: IntrinsicCall) -> bool:
    """Whether each lane of the result comes of the same lane of the operands, in numbers that C has vectors of."""
    intrinsic = call.intrinsic
    stage = intrinsic.stage
    if len(stage.axes) != 1 or stage.guards or stage.assign.op not in SUMS or intrinsic.matrices is not None:
        return False
    lane = (Var(stage.axes[0].name),)
    whole = all(r.index == lane for r in walk(stage.assign.value) if isinstance(r, Read)) and stage.assign.index == lane
    dtypes = {v.dtype for v in walk(stage.assign.value)} | {intrinsic.accumulator.dtype}
    return whole and all(d.name in ("f32", "f64") or (d.is_integer and d.bits >= 8) for d in dtypes)


def _assigned(call: IntrinsicCall, intrinsic: Intrinsic) -> Assign:
    stage = intrinsic.stage
    lane = Lane(LANE, intrinsic.accumulator.elements)

    def place(operand: str) -> tuple[str, tuple[Int, ...]]:
        ref = call.operands[operand]
        return ref.buffer, (*ref.index, Var(lane.var))

    def value(v: Value) -> Value:
        return Read(*place(v.tensor), v.dtype) if isinstance(v, Read) else v

    buffer, index = place(intrinsic.accumulator.name)
    so_far = Read(buffer, index, intrinsic.accumulator.dtype)
    added = Arith(SUMS[stage.assign.op], so_far, map_value(stage.assign.value, value), so_far.dtype)
    return Assign(buffer, index, added, lane)
