"""The normal form of a scalar expression: rules that hold for every input, each stated where it is applied."""

from __future__ import annotations

from functools import lru_cache, reduce
from math import isnan

from autosched.ir.dtypes import DType
from autosched.ir.value import Arith, Call, Cast, Comparison, Literal, Logical, Select, Unary, Value, walk
from autosched.logic import Bool
from autosched.tensorize.body.arrays import evaluate
from autosched.tensorize.body.exact import exact_factors, holds, narrow, product_fits, reciprocal, rounds_once
from autosched.tensorize.body.intervals import Range, exact_range

_COMMUTE = frozenset(["+", "*", "&", "|", "^", "min", "max"])
"""Of integers. Of floats + and * commute; min and max of two zeros may take either's sign."""
_FLIP = {">": "<", ">=": "<="}


@lru_cache(maxsize=4096)
def canonical(value: Value, loose: bool = False) -> Value:
    """The normal form: two values with one normal form are equal on all inputs (NaN payloads aside).

    `loose`: but for the sign of a float zero (see `tells_zeros_apart`).
    """

    def sub(v: Value) -> Value:
        return canonical(v, loose)

    match value:
        case Cast(operand, dtype, saturate):
            return _cast(sub(operand), dtype, saturate, loose)
        case Unary("-", operand, _):
            return _negated(sub(operand), loose)
        case Unary(op, operand, dtype):
            return _folded(Unary(op, sub(operand), dtype))
        case Arith("-", left, right, dtype):  # a - b is a + (-b), in IEEE 754 too
            return sub(Arith("+", left, Unary("-", right, dtype), dtype))
        case Arith("/", left, right, dtype):
            return _quotient(sub(left), sub(right), dtype, loose)
        case Arith(op, left, right, dtype) if op in (_COMMUTE if dtype.is_integer or loose else "+*"):
            return _commuted(op, sub(left), sub(right), dtype, loose)
        case Arith(op, left, right, dtype):
            return _folded(Arith(op, sub(left), sub(right), dtype))
        case Comparison(op, left, right, _) if op in _FLIP:
            return Comparison(_FLIP[op], sub(right), sub(left))
        case Comparison(op, left, right, _):
            a, b = sub(left), sub(right)
            if op in ("==", "!="):
                a, b = _sorted([a, b])
            return Comparison(op, a, b)
        case Logical(op, parts, _):
            return Logical(op, tuple(p if isinstance(p, Bool) else sub(p) for p in parts))
        case Select(condition, then, other, dtype):
            test = condition if isinstance(condition, Bool) else sub(condition)
            chosen, rest = sub(then), sub(other)
            return chosen if chosen == rest else Select(test, chosen, rest, dtype)
        case Call("fma", (a, b, c), dtype):
            return _fused(sub(a), sub(b), sub(c), dtype, loose)
        case Call("abs", (operand,), dtype) if dtype.signed or dtype.is_float:
            return _magnitude(sub(operand), dtype, loose)
        case Call(function, args, dtype):
            return _folded(Call(function, tuple(sub(a) for a in args), dtype))
    return value


def tells_zeros_apart(value: Value) -> bool:
    """Whether the sign of a zero inside `value` can show as more than the sign of a zero."""
    return any(
        (isinstance(v, Arith) and v.op == "/") or (isinstance(v, Call) and v.function == "rsqrt") for v in walk(value)
    )


def _cast(inner: Value, dtype: DType, saturate: bool, loose: bool) -> Value:
    source = inner.dtype
    if source == dtype:
        return inner
    if holds(source, dtype):
        saturate = False  # nothing to clamp
    match inner:
        case Unary("-", operand, _) if source.is_float and dtype.is_float and not dtype.finite:
            # A NaN becomes a zero of a finite type, and that has no sign.
            return _negated(_cast(operand, dtype, saturate, loose), loose)  # rounding to nearest is symmetric
        case Unary("-", operand, _) if loose and dtype.is_float and exact_range(operand).low > source.limits[0]:
            return _negated(_cast(operand, dtype, saturate, loose), loose)
        case Call("abs", (operand,), _) if source.is_float and dtype.is_float:
            return _magnitude(_cast(operand, dtype, saturate, loose), dtype, loose)
        case Select(condition, then, other, _):
            chosen, rest = (_cast(v, dtype, saturate, loose) for v in (then, other))
            return chosen if chosen == rest else Select(condition, chosen, rest, dtype)
        case Arith("*", left, right, _) if product_fits(left, right, source) and product_fits(left, right, dtype):
            return _commuted("*", _cast(left, dtype, False, loose), _cast(right, dtype, False, loose), dtype, loose)
        case Arith(op, left, right, _) if rounds_once(op, source, dtype):
            parts = narrow(left, dtype), narrow(right, dtype)
            if parts[0] is not None and parts[1] is not None:
                return canonical(Arith(op, parts[0], parts[1], dtype), loose)
        case Arith("+" | "*" as op, left, right, _) if source.is_integer and dtype.is_float:
            # A whole number that both types hold, and so are its parts; -1 * 0 is -0.0 of floats.
            signless = loose or op == "+" or all(exact_range(v).low >= 0 for v in (left, right))
            if signless and _exact_in(op, left, right, dtype):
                return _commuted(op, _cast(left, dtype, False, loose), _cast(right, dtype, False, loose), dtype, loose)
        case Cast(operand, _, False):
            # An exact conversion on the way changes nothing.
            if holds(operand.dtype, source):
                return _cast(operand, dtype, saturate, loose)
            # Nor does an integer one that keeps at least the bits which the outer keeps.
            if all(t.is_integer for t in (operand.dtype, source, dtype)) and source.bits >= dtype.bits and not saturate:
                return _cast(operand, dtype, False, loose)
    return _folded(Cast(inner, dtype, saturate))


def _exact_in(op: str, left: Value, right: Value, dtype: DType) -> bool:
    """Whether two integers and their sum or product never wrap, and are numbers of the float type."""
    x, y = exact_range(left), exact_range(right)
    corners = [p * q for p in (x.low, x.high) for q in (y.low, y.high)]
    found = x + y if op == "+" else Range(min(corners), max(corners))
    most = 1 << (dtype.mantissa + 1)
    return found.within(left.dtype.limits) and all(r.within((-most, most)) for r in (x, y, found))


def _negated(inner: Value, loose: bool = False) -> Value:
    match inner:
        case Unary("-", operand, _):  # -(-x)
            return operand
        case Literal(number, dtype) if dtype.is_float:
            return Literal(-number, dtype)
        case Arith("+", left, right, dtype) if loose and dtype.is_float:
            return _commuted("+", _negated(left, True), _negated(right, True), dtype, True)
    return _folded(Unary("-", inner, inner.dtype))


def _magnitude(inner: Value, dtype: DType, loose: bool) -> Value:
    """|x| is |-x|, for the least integer too; and |x y| is |x| |y| of floats, where the sign is separate."""
    match inner:
        case Arith("*", left, right, _) if dtype.is_float:
            return _commuted("*", _magnitude(left, dtype, loose), _magnitude(right, dtype, loose), dtype, loose)
        case Call("abs", _, _) if dtype.is_float:
            return inner
    return _folded(Call("abs", (min(inner, _distributed(inner), key=repr),), dtype))


def _distributed(inner: Value) -> Value:
    """`-inner`, with the sign moved into a sum: rounding to nearest is symmetric, and only a zero's sign may differ."""
    match inner:
        case Arith("+", left, right, dtype):
            return _commuted("+", _distributed(left), _distributed(right), dtype, False)
    return _negated(inner)


def _unsigned(parts: list[Value]) -> tuple[list[Value], bool]:
    """The parts without their signs, and whether these make a minus."""
    signs = [isinstance(p, Unary) and p.op == "-" for p in parts]
    bare = [p.operand if isinstance(p, Unary) and p.op == "-" else p for p in parts]
    for n, p in enumerate(bare):
        if isinstance(p, Literal) and p.dtype.is_float and p.value < 0:
            bare[n], signs[n] = Literal(-p.value, p.dtype), not signs[n]
    return bare, sum(signs) % 2 == 1


def _commuted(op: str, left: Value, right: Value, dtype: DType, loose: bool) -> Value:
    """Sorted operands. Integers are flattened first: these operations are associative modulo 2^w; floats are not."""
    parts = [left, right]
    sign = False
    if dtype.is_integer:
        parts = [q for p in parts for q in _flat(op, p)]
    if op == "*":  # (-x) * y is -(x * y): modulo 2^w, and in IEEE 754, where the sign of a product is separate
        parts, sign = _unsigned(parts)
        if dtype.is_integer:
            parts = [q for p in parts for q in _flat(op, p)]
        parts = [p for p in parts if not _is(p, 1)] or [Literal(1, dtype)]
        if dtype.is_float and (factors := _exact_product(parts, dtype)) is not None:
            parts = list(factors)
    elif op == "+" and (dtype.is_integer or loose):
        parts = [p for p in parts if not _is(p, 0)] or [Literal(0, dtype)]
    if op == "+" and dtype.is_float and len(parts) == 2 and parts[0] == parts[1]:
        return _commuted("*", parts[0], Literal(2.0, dtype), dtype, loose)  # both round 2 x
    if op in ("min", "max", "&", "|"):
        parts = list(dict.fromkeys(parts))
    result = reduce(lambda a, b: _folded(Arith(op, a, b, dtype)), _sorted(parts))
    return _negated(result, loose) if sign else result


def _exact_product(parts: list[Value], dtype: DType) -> tuple[Value, ...] | None:
    """Its factors, where floats multiply as exactly in any order."""
    return exact_factors(reduce(lambda a, b: Arith("*", a, b, dtype), parts), dtype)


def _quotient(left: Value, right: Value, dtype: DType, loose: bool) -> Value:
    if not dtype.is_float:
        return _folded(Arith("/", left, right, dtype))
    (x, y), sign = ([left, right], False) if dtype.finite else _unsigned([left, right])  # 0 / 0 is 0 there, not -0
    scale = reciprocal(y)
    result = _commuted("*", x, scale, dtype, loose) if scale else _folded(Arith("/", x, y, dtype))
    return _negated(result, loose) if sign else result


def _fused(a: Value, b: Value, c: Value, dtype: DType, loose: bool) -> Value:
    if _is(a, 1) or _is(b, 1) or product_fits(a, b, dtype):  # the product does not round
        return _commuted("+", _commuted("*", a, b, dtype, loose), c, dtype, loose)
    if loose and _is(c, 0):
        return _commuted("*", a, b, dtype, loose)
    (x, y), sign = _unsigned([a, b])
    x, y = _sorted([x, y])
    return _folded(Call("fma", (_negated(x) if sign else x, y, c), dtype))


def _is(value: Value, number: int) -> bool:
    return isinstance(value, Literal) and value.value == number


def _folded(value: Value) -> Value:
    """A literal in place of an operation on literals; NaN, which equals nothing, stays an operation."""
    match value:
        case Unary(_, operand, _) | Cast(operand, _, _):
            parts: tuple[Value, ...] = (operand,)
        case Arith(_, left, right, _):
            parts = left, right
        case Call(_, args, _):
            parts = args
        case _:
            return value
    if not all(isinstance(p, Literal) for p in parts) or value.dtype.kind == "bool":
        return value
    number = evaluate(value, {})
    if value.dtype.is_integer:
        return Literal(int(number), value.dtype)
    return value if isnan(float(number)) else Literal(float(number), value.dtype)


def _flat(op: str, value: Value) -> list[Value]:
    if isinstance(value, Arith) and value.op == op:
        return _flat(op, value.left) + _flat(op, value.right)
    return [value]


def _sorted(parts: list[Value]) -> list[Value]:
    return sorted(parts, key=repr)
