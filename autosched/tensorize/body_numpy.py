"""The numpy reading of a scalar value: many inputs at once, in the language's exact arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import special

from autosched.ir import numerics
from autosched.ir.dtypes import DType
from autosched.ir.value import Arith, Call, Cast, Comparison, Condition, Literal, Logical, Select, Unary, Value, is_value

_COMPARE = {
    "<": np.less, "<=": np.less_equal, "==": np.equal, "!=": np.not_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip
_FUNCTIONS = {
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "round": np.rint, "floor": np.floor, "ceil": np.ceil,
    "erf": special.erf, "sigmoid": special.expit, "rsqrt": lambda x: 1 / np.sqrt(x),
}  # fmt: skip


def evaluate(value: Value, env: Mapping[Any, Any]) -> Any:
    """`value` in its dtype's container; `env` gives each read, scalar, index value and condition on axes."""
    with np.errstate(all="ignore"):
        return _value(value, env)


def _condition(condition: Condition, env: Mapping[Any, Any]) -> Any:
    return _value(condition, env) if is_value(condition) else env[condition]  # type: ignore[arg-type]


def _value(value: Value, env: Mapping[Any, Any]) -> Any:
    if value in env:
        return env[value]
    dtype = value.dtype
    match value:
        case Literal(number, _):
            kind = numerics.container(dtype)
            return kind(numerics.wrap_int(int(number), dtype)) if dtype.is_integer else numerics.round_float(number, dtype)
        case Unary(op, operand, _):
            x = _value(operand, env)
            return numerics.normalise(np.negative(x) if op == "-" else np.invert(x), dtype)
        case Arith(op, left, right, _):
            return numerics.normalise(_arith(op, _value(left, env), _value(right, env), dtype), dtype)
        case Comparison(op, left, right, _):
            return _COMPARE[op](_value(left, env), _value(right, env))
        case Logical(op, parts, _):
            terms = [_condition(p, env) for p in parts]
            return np.logical_not(terms[0]) if op == "not" else (np.all if op == "and" else np.any)(
                np.broadcast_arrays(*terms), axis=0
            )
        case Select(condition, then, other, _):
            return np.where(_condition(condition, env), _value(then, env), _value(other, env))
        case Cast(operand, _, saturate):
            return numerics.cast(_value(operand, env), operand.dtype, dtype, saturate)
        case Call(function, args, _):
            return _call(function, [_value(a, env) for a in args], dtype)
    raise KeyError(value)


def _arith(op: str, a: Any, b: Any, dtype: DType) -> Any:
    match op:
        case "+":
            return np.add(a, b)
        case "-":
            return np.subtract(a, b)
        case "*":
            return np.multiply(a, b)
        case "/":
            return np.divide(a, b)
        case "//":
            return np.floor_divide(a, b)
        case "%":
            return np.remainder(a, b)
        case "min":
            return np.minimum(a, b)
        case "max":
            return np.maximum(a, b)
        case "&":
            return np.bitwise_and(a, b)
        case "|":
            return np.bitwise_or(a, b)
        case "^":
            return np.bitwise_xor(a, b)
    assert op in ("<<", ">>")
    # A negative count is, as bits, a large one; numpy's own shifts by the width or more are undefined.
    count = np.asarray(b).astype(np.int64)
    big = (count < 0) | (count >= dtype.bits)
    small = np.where(big, 0, count).astype(np.asarray(a).dtype)
    if op == "<<":
        return np.where(big, np.zeros_like(a), np.left_shift(a, small))
    return np.where(big, np.where(np.less(a, 0), -np.ones_like(a), 0) if dtype.signed else np.zeros_like(a), a >> small)


def _call(function: str, args: list[Any], dtype: DType) -> Any:
    if function == "fma":
        a, b, c = args
        if dtype.name in ("f32", "f64"):  # extended precision stands in for the one rounding
            kind = np.float64 if dtype.name == "f32" else np.longdouble
            return numerics.round_float((np.asarray(a, kind) * b + c).astype(np.float64), dtype)
        return numerics.normalise(np.add(np.multiply(a, b), c), dtype)
    if function == "abs":
        return numerics.normalise(np.abs(args[0]), dtype)
    if function == "popcount":
        unsigned = np.asarray(args[0]).astype(np.int64) & ((1 << dtype.bits) - 1)
        return numerics.wrap(np.bitwise_count(unsigned), dtype)
    return numerics.round_float(_FUNCTIONS[function](args[0]), dtype)
