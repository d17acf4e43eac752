"""A program as text of the language: `parse(print_program(p)) == p`. Known sizes are written as numbers."""

from __future__ import annotations

import inspect
import math

from autosched.ir.dtypes import DType
from autosched.ir.oracle.numerics import container
from autosched.ir.program import Assign, Assume, Axis, Guard, Loop, Program, Statement, Tensor
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


def print_program(program: Program) -> str:
    """The program's text, ending in a newline. A symbolic size keeps its range as its default."""
    parts = _parameters(program)
    keywords: list[str] = [f"{n}={v}" for n, v in program.sizes.items()]
    keywords += [f'{n}="{low}..{high}"' for n, (low, high) in program.symbolic.items()]
    keywords += [f'{n}="{t}"' for n, t in program.dtypes.items()]
    given = ", ".join(parts + (["*", *keywords] if keywords else []))
    lines = [f"def {program.name}({given}):"]
    lines += _docstring(program.doc)
    lines += [f"    {t.name}: {_type(t)}" for t in program.tensors.values() if t.intermediate]
    lines += [f"    assume({_assumption(a)})" for a in program.assumptions]
    lines += _block(program.body, 1)
    return "\n".join(lines) + "\n"


def signature(program: Program) -> str:
    """The program in a line: `gemm(A: f32[64, 64], B: f32[64, 64], C: f32[64, 64])`."""
    return f"{program.name}({', '.join(_parameters(program))})"


def _parameters(program: Program) -> list[str]:
    scalars, tensors = program.scalars, program.tensors
    return [f"{n}: {scalars[n].dtype if n in scalars else _type(tensors[n])}" for n in program.parameters]


def _type(tensor: Tensor) -> str:
    text = f"{tensor.dtype}[{', '.join(map(str, tensor.shape))}]"
    return f"const[{text}]" if tensor.const else text


def _docstring(doc: str) -> list[str]:
    if not doc:
        return []
    plain = doc.isprintable() or all(line.isprintable() for line in doc.split("\n"))
    if plain and "\\" not in doc and '"""' not in doc and not doc.endswith('"'):
        text = '"""' + doc.replace("\n", "\n    ") + '"""'
        if inspect.cleandoc(text[3:-3]) == doc:
            return ["    " + "\n    ".join(text.split("\n    "))]
    return [f"    {doc!r}"]


def _assumption(a: Assume) -> str:
    if a.multiple is not None:
        return f"{a.subject} % {a.multiple} == 0"
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


def _block(body: tuple[Statement, ...], depth: int) -> list[str]:
    pad = "    " * depth
    lines: list[str] = []
    for node in body:
        match node:
            case Loop():
                axes, inner = _perfect(node)
                lines.append(f"{pad}for {', '.join(a.name for a in axes)} in {_domain(axes)}:")
                lines += _block(inner, depth + 1)
            case Guard(condition, inner):
                lines.append(f"{pad}if {print_condition(condition)}:")
                lines += _block(inner, depth + 1)
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
    from autosched.ir.parser.typing import float_literal

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
