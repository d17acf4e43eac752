"""Instructions that the threads of a team's part on a GPU issue, reads and writes aside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from autosched.costmodel.analytic.cpu.scalar_cycles import SLOW
from autosched.costmodel.analytic.gpu.gpu_traffic import Column
from autosched.costmodel.analytic.gpu.team_bytes import read_share
from autosched.ir.formula import Formula, Formulas
from autosched.ir.value import Arith, Call, Cast, Comparison, Literal, Read, Scalar, Select, Unary, Value, walk
from autosched.ir.variables import value_vars
from autosched.tiling.plans.plan import WarpCooperativePart
from autosched.tiling.plans.teams import elements, inner_axes, numbered
from autosched.tiling.steps.scalar.shared_along_row import kept_values

SMALL_FLOAT_OPERATIONS = 4.0
"""Of a conversion of an 8-bit float: shift, mask, unpacking at half the rate, f16 to f32 (sm_90a). One row by
4096x4096 of e4m3 took 8.4 us on an H200."""
LIBRARY_OPERATIONS = 80.0  # of a function that is computed in double
QUOTIENT_OPERATIONS = 10.0  # of a division or a root of floats that rounds as IEEE says
RECIPROCAL_OPERATIONS = 5.0  # of a division by what a row has in common (`codegen.lower.scalar.quotient`)


def operations(part: WarpCooperativePart, kept: bool) -> float:
    """Operations of all members together; with `kept`, what two of them compute alike counts once."""
    seen: set[Value] = set()
    common = kept_values(part) if kept else {}
    total = 0.0
    for member in part.members:
        moving = {a.name for a in (*inner_axes(part, member), *member.reduction)}
        again = {v for v in common.get(member.name, ()) if numbered(part, member, v) in seen}
        seen |= {numbered(part, member, v) for v in common.get(member.name, ())}
        each = _value_operations(member.assign.value, moving, again, part.policy.formulas)
        total += elements(member.axes) * (1.0 + each)
    return total


def shared_conversions(part: WarpCooperativePart, results_along: Mapping[str, Column]) -> Column | float:
    """Conversions that are saved where several results of a thread share an element."""
    member = part.members[0]
    read = [v.operand for v in walk(member.assign.value) if isinstance(v, Cast) and isinstance(v.operand, Read)]
    return elements(member.axes) * sum(1.0 - read_share(part, r, results_along) for r in read)


def _value_operations(value: Value, moving: set[str], again: set[Value], formulas: Formulas) -> float:
    """Operations of one element, without those that a row has in common."""
    if value in again or not value_vars(value) & moving:
        return 0.0
    inside = sum(_value_operations(v, moving, again, formulas) for v in _operands(value))
    match value:
        case Read() | Literal() | Scalar():
            return 0.0
        case Call(function, _, dtype) if function in SLOW:
            known = formulas.get((function, dtype.name))
            return inside + (_formula_operations(known) if known else LIBRARY_OPERATIONS)
        case Arith("/", _, right, dtype) if dtype.is_float:
            return inside + (QUOTIENT_OPERATIONS if value_vars(right) & moving else RECIPROCAL_OPERATIONS)
        case Cast(operand, _, _) if operand.dtype.is_float and operand.dtype.bits <= 8:
            return inside + SMALL_FLOAT_OPERATIONS
        case Call("sqrt", _, _) | Arith("/", _, _, _):
            return inside + QUOTIENT_OPERATIONS
        case _:
            return inside + 1.0


def _operands(value: Value) -> Iterator[Value]:
    match value:
        case Unary() | Cast():
            yield value.operand
        case Arith() | Comparison():
            yield from (value.left, value.right)
        case Call(_, args, _):
            yield from args
        case Select(_, then, other, _):
            yield from (then, other)


def _formula_operations(formula: Formula) -> float:
    values = [*(step for _, step in formula.steps), formula.result]
    return float(sum(not isinstance(n, Read | Literal | Scalar) for v in values for n in walk(v)))
