"""The numpy reading of a scalar value: many inputs at once, in the interpreter's own arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from autosched.ir.oracle import numerics
from autosched.ir.oracle.evaluate import arith, call
from autosched.ir.value import Arith, Call, Cast, Comparison, Condition, Literal, Logical, Select, Unary, Value
from autosched.logic import Bool
from autosched.logic.expr import COMPARE


def evaluate(value: Value, env: Mapping[Any, Any]) -> Any:
    """`value` in its dtype's container; `env` gives each read, scalar, index value and condition on axes."""
    with np.errstate(all="ignore"):
        return _value(value, env)


def _condition(condition: Condition, env: Mapping[Any, Any]) -> Any:
    return env[condition] if isinstance(condition, Bool) else _value(condition, env)


def _value(value: Value, env: Mapping[Any, Any]) -> Any:
    if value in env:
        return env[value]
    dtype = value.dtype
    match value:
        case Literal(number, _):
            if dtype.is_integer:
                return numerics.container(dtype)(numerics.wrap_int(int(number), dtype))
            return numerics.round_float(number, dtype)
        case Unary(op, operand, _):
            x = _value(operand, env)
            return numerics.normalise(np.negative(x) if op == "-" else np.invert(x), dtype)
        case Arith(op, left, right, _):
            return arith(op, _value(left, env), _value(right, env), dtype)
        case Comparison(op, left, right, _):
            return COMPARE[op](_value(left, env), _value(right, env))
        case Logical(op, parts, _):
            terms = [_condition(p, env) for p in parts]
            if op == "not":
                return np.logical_not(terms[0])
            combine = np.logical_and if op == "and" else np.logical_or
            result = terms[0]
            for term in terms[1:]:
                result = combine(result, term)
            return result
        case Select(condition, then, other, _):
            return np.where(_condition(condition, env), _value(then, env), _value(other, env))
        case Cast(operand, _, saturate):
            return numerics.cast(_value(operand, env), operand.dtype, dtype, saturate)
        case Call(function, args, _):
            return call(function, [_value(a, env) for a in args], dtype, args[0].dtype)
    raise KeyError(value)
