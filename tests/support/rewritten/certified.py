"""What a certificate's error bound is stated in, point by point, by no code of the interpreter or of the rewrites.

A member's result is compared with the exact sum of its terms, in f64, at the other results as the rewritten program
computed them, and so are functions other than exp, log and roots. `Exact.size` is Σ |terms|, a difference inside a term
counting as the sum of its sides; `Exact.apart` is the greatest sum of the sizes in an exponent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from autosched.ir.nodes import Axis, Stage
from autosched.ir.program import Program
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
    children,
    is_value,
    reads,
    walk,
)
from autosched.logic import Int
from autosched.logic.readings import evaluate

Arrays = Mapping[str, np.ndarray]
Pair = tuple[float, float]
"""A value, and its size."""


def _whole(x: float, bits: int, signed: bool) -> float:
    """To the nearest integer, wrapped; what is no number or infinite is 0."""
    if not math.isfinite(x):
        return 0.0
    wrapped = int(np.rint(x)) & (1 << bits) - 1
    return float(wrapped - (1 << bits) if signed and wrapped >> (bits - 1) else wrapped)


def _float(function: Any) -> Any:
    def safe(*xs: float) -> float:
        with np.errstate(all="ignore"):
            return float(function(*map(np.float64, xs)))

    return safe


FUNCTIONS = {
    "exp": _float(np.exp), "log": _float(np.log), "sqrt": _float(np.sqrt), "rsqrt": _float(lambda x: 1 / np.sqrt(x)),
    "tanh": _float(np.tanh), "sigmoid": _float(lambda x: 1 / (1 + np.exp(-x))), "abs": abs, "round": _float(np.round),
    "floor": _float(np.floor), "ceil": _float(np.ceil), "erf": lambda x: math.erf(x) if x == x else x,
}  # fmt: skip
OPERATORS: dict[str, Any] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "min": np.minimum, "max": np.maximum,
    "%": np.mod, ">>": lambda a, b: np.floor(a / 2.0**b),
}  # fmt: skip
COMPARED: dict[str, Any] = {
    "<": np.less, "<=": np.less_equal, "==": np.equal, "!=": np.not_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip
TINY = 1e-30
"""Below it, f32 is not far from its least normal number."""
ROUNDED = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f64": np.float64}


@dataclass
class Exact:
    """One member's result: `value`, `size`, `terms` and `apart`, of each element; `tiny` is where a product or an
    exponential is so small that another order of the factors may underflow."""

    value: np.ndarray
    size: np.ndarray
    terms: np.ndarray
    apart: np.ndarray
    tiny: np.ndarray


@dataclass
class Evaluation:
    """Values of a program's stages in f64. `computed` has all tensors; those in `open` are computed again where they
    are read; `extremes` are maxima and minima."""

    program: Program
    computed: Arrays
    scalars: Mapping[str, Any]
    open: Mapping[str, Stage] = field(default_factory=dict)
    extremes: frozenset[str] = frozenset()
    apart: float = 0.0
    tiny: bool = False

    def stage(self, stage: Stage) -> Exact:
        """A reduction's result at each of its elements."""
        shape = self.program.tensors[stage.assign.tensor].extents
        found = Exact(*(np.full(shape, np.nan) for _ in range(4)), np.zeros(shape, bool))
        for places in self.points(stage.spatial, {}):
            at = tuple(int(self.index(i, places)) for i in stage.assign.index)
            assert stage.init is not None
            total, size = self.pair(stage.init, places)
            terms, self.apart, self.tiny = 0, 0.0, False
            for inner in self.points(stage.reduction, places):
                if all(self.holds(g, inner) for g in stage.guards):
                    value, own = self.pair(stage.assign.value, inner)
                    total = total - value if stage.assign.op == "-=" else total + value
                    size, terms = size + own, terms + 1
            for into, number in zip((found.value, found.size, found.terms, found.apart),
                                    (total, size, terms, self.apart), strict=True):  # fmt: skip
                into[at] = number
            found.tiny[at] = self.tiny
        return found

    def points(self, axes: tuple[Axis, ...], places: dict[str, int]) -> Any:
        if not axes:
            yield places
            return
        first, *rest = axes
        for at in range(int(evaluate(first.lower, places)), int(evaluate(first.upper, places))):
            yield from self.points(tuple(rest), places | {first.name: at})

    def index(self, index: Index, places: dict[str, int]) -> Any:
        return self.pair(index, places)[0] if is_value(index) else evaluate(index, places)

    def holds(self, condition: Condition, places: dict[str, int]) -> bool:
        if not is_value(condition):
            return bool(evaluate(condition, places))
        match condition:
            case Comparison(op, a, b, _):
                return bool(COMPARED[op](self.rounded(a, places), self.rounded(b, places)))
            case Logical("not", (only,), _):
                return not self.holds(only, places)
            case Logical("and", parts, _):
                return all(self.holds(p, places) for p in parts)
            case Logical("or", parts, _):
                return any(self.holds(p, places) for p in parts)
        return bool(self.pair(condition, places)[0])

    def rounded(self, value: Value, places: dict[str, int]) -> float:
        """As the program computes it."""
        dtype = value.dtype
        operands = [self.rounded(v, places) for v in children(value)] if isinstance(value, Arith | Call | Unary) else []
        with np.errstate(all="ignore"):
            match value:
                case Arith(op, _, _, _):
                    made = float(OPERATORS[op](*map(np.float64, operands)))
                case Unary("-", _, _):
                    made = -operands[0]
                case Call("fma", _, _):
                    made = float(np.float64(operands[0]) * operands[1] + operands[2])
                case Call(function, _, _):
                    made = FUNCTIONS[function](*operands)
                case Cast(operand, _, _):
                    made = self.rounded(operand, places)
                    if dtype.is_integer:
                        return _whole(made, dtype.bits, dtype.signed)
                case Select(condition, then, other, _):
                    return self.rounded(then if self.holds(condition, places) else other, places)
                case _:
                    return self.pair(value, places)[0]
            return float(ROUNDED[dtype.name](made)) if dtype.name in ROUNDED else made

    def pair(self, value: Value, places: dict[str, int]) -> Pair:
        match value:
            case Literal(x, dtype):
                number = float(ROUNDED[dtype.name](x)) if dtype.name in ROUNDED else float(x)
                return number, abs(number)
            case Scalar(name, _):
                return self.plain(float(self.scalars[name]))
            case FromIndex(index, _):
                return self.plain(float(evaluate(index, places)))
            case Read():
                return self.read(value, places)
            case Unary("-", operand, _):
                a, size = self.pair(operand, places)
                return -a, size
            case Select(condition, then, other, _):
                return self.pair(then if self.holds(condition, places) else other, places)
            case Arith("-", Read() as a, b, _) | Arith("-", b, Read() as a, _) if self.is_of(a, b):
                return self.plain(self.arith("-", *(self.pair(v, places) for v in (value.left, value.right)))[0])
            case Arith(op, a, b, _):
                return self.arith(op, self.pair(a, places), self.pair(b, places))
            case Call("fma", (a, b, c), _):
                product = self.arith("*", self.pair(a, places), self.pair(b, places))
                return self.arith("+", product, self.pair(c, places))
            case Call("exp", (a,), _):
                exponent = self.pair(a, places)[0]
                parts = [self.pair(v, places)[1] for v in walk(a) if isinstance(v, Arith | Unary | Call | Cast)]
                if math.isfinite(exponent) and math.isfinite(sum(parts)):
                    self.apart = max(self.apart, sum(parts))
                return self.plain(FUNCTIONS["exp"](exponent))
            case Call("log", (Call("exp", (a,), _),), _):
                return self.pair(a, places)
            case Call("log", (Arith("*" | "/" as op, a, b, dtype),), _):
                logarithms = (self.pair(Call("log", (v,), dtype), places) for v in (a, b))
                total = self.arith("+" if op == "*" else "-", *logarithms)
                whole = self.pair(value.args[0], places)[0]  # both may be negative
                return total if math.isfinite(total[0]) else self.plain(FUNCTIONS["log"](whole))
            case Call("sqrt" | "rsqrt" as function, (a,), _) if any(
                isinstance(v, Call) and v.function == "exp" for v in walk(a)
            ):
                of = self.pair(a, places)[0]
                self.tiny |= 0 < of < TINY
                return self.plain(FUNCTIONS[function](of))
            case Cast(operand, dtype, _) if dtype.name in ROUNDED and dtype.bits >= operand.dtype.bits:
                return self.pair(operand, places)
            case Call() | Cast():
                return self.plain(self.rounded(value, places))
        raise NotImplementedError(str(value))

    @staticmethod
    def plain(x: float) -> Pair:
        return x, abs(x)

    def arith(self, op: str, a: Pair, b: Pair) -> Pair:
        with np.errstate(all="ignore"):
            x, y = np.float64(a[0]), np.float64(b[0])
            value = float(OPERATORS[op](x, y))
            match op:
                case "+" | "-":
                    return value, a[1] + b[1]
                case "*" | "/":
                    self.tiny |= op == "/" and 0 < abs(y) < TINY
                    self.tiny |= 0 < abs(value) < TINY
                    size = np.float64(a[1]) * b[1] if op == "*" else np.float64(a[1]) / abs(y) * max(1.0, b[1] / abs(y))
                    return value, float(size)
        return self.plain(value)

    def is_of(self, extreme: Read, value: Value) -> bool:
        """Whether a maximum may be of a value that is read, or chosen, as it is stored."""
        stored = all(isinstance(v, Read | Literal | Select | Unary | Scalar) or v.dtype.bits == 1 for v in walk(value))
        return extreme.tensor in self.extremes and stored

    def read(self, read: Read, places: dict[str, int]) -> Pair:
        at = tuple(int(self.index(i, places)) for i in read.index)
        stage = self.open.get(read.tensor)
        if stage is None:
            return self.plain(float(self.computed[read.tensor][at]))
        own = {i.name: k for i, k in zip(stage.assign.index, at, strict=True)}  # type: ignore[union-attr]
        return self.pair(stage.assign.value, own)


def opened(program: Program, members: set[str]) -> dict[str, Stage]:
    """Elementwise stages that need a member: a pass computes them where they are read."""
    found: dict[str, Stage] = {}
    needing = set(members)
    for stage in program.stages:
        if {r.tensor for r in reads(stage.assign.value)} & needing:
            needing.add(stage.assign.tensor)
            if not stage.reduction and stage.assign.op == "=" and stage.assign.tensor not in members:
                found[stage.assign.tensor] = stage
    return found


def is_simple(program: Program) -> bool:
    """Whether each tensor is written by one stage, none in place, at addresses of plain axes."""
    names = [s.assign.tensor for s in program.stages]
    plain = all(isinstance(i, Int) for s in program.stages for i in s.assign.index)
    own = any(r.tensor == s.assign.tensor for s in program.stages for r in s.reads)
    return len(set(names)) == len(names) and plain and not own and not set(names) & set(program.inputs)
