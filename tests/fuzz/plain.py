"""The language in plain Python: nodes are written out as Python source, integers are ints, floats are floats rounded
after every operation. Shares no code with matcher, lowering or interpreter; only the nodes are the same.

`run_plain` is the interpreter that tests compare `autosched.ir.run` with, on tiny programs; a `Writer`'s texts are what
mappings are run with.
"""

from __future__ import annotations

import ctypes
import math
import struct
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import scipy.special

from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.nodes import Assign, Guard, Loop
from autosched.ir.program import Program
from autosched.ir.value import Arith, Call, Cast, Comparison, FromIndex, Literal, Logical, Read, Scalar, Select, Unary
from autosched.logic import And, Bool, Const, Int, Or, Var
from autosched.logic.expr import Binary, Compare, Not, Truth, Where

Memory = dict[str, dict[tuple[int, ...], Any]]
"""Tensor to element to number; a scalar parameter is a tensor of one element, `()`."""
WITHOUT_INFINITY = ("e4m3", "e4m3fnuz", "e5m2fnuz")


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


def narrow(dtype: DType, x: float) -> float:
    """Nearest even by exact scaling, in a type of eight bits or tf32: not by the conversions of numpy and ml_dtypes."""
    if math.isnan(x) and dtype.name == "e2m1":
        return 0.0
    if math.isnan(x) or x == 0:
        return abs(x) if dtype.fnuz else x  # -0 is not there
    info = np.finfo(np.float32) if dtype.name == "tf32" else ml_dtypes.finfo(dtype.numpy)
    largest = float(info.max) if dtype.name != "tf32" else (2 - 2.0**-10) * 2.0**127
    result = x
    if math.isfinite(x):
        quantum = max(math.frexp(x)[1] - 1, int(info.minexp)) - dtype.mantissa
        result = float(round(Fraction(x) / Fraction(2) ** quantum) * Fraction(2) ** quantum)
    if abs(result) > largest and dtype.name == "e2m1":
        return math.copysign(largest, x)
    if abs(result) > largest:
        return math.nan if dtype.name in WITHOUT_INFINITY else math.copysign(math.inf, x)
    return abs(result) if dtype.fnuz and result == 0 else math.copysign(result, x)


def divided(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def rounded_to_odd(exact: Fraction) -> float:
    """In f64, so that rounding once more, to a narrower type, is rounding once."""
    near = float(exact)
    if Fraction(near) == exact or near == 0:
        return near
    low = near if Fraction(near) < exact else math.nextafter(near, -math.inf)
    mantissa = struct.unpack("<q", struct.pack("<d", low))[0]
    return low if mantissa & 1 else math.nextafter(low, math.inf)


def fused(a: float, b: float, c: float, once: bool = False) -> float:
    """Exact, but for the rounding to f64: to nearest where the result is one (`once`), else to odd."""
    if not all(map(math.isfinite, (a, b, c))):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        if exact == 0:
            return a * b + c
        return float(exact) if once else rounded_to_odd(exact)
    except OverflowError:
        return math.copysign(math.inf, exact)


def whole(x: float, low: int, high: int, saturate: bool) -> int:
    """A float as an integer, halves to even; NaN is 0."""
    if math.isnan(x):
        return 0
    if math.isinf(x):
        return (high if x > 0 else low) if saturate else 0
    return min(max(round(x), low), high) if saturate else round(x)


def left(a: int, by: int, bits: int) -> int:
    return a << by if 0 <= by < bits else 0


def right(a: int, by: int, bits: int) -> int:
    return a >> by if 0 <= by < bits else -1 if a < 0 else 0


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _rsqrt(x: float) -> float:
    return math.nan if x < 0 or math.isnan(x) else divided(1.0, math.sqrt(x))


def _passing_nan(choose: Callable[[float, float], float]) -> Callable[[float, float], float]:
    return lambda a, b: math.nan if a != a or b != b else choose(a, b)


def _numpys(function: Callable[[float], Any]) -> Callable[[float], float]:
    def call(x: float) -> float:
        with np.errstate(all="ignore"):
            return float(function(np.float64(x)))

    return call


NUMPYS = {
    "log": np.log, "tanh": np.tanh, "erf": scipy.special.erf, "sigmoid": scipy.special.expit,
    "round": np.rint, "floor": np.floor, "ceil": np.ceil,
}  # fmt: skip
def pattern(x: Any, source: str, target: str) -> Any:
    """The value of a number's pattern in another type of as many bits."""
    of, into = DTYPES[source], DTYPES[target]
    if of.is_integer:
        code = int(x) & ((1 << of.bits) - 1)
    else:
        code = int.from_bytes(np.array(x, of.numpy).tobytes(), sys.byteorder) & ((1 << of.bits) - 1)
    if into.is_integer:
        return code - (1 << into.bits) if into.kind == "int" and code >> (into.bits - 1) else code
    return float(np.frombuffer(code.to_bytes(into.bytes, sys.byteorder), into.numpy)[0])


HELPERS: dict[str, Any] = {
    "pattern": pattern,
    **{name: partial(narrow, dtype) for name, dtype in DTYPES.items() if dtype.is_float},
    **{name: _numpys(function) for name, function in NUMPYS.items()},
    "f16": f16, "bf16": bf16, "f32": f32, "f64": lambda x: x, "divided": divided, "fused": fused,
    "whole": whole, "left": left, "right": right, "odd": lambda n: rounded_to_odd(Fraction(n)),
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
            case Scalar(name, _):
                return f"M[{name!r}][()]"
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
                return rounded(f"fused({', '.join(map(self.value, args))}, {dtype.bits == 64})", dtype)
            case Call("popcount", (a,), dtype):
                return f"({self.value(a)} & {(1 << dtype.bits) - 1}).bit_count()"
            case Call(name, (a,), dtype) if name.startswith("bits_"):
                return f"pattern({self.value(a)}, {a.dtype.name!r}, {dtype.name!r})"
            case Call(name, (a,), dtype):
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
            case "<<" | ">>":
                return rounded(f"{'left' if op == '<<' else 'right'}({a}, {b}, {dtype.bits})", dtype)
            case "+" | "-" | "*" | "&" | "|" | "^":
                return rounded(f"{a} {op} {b}", dtype)
        raise NotImplementedError(op)

    def cast(self, text: str, source: DType, dtype: DType, saturate: bool) -> str:
        if source.is_float and dtype.is_integer:
            low, high = dtype.limits
            return rounded(f"whole({text}, {low}, {high}, {saturate})", dtype)
        if saturate:
            low, high = dtype.limits
            return f"min(max({text}, {low}), {high})"
        if dtype.is_float and not source.is_float:
            return rounded(f"{'float' if dtype.bits == 64 else 'odd'}({text})", dtype)
        return rounded(text, dtype)


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


def memory_of(program: Program, arrays: dict[str, Any], scalars: dict[str, Any]) -> Memory:
    """Inputs as they are given; of what is only written, and of intermediates, zeros."""
    memory: Memory = {name: {(): value} for name, value in scalars.items()}
    for name, tensor in program.tensors.items():
        given = arrays.get(name) if name in program.inputs else None
        number = float if tensor.dtype.is_float else int
        elements = product(*map(range, tensor.extents))
        memory[name] = {at: number(0 if given is None else given[at]) for at in elements}
    return memory


def run_plain(program: Program, arrays: dict[str, Any], scalars: dict[str, Any] | None = None) -> dict[str, Any]:
    """Outputs of a program whose sizes are all known."""
    memory = memory_of(program, arrays, scalars or {})
    runner(program)(memory)
    found = {}
    for name in program.outputs:
        found[name] = np.zeros(program.tensors[name].extents, program.tensors[name].dtype.numpy)
        for at, value in memory[name].items():
            found[name][at] = value
    return found
