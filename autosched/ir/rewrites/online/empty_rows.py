"""Rows without a finite element, whose results are no number as the program is written: they need no sum.

    M = max of X = -inf: every X is -inf, so each exp(X - M) is exp(-inf + inf), no number, and so is their sum
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from autosched.ir.nodes import is_zero
from autosched.ir.rewrites.online.members import Cascade, Member
from autosched.ir.value import Arith, Call, Cast, Literal, Read, Select, Unary, Value, reads
from autosched.logic import Const


def no_number_where(cascade: Cascade, member: Member) -> Read | None:
    """A maximum or minimum whose start, as its result, makes the member's result no number; None where none is known
    to. The maximum passes on what is no number, so all that it was taken of is its start, too."""
    spans = all(isinstance(a.lower, Const) and isinstance(a.upper, Const) and a.extent > 0 for a in cascade.axes)
    if not spans or member.guards or member.op != "+" or not is_zero(member.init):
        return None
    for other in cascade.members:
        if other.op not in ("max", "min") or other.guards or other.target not in reads(member.term):
            continue
        start = other.init
        if not isinstance(start, Literal) or start.value != {"max": -math.inf, "min": math.inf}[other.op]:
            continue
        known = {other.term: float(start.value), other.target: float(start.value)}
        if _is_nan(_evaluated(member.term, known)):
            return other.target
    return None


def _evaluated(value: Value, known: Mapping[Value, float]) -> float | None:
    """The value as IEEE 754 has it, of these parts; None where that depends on others."""
    if value in known:
        return known[value]
    match value:
        case Literal(number) if value.dtype.is_float:
            return float(number)
        case Unary("-", operand):
            inner = _evaluated(operand, known)
            return None if inner is None else -inner
        case Cast(operand, dtype) if operand.dtype.is_float and dtype.is_float and dtype.special == "ieee":
            inner = _evaluated(operand, known)
            return inner if inner is not None and not math.isfinite(inner) else None
        case Arith(op, left, right) if value.dtype.is_float:
            return _combined(op, _evaluated(left, known), _evaluated(right, known))
        case Call("exp", (argument,)):
            inner = _evaluated(argument, known)
            return inner if _is_nan(inner) else {-math.inf: 0.0, math.inf: math.inf}.get(inner or 0.0)
        case Select(_, then, other):
            one, two = _evaluated(then, known), _evaluated(other, known)
            return one if one == two or (_is_nan(one) and _is_nan(two)) else None
    return None


def _combined(op: str, a: float | None, b: float | None) -> float | None:
    if _is_nan(a) or _is_nan(b):
        return math.nan
    if a is None or b is None or op not in ("+", "-", "*"):
        return None
    return a + b if op == "+" else a - b if op == "-" else a * b


def _is_nan(number: float | None) -> bool:
    return number is not None and math.isnan(number)
