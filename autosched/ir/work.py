"""How much a program computes: scalar operations of one run, two a multiply-add, integers too."""

from __future__ import annotations

from math import prod

from autosched.ir.program import Axis, Program
from autosched.ir.value import Arith, Call, Unary, walk
from autosched.logic import Const, interval


def operations(program: Program) -> float:
    """Arithmetic operations and function calls over all iterations; casts, selections and guards are not counted.

    Loops whose bounds depend on outer axes count at their box; where a size is symbolic, at its upper end.
    """
    ranges: dict[str, tuple[int, int]] = dict(program.symbolic)
    total = 0.0
    for stage in program.stages:
        box = dict(ranges)
        counted = sum(isinstance(node, Arith | Call | Unary) for node in walk(stage.assign.value))
        each = counted + (stage.assign.op != "=")
        total += each * prod(_trips(a, box) for a in stage.axes)
    return total


def _trips(axis: Axis, box: dict[str, tuple[int, int]]) -> int:
    if isinstance(axis.lower, Const) and isinstance(axis.upper, Const):
        low, high = axis.lower.value, axis.upper.value - 1
    else:
        low, high = interval(axis.lower, box)[0], interval(axis.upper, box)[1] - 1
    box[axis.name] = low, max(low, high)
    return max(0, high - low + 1)
