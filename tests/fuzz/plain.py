"""The language in plain Python: nodes are written out as Python source, integers are ints, floats are floats rounded
after every operation. Shares no code with matcher, lowering or interpreter; only the nodes are the same."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from autosched.ir.dtypes import DType
from autosched.ir.nodes import Assign, Guard, Loop
from autosched.ir.program import Program
from autosched.ir.value import Arith, Call, Cast, Comparison, FromIndex, Literal, Logical, Read, Scalar, Select, Unary
from autosched.logic import And, Bool, Const, Int, Or, Var
from autosched.logic.expr import Binary, Compare, Not, Truth, Where

Memory = dict[str, dict[tuple[int, ...], Any]]
"""Tensor to element to number."""


def f32(x: float) -> float:
    return ctypes.c_float(x).value


def f16(x: float) -> float:
    try:
        return float(struct.unpack("e", struct.pack("e", x))[0])
    except OverflowError:
        return math.copysign(math.inf, x)


def bf16(x: float) -> float:
    if x == 0 or math.isinf(x) or math.isnan(x):
        return x
    quantum = max(math.frexp(x)[1] - 1, -126) - 7
    nearest = math.ldexp(round(math.ldexp(x, -quantum)), quantum)
    return math.copysign(math.inf, x) if abs(nearest) > 3.3895313892515355e38 else nearest


def divided(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def fused(a: float, b: float, c: float) -> float:
    """Exact, but for the last rounding to f64, which is done to odd: rounding once more is then rounding once."""
    if not all(map(math.isfinite, (a, b, c))):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    near = float(exact)
    if Fraction(near) == exact or near == 0:
        return near
    low = near if Fraction(near) < exact else math.nextafter(near, -math.inf)
    mantissa = struct.unpack("<q", struct.pack("<d", low))[0]
    return low if mantissa & 1 else math.nextafter(low, math.inf)


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _rsqrt(x: float) -> float:
    return math.nan if x < 0 or math.isnan(x) else divided(1.0, math.sqrt(x))


def _passing_nan(choose: Callable[[float, float], float]) -> Callable[[float, float], float]:
    return lambda a, b: math.nan if a != a or b != b else choose(a, b)


HELPERS: dict[str, Any] = {
    "f16": f16, "bf16": bf16, "f32": f32, "f64": lambda x: x, "divided": divided, "fused": fused,
    "exp": _exp, "rsqrt": _rsqrt, "sqrt": lambda x: math.sqrt(x) if x >= 0 else math.nan,
    "least": _passing_nan(min), "greatest": _passing_nan(max), "inf": math.inf, "nan": math.nan,
    "min": min, "max": max, "abs": abs, "bool": bool, "range": range, "float": float,
    "quotient": lambda a, b: 0 if b == 0 else a // b, "rest": lambda a, b: 0 if b == 0 else a % b,
}  # fmt: skip


def rounded(text: str, dtype: DType) -> str:
    if dtype.is_float:
        return f"{dtype.name}({text})"
    if dtype.kind == "bool":
        return f"bool({text})"
    half = 1 << (dtype.bits - 1) if dtype.kind == "int" else 0
    return f"((({text}) + {half} & {(1 << dtype.bits) - 1}) - {half})"


def formula(node: Any) -> str:
    """A subscript, a bound or a condition over axes."""
    match node:
        case Const(value) | Truth(value):
            return str(value)
        case Var(name):
            return name
        case Binary(op, left, right):
            a, b = formula(left), formula(right)
            return f"{op}({a}, {b})" if op in ("min", "max") else f"({a} {op} {b})"
        case Where(condition, then, other):
            return f"({formula(then)} if {formula(condition)} else {formula(other)})"
        case Compare(op, left, right):
            return f"({formula(left)} {op} {formula(right)})"
        case And(parts):
            return "(" + " and ".join(map(formula, parts)) + ")"
        case Or(parts):
            return "(" + " or ".join(map(formula, parts)) + ")"
        case Not(part):
            return f"(not {formula(part)})"
    raise NotImplementedError(type(node).__name__)


class Writer:
    """`element` says how an element is read; by default `M["A"][i, k]`."""

    def __init__(self, element: Callable[[str, str], str] = lambda name, key: f"M[{name!r}][{key}]") -> None:
        self.element = element

    def key(self, index: tuple[Any, ...]) -> str:
        return "(" + "".join(f"{self.any(i)}, " for i in index) + ")"

    def any(self, node: Any) -> str:
        return formula(node) if isinstance(node, Int | Bool) else self.value(node)

    def value(self, v: Any) -> str:
        match v:
            case Literal(number, dtype):
                return rounded(f"float({str(float(number))!r})" if dtype.is_float else str(int(number)), dtype)
            case Read(tensor, index, _):
                return self.element(tensor, self.key(index))
            case FromIndex(index, dtype):
                return rounded(f"float({formula(index)})" if dtype.is_float else formula(index), dtype)
            case Unary(op, operand, dtype):
                return rounded(f"{op}{self.value(operand)}", dtype)
            case Arith(op, left, right, dtype):
                return self.arith(op, self.value(left), self.value(right), dtype)
            case Comparison(op, left, right, _):
                return f"({self.value(left)} {op} {self.value(right)})"
            case Logical(op, parts, _):
                terms = [self.any(p) for p in parts]
                return f"(not {terms[0]})" if op == "not" else "(" + f" {op} ".join(terms) + ")"
            case Select(condition, then, other, _):
                return f"({self.value(then)} if {self.any(condition)} else {self.value(other)})"
            case Cast(operand, dtype, saturate):
                return self.cast(self.value(operand), operand.dtype, dtype, saturate)
            case Call("abs", (a,), dtype):
                return rounded(f"abs({self.value(a)})", dtype)
            case Call("fma", args, dtype):
                return rounded(f"fused({', '.join(map(self.value, args))})", dtype)
            case Call("popcount", (a,), dtype):
                return f"({self.value(a)} & {(1 << dtype.bits) - 1}).bit_count()"
            case Call(("exp" | "rsqrt" | "sqrt") as name, (a,), dtype):
                return rounded(f"{name}({self.value(a)})", dtype)
        raise NotImplementedError(f"{type(v).__name__} {v}")

    def arith(self, op: str, a: str, b: str, dtype: DType) -> str:
        match op:
            case "min" | "max" if dtype.is_float:
                return f"{'least' if op == 'min' else 'greatest'}({a}, {b})"
            case "min" | "max":
                return f"{op}({a}, {b})"
            case "/":
                return rounded(f"divided({a}, {b})", dtype)
            case "//" | "%":
                return rounded(f"{'quotient' if op == '//' else 'rest'}({a}, {b})", dtype)
            case "+" | "-" | "*" | "&" | "|" | "^":
                return rounded(f"{a} {op} {b}", dtype)
        raise NotImplementedError(op)

    def cast(self, text: str, source: DType, dtype: DType, saturate: bool) -> str:
        if source.is_float and dtype.is_integer:
            raise NotImplementedError("a conversion of floats to integers")
        if saturate:
            low, high = dtype.limits
            return f"min(max({text}, {low}), {high})"
        return rounded(f"float({text})" if dtype.is_float and not source.is_float else text, dtype)


def compiled(source: str, name: str) -> Any:
    scope = dict(HELPERS)
    exec(compile(source, name, "exec"), scope)
    return scope[name]


def function(parameters: tuple[str, ...], body: str) -> Any:
    """A function of axes and of the memory `M`."""
    return compiled(f"def f({', '.join((*parameters, 'M'))}):\n return {body}\n", "f")


def runner(
    program: Program, kept: frozenset[int] | None = None, statement: Callable[[Assign], str] | None = None
) -> Callable[[Memory], None]:
    """Runs the program's body on a memory, or the nests of those assignments whose `id` is in `kept`. `statement`
    writes an assignment in another way."""
    write = statement or assignment
    lines = ["def run(M):"]

    def block(body: tuple[Any, ...], depth: int) -> None:
        for node in body:
            before = len(lines)
            match node:
                case Loop(axis, inner):
                    lines.append(
                        " " * depth + f"for {axis.name} in range({formula(axis.lower)}, {formula(axis.upper)}):"
                    )
                    block(inner, depth + 1)
                case Guard(condition, inner):
                    lines.append(" " * depth + f"if {Writer().any(condition)}:")
                    block(inner, depth + 1)
                case Assign():
                    if kept is None or id(node) in kept:
                        lines.append(" " * depth + write(node))
                    continue
            if len(lines) == before + 1:
                lines.pop()  # nothing of it is kept

    block(program.body, 1)
    lines.append(" return")
    run: Callable[[Memory], None] = compiled("\n".join(lines), "run")
    return run


def assignment(node: Assign, writer: Writer | None = None) -> str:
    w = writer or Writer()
    place = f"M[{node.tensor!r}][{w.key(node.index)}]"
    value = w.value(node.value)
    dtype = node.value.dtype
    match node.op:
        case "=":
            return f"{place} = {value}"
        case "min=" | "max=":
            return f"{place} = {w.arith(node.op[:-1], place, value, dtype)}"
    return f"{place} = {w.arith(node.op[0], place, value, dtype)}"


__all__ = ["Memory", "Scalar", "Writer", "assignment", "bf16", "f16", "f32", "formula", "function", "rounded", "runner"]
