"""The parts of a program as text of the language; `str(program)` is the whole text."""

from __future__ import annotations

import inspect
import math

from autosched.ir.dtypes import DType
from autosched.ir.nodes import Assign, Assume, Axis, Guard, Loop, ScalarParam, Statement, Tensor
from autosched.ir.oracle.numerics import container, float_literal
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
from autosched.logic import And, Bool, Const, Int, Or, free_vars

_LEVEL = {"|": 1, "^": 2, "&": 3, "<<": 4, ">>": 4, "+": 5, "-": 5, "*": 6, "/": 6, "//": 6, "%": 6}
_UNARY, _ATOM = 7, 8


def print_parameter(parameter: Tensor | ScalarParam) -> str:
    """A tensor or a scalar with its type: `B: const[s8[64, 64]]`."""
    if isinstance(parameter, ScalarParam):
        return f"{parameter.name}: {parameter.dtype}"
    text = f"{parameter.dtype}[{', '.join(map(str, parameter.shape))}]"
    return f"{parameter.name}: {f'const[{text}]' if parameter.const else text}"


def print_docstring(doc: str) -> list[str]:
    """The lines of a docstring, the first one's indentation left out; none for an empty one."""
    if not doc:
        return []
    plain = doc.isprintable() or all(line.isprintable() for line in doc.split("\n"))
    if plain and "\\" not in doc and '"""' not in doc and not doc.endswith('"'):
        text = '"""' + doc.replace("\n", "\n    ") + '"""'
        if inspect.cleandoc(text[3:-3]) == doc:
            return [text]
    return [repr(doc)]


def print_assume(a: Assume) -> str:
    """An assumption as a statement: `assume(0 <= s <= 7)`."""
    return f"assume({_assumption(a)})"


def _assumption(a: Assume) -> str:
    if a.multiple is not None:
        return f"{a.subject} % {a.multiple} == 0"
    if a.distinct is not None:
        return f"distinct({a.subject}, {a.distinct})"
    low = f"{_number(a.low)} <= " if a.low is not None else ""
    high = f" <= {_number(a.high)}" if a.high is not None else ""
    if low and not high:
        return f"{a.subject} >= {_number(a.low)}"
    return low + a.subject + high


def _number(x: int | float | None) -> str:
    assert x is not None
    return str(x) if isinstance(x, int) else _float(x)


def _float(x: float) -> str:
    return ("-inf" if x < 0 else "inf") if math.isinf(x) else repr(x)


def print_block(body: tuple[Statement, ...], depth: int = 1) -> list[str]:
    """The lines of statements, indented by four spaces for each level of `depth`."""
    pad = "    " * depth
    lines: list[str] = []
    for node in body:
        match node:
            case Loop():
                axes, inner = _perfect(node)
                lines.append(f"{pad}for {', '.join(a.name for a in axes)} in {_domain(axes)}:")
                lines += print_block(inner, depth + 1)
            case Guard(condition, inner):
                lines.append(f"{pad}if {print_condition(condition)}:")
                lines += print_block(inner, depth + 1)
            case Assign():
                lines.append(pad + print_assign(node))
    return lines or [f"{pad}pass"]


def _perfect(loop: Loop) -> tuple[list[Axis], tuple[Statement, ...]]:
    """The loops that one `grid` states: perfectly nested, from 0, to bounds without outer axes of the same grid."""
    axes, body = [loop.axis], loop.body
    while loop.axis.lower == Const(0) and len(body) == 1 and isinstance(body[0], Loop):
        inner = body[0].axis
        if inner.lower != Const(0) or free_vars(inner.upper) & {a.name for a in axes}:
            break
        axes.append(inner)
        body = body[0].body
    return axes, body


def _domain(axes: list[Axis]) -> str:
    if len(axes) > 1:
        return f"grid({', '.join(str(a.upper) for a in axes)})"
    (axis,) = axes
    return f"range({axis.upper})" if axis.lower == Const(0) else f"range({axis.lower}, {axis.upper})"


def print_assign(node: Assign) -> str:
    """One assignment: `C[i, j] += s32(A[i, p]) * s32(B[p, j])`."""
    target = f"{node.tensor}[{_indices(node.index)}]"
    if node.op in ("min=", "max="):
        return f"{target} = {node.op[:3]}({target}, {_bare(node.value)})"
    return f"{target} {node.op} {_bare(node.value)}"


def _indices(index: tuple[Index, ...]) -> str:
    return ", ".join(str(i) if isinstance(i, Int) else print_value(i) for i in index)


def print_condition(node: Condition) -> str:
    """A guard's condition."""
    return str(node) if isinstance(node, Bool) else print_value(node)


def print_value(node: Value) -> str:
    """A value; literals carry their dtype, as `f32(1.5)`, unless the other operand gives it."""
    return _text(node)[0]


def _bare(node: Value) -> str:
    """A value where the context gives its dtype."""
    return _literal(node) if isinstance(node, Literal) else print_value(node)


def _literal(node: Literal) -> str:
    if node.dtype.is_integer:
        return str(node.value)
    return _shortest(float(node.value), node.dtype)


def _shortest(x: float, dtype: DType) -> str:
    """The shortest decimal that the parser rounds back to `x`."""
    if math.isinf(x):
        return _float(x)
    short = repr(float(str(container(dtype)(x))))
    return short if float_literal(float(short), dtype) == x else repr(x)


def _wrap(node: Value, level: int) -> str:
    text, mine = _text(node)
    return text if mine >= level else f"({text})"


def _operands(left: Value, right: Value, level: int, right_level: int) -> tuple[str, str]:
    """Both sides of an operator; one bare literal at most, and a negative one in parentheses."""
    if isinstance(right, Literal):
        text = _literal(right)
        return _wrap(left, level), f"({text})" if text.startswith("-") else text
    if isinstance(left, Literal):
        text = _literal(left)
        return f"({text})" if text.startswith("-") else text, _wrap(right, right_level)
    return _wrap(left, level), _wrap(right, right_level)


def _text(node: Value) -> tuple[str, int]:
    """Text and binding strength."""
    match node:
        case Literal(_, dtype):
            return f"{dtype}({_literal(node)})", _ATOM
        case Read(tensor, index, _):
            return f"{tensor}[{_indices(index)}]", _ATOM
        case Scalar(name, _):
            return name, _ATOM
        case FromIndex(index, dtype):
            return f"{dtype}({index})", _ATOM
        case Unary(op, operand, _):
            return op + _wrap(operand, _UNARY), _UNARY
        case Arith("min" | "max" as op, left, right, _):
            a, b = (
                (_bare(left), print_value(right))
                if not isinstance(right, Literal)
                else (print_value(left), _bare(right))
            )
            return f"{op}({a}, {b})", _ATOM
        case Arith(op, left, right, _):
            a, b = _operands(left, right, _LEVEL[op], _LEVEL[op] + 1)
            return f"{a} {op} {b}", _LEVEL[op]
        case Comparison(op, left, right, _):
            a, b = _operands(left, right, 1, 1)
            return f"{a} {op} {b}", 0
        case Logical("not", (part,), _):
            return f"not ({print_condition(part)})", 0
        case Logical(op, parts, _):
            return f" {op} ".join(_part(p) for p in parts), 0
        case Select(condition, then, other, _):
            first = print_value(then) if isinstance(other, Literal) else _bare(then)
            return f"({first} if {print_condition(condition)} else {_bare(other)})", _ATOM
        case Call(function, args, _):
            return f"{function}({', '.join(print_value(a) for a in args)})", _ATOM
        case Cast(operand, dtype, saturate):
            return f"{'sat_' if saturate else ''}{dtype}({print_value(operand)})", _ATOM


def _part(condition: Condition) -> str:
    compound = isinstance(condition, Logical | And | Or)
    return f"({print_condition(condition)})" if compound else print_condition(condition)
