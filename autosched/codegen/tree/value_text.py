"""Value expressions as text, in the language's own syntax."""

from __future__ import annotations

from typing import assert_never

from autosched.ir.value import (
    Arith,
    Call,
    Cast,
    Comparison,
    Condition,
    FromIndex,
    Index,
    Literal,
    Logical,
    Read,
    Scalar,
    Select,
    Unary,
    Value,
)
from autosched.logic import Bool, Int

# Python's own precedence, as the language is a subset of Python.
_LEVEL = {"|": 3, "^": 4, "&": 5, "<<": 6, ">>": 6, "+": 7, "-": 7, "*": 8, "/": 8, "//": 8, "%": 8}
_COMPARE, _NOT, _AND, _OR, _TERNARY, _UNARY = 2, 1, 0, -1, -2, 9


def value_text(value: Value) -> str:
    """`value` as an expression of the loop-nest language (a float literal shows its shortest exact form)."""
    return _text(value, _TERNARY)


def index_text(index: tuple[Index, ...]) -> str:
    """`[i, j + 1]`."""
    return f"[{', '.join(_leaf(i, _TERNARY) for i in index)}]"


def _leaf(x: Index | Condition, level: int) -> str:
    if isinstance(x, Int):
        return str(x)
    if isinstance(x, Bool):
        return str(x) if level <= _TERNARY else f"({x})"
    return _text(x, level)


def _text(value: Value, level: int) -> str:
    """The text, in parentheses where the surroundings bind tighter than `level`."""
    text, own = _node(value)
    return f"({text})" if own < level else text


def _node(value: Value) -> tuple[str, int]:
    match value:
        case Literal(number, _):
            return str(number), 10 if not str(number).startswith("-") else _UNARY
        case Read(tensor, index, _):
            return tensor + (index_text(index) if index else ""), 10
        case Scalar(name, _):
            return name, 10
        case FromIndex(index_value, dtype):
            return f"{dtype}({index_value})", 10
        case Unary(op, operand, _):
            return op + _text(operand, _UNARY), _UNARY
        case Arith(op, left, right, _) if op in _LEVEL:
            own = _LEVEL[op]
            left = _typed(left, right)
            return f"{_text(left, own)} {op} {_text(right, own + 1)}", own
        case Arith(op, left, right, _):
            return f"{op}({value_text(_typed(left, right))}, {value_text(right)})", 10
        case Comparison(op, left, right, _):
            left = _typed(left, right)
            return f"{_text(left, _COMPARE + 1)} {op} {_text(right, _COMPARE + 1)}", _COMPARE
        case Logical("not", parts, _):
            return f"not {_leaf(parts[0], _COMPARE)}", _NOT
        case Logical(op, parts, _):
            own = _AND if op == "and" else _OR
            return f" {op} ".join(_leaf(p, own + 1) for p in parts), own
        case Select(condition, then, other, _):
            then = _typed(then, other)
            return f"{_text(then, _OR)} if {_leaf(condition, _TERNARY)} else {_text(other, _TERNARY)}", _TERNARY
        case Call(function, args, _):
            args = (_typed(*args), *args[1:])
            return f"{function}({', '.join(value_text(a) for a in args)})", 10
        case Cast(operand, dtype, saturate):
            return f"{'sat_' if saturate else ''}{dtype}({value_text(operand)})", 10
        case _:
            assert_never(value)


def _typed(first: Value, *others: Value) -> Value:
    """`first`, cast where it and all others are literals: in the language nothing else would give them a dtype."""
    literals = isinstance(first, Literal) and all(isinstance(o, Literal) for o in others)
    return Cast(first, first.dtype) if literals else first
