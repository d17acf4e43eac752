"""The language once more, as slowly and plainly as possible: one iteration, one scalar at a time.

Shares no evaluation code with the interpreter: integers are Python ints, floats are numpy scalars rounded after every
operation. Only for comparing with `autosched.ir.run` on tiny programs.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import scipy.special

from autosched.ir.dtypes import DType
from autosched.ir.nodes import Assign, Guard, Loop
from autosched.ir.program import Program
from autosched.ir.value import Arith, Call, Cast, Comparison, FromIndex, Literal, Logical, Read, Scalar, Select, Unary
from autosched.logic import Bool, Int, evaluate


def run_naive(program: Program, arrays: dict[str, Any], scalars: dict[str, Any] | None = None) -> dict[str, Any]:
    """Outputs of `program`, whose sizes are all known."""
    machine = _Machine(program, arrays, scalars or {})
    with np.errstate(all="ignore"):
        machine.block(program.body, {})
    return {n: machine.memory[n].astype(program.tensors[n].dtype.numpy) for n in program.outputs}


def to_dtype(x: Any, dtype: DType) -> Any:
    """A number rounded or wrapped into `dtype`: a Python int, or a numpy float64 holding a value of the type."""
    if dtype.is_integer:
        x = int(x) % 2**dtype.bits
        return x - 2**dtype.bits if dtype.kind == "int" and x >= 2 ** (dtype.bits - 1) else x
    return np.float64(_round(np.float64(x), dtype))


WITHOUT_INFINITY = ("e4m3", "e4m3fnuz", "e5m2fnuz")


def _round(x: np.float64, dtype: DType) -> float:
    """Nearest even by exact scaling: independent of numpy's and ml_dtypes' conversions."""
    if dtype.name == "f64" or not np.isfinite(x) or x == 0:
        if np.isinf(x) and dtype.name in WITHOUT_INFINITY:
            return math.nan
        return abs(float(x)) if dtype.fnuz else float(x)  # no infinity is left, and -0 is not there
    info = np.finfo(np.float32) if dtype.name == "tf32" else ml_dtypes.finfo(dtype.numpy)
    least = int(info.minexp)
    _, e = math.frexp(x)
    quantum = max(e - 1, least) - dtype.mantissa
    scaled = (
        math.ldexp(float(x), -quantum) if quantum > -1000 else math.ldexp(math.ldexp(float(x), 500), -quantum - 500)
    )
    result = math.ldexp(float(round(scaled)), quantum)
    largest = float(info.max) if dtype.name != "tf32" else (2 - 2.0**-10) * 2.0**127
    if abs(result) > largest:
        return math.nan if dtype.name in WITHOUT_INFINITY else math.copysign(math.inf, x)
    return abs(result) if dtype.fnuz and result == 0 else math.copysign(result, x)


class _Machine:
    def __init__(self, program: Program, arrays: dict[str, Any], scalars: dict[str, Any]) -> None:
        self.program = program
        self.memory: dict[str, Any] = {}
        for name, tensor in program.tensors.items():
            data = arrays.get(name) if name in program.inputs else None
            if data is None:
                data = np.zeros(tensor.extents, tensor.dtype.numpy)
            kind = object if tensor.dtype.is_integer else np.float64
            plain = np.array([int(v) for v in data.ravel()], object) if kind is object else data.astype(np.float64)
            self.memory[name] = plain.reshape(tensor.extents).copy()
        self.scalars = {n: int(v) if program.scalars[n].dtype.is_integer else np.float64(v) for n, v in scalars.items()}

    def block(self, body: Any, env: dict[str, int]) -> None:
        for node in body:
            match node:
                case Loop(axis, inner):
                    for k in range(int(evaluate(axis.lower, env)), int(evaluate(axis.upper, env))):
                        self.block(inner, {**env, axis.name: k})
                case Guard(condition, inner):
                    if self.truth(condition, env):
                        self.block(inner, env)
                case Assign():
                    self.assign(node, env)

    def assign(self, node: Assign, env: dict[str, int]) -> None:
        spot = self.spot(node.tensor, node.index, env)
        new = self.value(node.value, env)
        if node.op != "=":
            new = self.arith(node.op[:-1], self.memory[node.tensor][spot], new, node.value.dtype)
        self.memory[node.tensor][spot] = new

    def spot(self, tensor: str, index: Any, env: dict[str, int]) -> tuple[int, ...]:
        spot = tuple(int(evaluate(i, env)) if isinstance(i, Int) else int(self.value(i, env)) for i in index)
        assert all(0 <= s < n for s, n in zip(spot, self.memory[tensor].shape, strict=True)), (tensor, spot)
        return spot

    def truth(self, node: Any, env: dict[str, int]) -> bool:
        if isinstance(node, Bool):
            return bool(evaluate(node, env))
        match node:
            case Comparison(op, a, b):
                x, y = self.value(a, env), self.value(b, env)
                return bool({"<": x < y, "<=": x <= y, "==": x == y, "!=": x != y, ">": x > y, ">=": x >= y}[op])
            case Logical("not", (part,)):
                return not self.truth(part, env)
            case Logical("and", parts):
                return all(self.truth(p, env) for p in parts)
            case Logical("or", parts):
                return any(self.truth(p, env) for p in parts)
            case _:
                raise AssertionError(node)

    def value(self, node: Any, env: dict[str, int]) -> Any:
        match node:
            case Literal(v, dtype):
                return v if dtype.is_integer else np.float64(v)
            case Read(tensor, index, _):
                return self.memory[tensor][self.spot(tensor, index, env)]
            case Scalar(name, _):
                return self.scalars[name]
            case FromIndex(index, dtype):
                return self.cast(int(evaluate(index, env)), True, dtype, False)
            case Unary("-", x, dtype):
                v = self.value(x, env)
                return to_dtype(-v, dtype)
            case Unary("~", x, dtype):
                return to_dtype(~self.value(x, env), dtype)
            case Arith(op, a, b, dtype):
                return self.arith(op, self.value(a, env), self.value(b, env), dtype)
            case Select(condition, a, b, _):
                return self.value(a if self.truth(condition, env) else b, env)
            case Call(name, args, dtype):
                return self.call(name, [self.value(a, env) for a in args], dtype)
            case Cast(x, dtype, saturate):
                return self.cast(self.value(x, env), x.dtype.is_integer, dtype, saturate)
            case _:
                raise AssertionError(node)

    def arith(self, op: str, a: Any, b: Any, dtype: DType) -> Any:
        if op in ("min", "max"):
            if not dtype.is_integer and (np.isnan(a) or np.isnan(b)):
                return np.float64(np.nan)
            return min(a, b) if op == "min" else max(a, b)
        if not dtype.is_integer:
            if dtype.name == "f32":
                x, y = np.float32(a), np.float32(b)
            else:
                x, y = np.float64(a), np.float64(b)
            return to_dtype(
                {"+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y, "/": lambda: x / y}[op](), dtype
            )
        w = dtype.bits
        match op:
            case "+":
                r = a + b
            case "-":
                r = a - b
            case "*":
                r = a * b
            case "//":
                r = a // b if b else 0
            case "%":
                r = a % b if b else 0
            case "<<":
                r = a << b if 0 <= b < w else 0
            case ">>":
                r = a >> b if 0 <= b < w else (-1 if a < 0 else 0)
            case "&":
                r = a & b
            case "|":
                r = a | b
            case _:
                r = a ^ b
        return to_dtype(r, dtype)

    def call(self, name: str, args: list[Any], dtype: DType) -> Any:
        x = args[0]
        match name:
            case "abs":
                return to_dtype(abs(x), dtype)
            case "popcount":
                return to_dtype(bin(x % 2**dtype.bits).count("1"), dtype)
            case "fma":
                from fractions import Fraction

                a, b, c = args
                if not all(np.isfinite(v) for v in args):
                    return to_dtype(a * b + c, dtype)
                exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
                return to_dtype(a * b + c, dtype) if exact == 0 else _round_fraction(exact, dtype)
        functions: dict[str, Any] = {
            "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "erf": scipy.special.erf,
            "sigmoid": scipy.special.expit, "rsqrt": lambda v: 1 / np.sqrt(v),
            "round": np.rint, "floor": np.floor, "ceil": np.ceil,
        }  # fmt: skip
        return to_dtype(functions[name](np.float64(x)), dtype)

    def cast(self, x: Any, whole: bool, dtype: DType, saturate: bool) -> Any:
        if whole:
            if dtype.is_integer:
                low, high = dtype.limits
                return min(max(x, low), high) if saturate else to_dtype(x, dtype)
            from fractions import Fraction

            return _round_fraction(Fraction(int(x)), dtype)
        if not dtype.is_integer:
            return to_dtype(x, dtype)
        if np.isnan(x):
            return 0
        low, high = dtype.limits
        if np.isinf(x):
            return (high if x > 0 else low) if saturate else 0
        near = round(float(x))  # Python rounds halves to even, exactly
        return min(max(near, low), high) if saturate else to_dtype(near, dtype)


def _round_fraction(exact: Any, dtype: DType) -> Any:
    """An exact rational to the nearest value of `dtype`."""
    if exact == 0:
        return np.float64(0.0)
    info = np.finfo(np.float32) if dtype.name == "tf32" else ml_dtypes.finfo(dtype.numpy)
    from fractions import Fraction

    size = abs(exact)
    e = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** e > size:
        e -= 1
    quantum = max(e, int(info.minexp)) - dtype.mantissa
    result = round(exact / Fraction(2) ** quantum) * Fraction(2) ** quantum
    try:
        return to_dtype(float(result), dtype)
    except OverflowError:
        return np.float64(math.copysign(math.inf, exact))
