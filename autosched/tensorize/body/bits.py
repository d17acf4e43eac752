"""The bit-vector reading of integer values: what z3 decides when structure does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autosched.ir.dtypes import DType
from autosched.ir.oracle.evaluate import DIRECT
from autosched.ir.printer import print_value
from autosched.ir.value import (
    Arith,
    Call,
    Cast,
    Comparison,
    Condition,
    Literal,
    Logical,
    Select,
    Unary,
    Value,
    is_value,
)
from autosched.logic.questions import asked
from autosched.logic.solver import proving, z3
from autosched.tensorize.body.counterexample import run_on, show_leaf

_SIGNED: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip
_UNSIGNED: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: z3.ULT(a, b), "<=": lambda a, b: z3.ULE(a, b),
    ">": lambda a, b: z3.UGT(a, b), ">=": lambda a, b: z3.UGE(a, b),
}  # fmt: skip


class NoReading(Exception):
    """The value has a part without a bit-vector reading (a float, say)."""


@proving
def check_equal(left: Value, right: Value, timeout_ms: int) -> tuple[str, dict[str, Any] | None]:
    """`proved`, `differs` with a counterexample, or `unknown` (no reading, or the limit was met)."""
    reading = Bits()
    try:
        a, b = reading.value(left), reading.value(right)
    except NoReading:
        return "unknown", None
    solver = z3.Solver()
    solver.set("timeout", timeout_ms)
    solver.add(a != b)
    answer = solver.check()
    asked("body", f"{print_value(left)} is {print_value(right)}", solver, answer)
    if answer == z3.unsat:
        return "proved", None
    if answer == z3.unknown:
        return "unknown", None
    model = solver.model()
    inputs = {}
    for leaf, term in reading.leaves.items():
        number = model.eval(term, model_completion=True)
        if z3.is_bool(number):
            inputs[leaf] = z3.is_true(number)
        else:
            inputs[leaf] = number.as_signed_long() if _signed(leaf) else number.as_long()
    found = run_on(left, right, inputs)
    # The two readings of a value agree; were they not to, the difference would not be one, and nothing is claimed.
    return ("differs", found) if found is not None else ("unknown", None)


def _signed(leaf: Any) -> bool:
    return bool(leaf.dtype.signed)


class Bits:
    """Translates values; `leaves` collects the variables made for reads, scalars and conditions on axes."""

    def __init__(self) -> None:
        self.leaves: dict[Any, Any] = {}

    def leaf(self, key: Any, sort: DType | None) -> Any:
        if key not in self.leaves:
            name = f"{len(self.leaves)}:{show_leaf(key)}"
            self.leaves[key] = z3.Bool(name) if sort is None else z3.BitVec(name, sort.bits)
        return self.leaves[key]

    def condition(self, condition: Condition) -> Any:
        return self.value(condition) if is_value(condition) else self.leaf(condition, None)

    def value(self, value: Value) -> Any:
        dtype = value.dtype
        if dtype.is_float:
            raise NoReading
        match value:
            case Literal(number, _):
                return z3.BitVecVal(int(number), dtype.bits)
            case Unary(op, operand, _):
                x = self.value(operand)
                return -x if op == "-" else ~x
            case Arith(op, left, right, _):
                return _arith(op, self.value(left), self.value(right), dtype)
            case Comparison(op, left, right, _):
                a, b = self.value(left), self.value(right)
                if op in ("==", "!="):
                    return a == b if op == "==" else a != b
                return (_SIGNED if left.dtype.signed else _UNSIGNED)[op](a, b)
            case Logical(op, parts, _):
                terms = [self.condition(p) for p in parts]
                return z3.Not(terms[0]) if op == "not" else (z3.And if op == "and" else z3.Or)(*terms)
            case Select(condition, then, other, _):
                return z3.If(self.condition(condition), self.value(then), self.value(other))
            case Cast(operand, _, saturate):
                if not operand.dtype.is_integer:
                    raise NoReading
                return _cast(self.value(operand), operand.dtype, dtype, saturate)
            case Call("abs", (a,), _):
                x = self.value(a)
                return z3.If(x < 0, -x, x) if dtype.signed else x
            case Call("popcount", (a,), _):
                x = self.value(a)
                ones = [
                    z3.ZeroExt(dtype.bits - 1, z3.Extract(i, i, x)) if dtype.bits > 1 else x for i in range(dtype.bits)
                ]
                return sum(ones[1:], ones[0])
            case Call(function, (a,), _) if function.startswith("bits_") and a.dtype.is_integer:
                return self.value(a)
            case Call():
                raise NoReading
        return self.leaf(value, dtype)


def _arith(op: str, a: Any, b: Any, dtype: DType) -> Any:
    less = a < b if dtype.signed else z3.ULT(a, b)
    zero, width = z3.BitVecVal(0, dtype.bits), z3.BitVecVal(dtype.bits, dtype.bits)
    match op:
        case "+" | "-" | "*" | "&" | "|" | "^":
            return DIRECT[op](a, b)
        case "min":
            return z3.If(less, a, b)
        case "max":
            return z3.If(less, b, a)
        case "<<":
            return z3.If(z3.UGE(b, width), zero, a << b)
        case ">>":
            filled = z3.If(a < 0, z3.BitVecVal(-1, dtype.bits), zero) if dtype.signed else zero
            return z3.If(z3.UGE(b, width), filled, a >> b if dtype.signed else z3.LShR(a, b))
        case "//" | "%" if not dtype.signed:
            return z3.If(b == 0, zero, z3.UDiv(a, b) if op == "//" else z3.URem(a, b))
        case "//" | "%":
            remainder = z3.SRem(a, b)
            off = z3.And(remainder != 0, (remainder < 0) != (b < 0))  # truncation rounded the wrong way
            floored = z3.If(off, remainder + b, remainder) if op == "%" else z3.If(off, a / b - 1, a / b)
            return z3.If(b == 0, zero, floored)  # the language's answer to a division by zero
    raise NoReading


def _cast(x: Any, source: DType, dtype: DType, saturate: bool) -> Any:
    if saturate:
        wide = max(source.bits, dtype.bits) + 1
        extended = _extend(x, source, wide)
        low, high = (z3.BitVecVal(n, wide) for n in dtype.limits)
        clamped = z3.If(extended < low, low, z3.If(extended > high, high, extended))
        return z3.Extract(dtype.bits - 1, 0, clamped)
    if dtype.bits <= source.bits:
        return z3.Extract(dtype.bits - 1, 0, x)
    return _extend(x, source, dtype.bits)


def _extend(x: Any, source: DType, bits: int) -> Any:
    return z3.SignExt(bits - source.bits, x) if source.signed else z3.ZeroExt(bits - source.bits, x)
