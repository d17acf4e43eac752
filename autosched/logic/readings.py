"""The three readings of an expression: numpy (fast), z3 (proof), a sentence (why)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from autosched.logic.expr import ARITHMETIC, COMPARE, And, Binary, Compare, Const, Expr, Not, Or, Truth, Var, Where
from autosched.logic.solver import z3


def evaluate(node: Expr, env: Mapping[str, Any]) -> Any:
    """The value of `node` where each variable is a Python int or an integer array; arrays broadcast.

    Integer arrays should be int64: products of sizes overflow int32. Raises KeyError for a variable not in `env`.
    """
    if type(node) is Var:  # these three are most nodes, and a match takes longer
        return env[node.name]
    if type(node) is Const:
        return node.value
    if type(node) is Binary:
        return _BINARY[node.op](evaluate(node.left, env), evaluate(node.right, env))
    match node:
        case Truth(value):
            return value
        case Compare(op, left, right):
            return COMPARE[op](evaluate(left, env), evaluate(right, env))
        case Where(condition, then, other):
            c = evaluate(condition, env)
            if isinstance(c, np.ndarray):
                return np.where(c, evaluate(then, env), evaluate(other, env))
            return evaluate(then if c else other, env)
        case And(parts):
            result = evaluate(parts[0], env)
            for part in parts[1:]:
                result = np.logical_and(result, evaluate(part, env))
            return result
        case Or(parts):
            result = evaluate(parts[0], env)
            for part in parts[1:]:
                result = np.logical_or(result, evaluate(part, env))
            return result
        case Not(part):
            return np.logical_not(evaluate(part, env))
    raise TypeError(f"not an expression: {node!r}")


def _arrays(a: Any, b: Any) -> bool:
    return isinstance(a, np.ndarray) or isinstance(b, np.ndarray)


def _least(a: Any, b: Any) -> Any:
    return np.minimum(a, b) if _arrays(a, b) else min(a, b)


def _most(a: Any, b: Any) -> Any:
    return np.maximum(a, b) if _arrays(a, b) else max(a, b)


_BINARY = ARITHMETIC | {"min": _least, "max": _most}


def to_z3(node: Expr, env: Mapping[str, Any], context: Any = None) -> Any:
    """The z3 term of `node`; `env` maps variable names to z3 integer terms, all of `context` (z3's own if None).

    Floor division and remainder agree with Python for positive constant divisors, which is all that programs and
    rules use: z3's integer division rounds so that the remainder is non-negative.
    """
    match node:
        case Const(value):
            return z3.IntVal(value, context)
        case Truth(value):
            return z3.BoolVal(value, context)
        case Var(name):
            return env[name]
        case Binary(op, left, right):
            a, b = to_z3(left, env, context), to_z3(right, env, context)
            match op:
                case "//":
                    return a / b
                case "min":
                    return z3.If(a <= b, a, b)
                case "max":
                    return z3.If(a >= b, a, b)
                case _:
                    return ARITHMETIC[op](a, b)
        case Compare(op, left, right):
            return COMPARE[op](to_z3(left, env, context), to_z3(right, env, context))
        case Where(condition, then, other):
            return z3.If(to_z3(condition, env, context), to_z3(then, env, context), to_z3(other, env, context))
        case And(parts):
            return z3.And(*(to_z3(p, env, context) for p in parts))
        case Or(parts):
            return z3.Or(*(to_z3(p, env, context) for p in parts))
        case Not(part):
            return z3.Not(to_z3(part, env, context))
    raise TypeError(f"not an expression: {node!r}")


_WORDS = {"<": "<", "<=": "≤", "==": "=", "!=": "≠", ">": ">", ">=": "≥"}


def sentence(node: Expr, values: Mapping[str, Any] | None = None) -> str:
    """`node` in words; with `values` each variable is followed by its number, as in `registers 40 ≤ 32`."""
    match node:
        case Compare(op, left, right):
            return f"{sentence(left, values)} {_WORDS[op]} {sentence(right, values)}"
        case And(parts):
            return " and ".join(sentence(p, values) for p in parts)
        case Or(parts):
            return " or ".join(sentence(p, values) for p in parts)
        case Not(part):
            return f"not ({sentence(part, values)})"
        case Const(value):
            return f"{value:,}"
        case Var(name) if values is not None and name in values:
            return f"{name} {int(values[name]):,}"
        case _:
            return str(node)
