"""How errors of operands become errors of results: one rule for each kind of node.

An error is an elementwise bound, float64, on |kernel - oracle|; None is exactly zero. The rules are the running error
analysis of Higham, *Accuracy and Stability of Numerical Algorithms* (2002), sections 2.2 and 3.3: a result rounded on
both sides differs by the propagated error and by u|x| on each side, u the unit roundoff.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.oracle.evaluate import Frame, arith, both, call, condition, fetch, value
from autosched.ir.oracle.numerics import cast, normalise, round_float
from autosched.ir.value import Arith, Call, Cast, Comparison, Condition, Logical, Read, Select, Unary, Value, is_value
from autosched.logic import Bool
from autosched.logic.expr import COMPARE

TRANSCENDENTAL = frozenset(["exp", "log", "tanh", "erf", "sigmoid", "rsqrt"])
"""Functions whose last bits differ between libraries and vector polynomials."""
APPROXIMATED = TRANSCENDENTAL | {"sqrt"}
"""Functions that instructions approximate within a bound; a reciprocal is a quotient."""
TRANSCENDENTAL_ULPS = 4
"""What such a function is allowed to be off; vector math libraries state 1 to 4 ulp (SLEEF, SVML)."""
ARGUMENT_ULPS = 1
"""What its argument may be off beside where numbers are rounded anew: an exponential as a power of two, say."""
Pair = tuple[Any, Any]


def gamma(n: int, u: float) -> float:
    """Higham's γ_n = n·u / (1 - n·u), infinite where n·u reaches 1."""
    return n * u / (1 - n * u) if n * u < 1 else float("inf")


def least(dtype: DType) -> float:
    """What an underflow may cost: the least normal number where subnormals may be flushed, else the least of all."""
    return 2.0 ** (1 - dtype.bias if dtype.exponent >= 8 else dtype.exponents[0])


def off_by(v: Any, share: float, dtype: DType) -> Any:
    """By how much numbers are off that are approximated within this share of each."""
    size = np.abs(number(v))
    return np.where(np.isfinite(size), share * size + least(dtype), 0.0)


def plus(*errors: Any) -> Any:
    """The sum of error bounds."""
    some = [e for e in errors if e is not None]
    return sum(some[1:], start=some[0]) if some else None


def number(x: Any) -> Any:
    return np.asarray(x).astype(np.float64)


@dataclass
class Rules:
    """Evaluates pairs (value, error) in `frame`; `errors` holds error arrays of tensors. With `contracted`, a product
    may be fused with an addition, so every float operation counts as rounded differently; `moved`: a conversion may
    round another number, of the same value over the reals (the exponential behind another reference), and so may the
    argument of such a function. `approximated`: by how much of itself each quotient and each result of a function may
    be off, where an instruction computes one of them."""

    frame: Frame
    errors: dict[str, Any]
    contracted: bool = False
    moved: bool = False
    approximated: float = 0.0

    def pair(self, node: Value, mask: Any) -> Pair:
        """The value and its error over the frame's slab."""
        match node:
            case Read(tensor, index, _):
                v = fetch(self.frame, tensor, index, mask)
                e = self.error_of(tensor, index, mask)
                moved = [self.pair(i, mask)[1] for i in index if is_value(i)]
                return v, _anything(e, v) if any(m is not None for m in moved) else e
            case Unary(op, operand, dtype):
                v, e = self.pair(operand, mask)
                result = normalise(-v if op == "-" else ~v, dtype)
                return result, _kept_in_range(result, e, dtype)
            case Arith(op, left, right, dtype):
                a, b = self.pair(left, mask), self.pair(right, mask)
                found = self.arith(op, a, b, dtype)
                return self.near(found, dtype) if op == "/" else found
            case Call(function, args, dtype):
                found = self.call(function, [self.pair(a, mask) for a in args], dtype, args[0].dtype)
                return self.near(found, dtype) if function in APPROXIMATED else found
            case Cast(operand, dtype, saturating):
                pair = self.pair(operand, mask)
                if self.contracted and operand.dtype.is_float and dtype.is_float:
                    pair = _flushable(pair, operand.dtype)
                    return self.converted(pair, _flushable(_cast(pair, operand.dtype, dtype, saturating), dtype), dtype)
                return self.converted(pair, _cast(pair, operand.dtype, dtype, saturating), dtype)
            case Select(test, then, other, _):
                return self.select(test, then, other, mask)
            case _:
                return value(node, self.frame, mask), None

    def near(self, found: Pair, dtype: DType) -> Pair:
        """What an instruction approximates, with what that may be off."""
        v, e = found
        off = off_by(v, self.approximated, dtype) if self.approximated and dtype.is_float else None
        return v, plus(e, off)

    def error_of(self, tensor: str, index: Any, mask: Any = None) -> Any:
        """The error of tensor elements."""
        if tensor not in self.errors:
            return None
        f = self.frame
        arrays = {**f.arrays, tensor: self.errors[tensor]}
        return fetch(Frame(arrays, f.scalars, f.env, f.slab, f.rank, f.lenient, f.location), tensor, index, mask)

    def converted(self, given: Pair, result: Pair, dtype: DType) -> Pair:
        """A conversion's result; where it may round another number than the given one, with a rounding on each side."""
        v, e = result
        if e is None or not (self.moved and dtype.is_float):
            return result
        return v, np.where(given[1] > 0, e + 2 * dtype.unit_roundoff * np.abs(number(v)), e)

    def arith(self, op: str, left: Pair, right: Pair, dtype: DType) -> Pair:
        (a, ea), (b, eb) = left, right
        v = arith(op, a, b, dtype)
        fused = self.contracted and dtype.is_float and op in ("+", "-", "*")
        if ea is None and eb is None and not fused:
            return v, None
        x, y = np.abs(number(a)), np.abs(number(b))
        da, db = (np.float64(0) if e is None else e for e in (ea, eb))
        match op:
            case "+" | "-":
                e = da + db
            case "*":
                e = x * db + y * da + da * db
            case "/":
                e = np.where(y > db, (da + np.abs(number(v)) * db) / np.maximum(y - db, 1e-300), np.inf)
            case "min" | "max":
                return v, np.maximum(da, db)
            case _:
                return v, _anything(da + db, v)
        e = self.rounded(v, e, dtype)
        if not dtype.is_float or op not in ("+", "-", "*"):
            return v, e
        sure = _stays_infinite(op, (x, da), (y, db), dtype) | _stays_infinite(op, (y, db), (x, da), dtype)
        return v, np.where(sure, 0.0, e)

    def rounded(self, v: Any, e: Any, dtype: DType) -> Any:
        """`e` with one rounding on each side; integers must not leave their range."""
        if dtype.is_integer:
            return _kept_in_range(v, e, dtype)
        u = dtype.unit_roundoff
        size = np.abs(number(v))
        own = 2 * u * (size + e) + least(dtype)
        return np.where((e > 0) | self.contracted, e + own, 0.0)

    def call(self, function: str, args: list[Pair], dtype: DType, first: DType) -> Pair:
        v = call(function, [a for a, _ in args], dtype, first)
        if function == "fma":
            (a, ea), (b, eb), (_, ec) = args
            if ea is None and eb is None and ec is None:
                return v, None
            da, db, dc = (np.float64(0) if e is None else e for e in (ea, eb, ec))
            e = np.abs(number(a)) * db + np.abs(number(b)) * da + da * db + dc
            return v, self.rounded(v, e, dtype)
        if function.startswith("bits_") or function in ("scalb", "lookup"):
            known = [e for _, e in args if e is not None]
            return v, _anything(sum(known), v) if known else None
        ((a, e),) = args
        if self.moved and function in TRANSCENDENTAL:
            wide = np.where(np.isfinite(number(a)), np.abs(number(a)), 0.0)
            e = plus(e, ARGUMENT_ULPS * 2 * first.unit_roundoff * wide)
        own = None
        if function in TRANSCENDENTAL:
            own = TRANSCENDENTAL_ULPS * 2 * dtype.unit_roundoff * np.abs(number(v)) + least(dtype)
            own = np.where(np.isfinite(number(v)), own, 0.0)
        if e is None:
            return v, own
        if function == "abs":
            return v, e
        if function == "popcount":
            return v, _anything(e, v)
        wide, f64 = number(a), DTYPES["f64"]
        ends = [number(call(function, [wide + s * e], f64)) for s in (1, -1)]
        middle = number(call(function, [wide], f64))
        moved = np.maximum(*(np.abs(end - middle) for end in ends))  # all of these functions are monotone
        moved = np.where(e > 0, np.where(np.isnan(moved), np.inf, moved), 0.0)
        return v, plus(self.rounded(v, moved, dtype), own)

    def select(self, test: Condition, then: Value, other: Value, mask: Any) -> Pair:
        chosen, unsure = self.truth(test, mask)
        if unsure is None and np.ndim(chosen) == 0:
            return self.pair(then if chosen else other, mask)
        reached = None if unsure is None else unsure
        (a, ea) = self.pair(then, both(mask, chosen if reached is None else chosen | reached))
        (b, eb) = self.pair(
            other, both(mask, ~np.asarray(chosen) if reached is None else ~np.asarray(chosen) | reached)
        )
        v = np.where(chosen, a, b)
        da, db = (np.float64(0) if e is None else e for e in (ea, eb))
        if ea is None and eb is None and unsure is None:
            return v, None
        e = np.where(chosen, da, db)
        if unsure is not None:
            e = np.where(unsure, np.maximum(da, db) + np.abs(number(a) - number(b)), e)
        return v, e

    def truth(self, test: Condition, mask: Any) -> Pair:
        """A condition, and where errors leave it open (None: nowhere)."""
        match test:
            case Bool():
                return condition(test, self.frame, mask), None
            case Comparison(op, left, right):
                (a, ea), (b, eb) = self.pair(left, mask), self.pair(right, mask)
                e = plus(ea, eb)
                return COMPARE[op](a, b), None if e is None else (np.abs(number(a) - number(b)) <= e) & (e > 0)
            case Logical(op, parts):
                chosen, unsure = self.truth(parts[0], mask)
                if op == "not":
                    return np.logical_not(chosen), unsure
                for part in parts[1:]:
                    # A part is reached where the ones before it leave the answer open, or may do so.
                    reached = chosen if op == "and" else np.logical_not(chosen)
                    reached = reached if unsure is None else reached | unsure
                    here, open_ = self.truth(part, both(mask, reached))
                    chosen = np.logical_and(chosen, here) if op == "and" else np.logical_or(chosen, here)
                    unsure = open_ if unsure is None else unsure if open_ is None else unsure | open_
                return chosen, unsure
            case _:
                raise AssertionError(test)


def _stays_infinite(op: str, left: Pair, right: Pair, dtype: DType) -> Any:
    """Where a sum, a difference or a product has its value in the kernel too because `left` is infinite, without an
    error: a masked score, say. Both are magnitudes with errors."""
    (x, dx), (y, dy) = left, right
    finite = np.isfinite(round_float(np.asarray(y + dy), dtype)) & ((y > dy) if op == "*" else True)
    return np.isinf(x) & (dx == 0) & (finite | (np.isinf(y) & (dy == 0)))


def _anything(e: Any, v: Any) -> Any:
    """The error of a result that may be anything once an operand has an error."""
    return None if e is None else np.where(e > 0, np.inf, 0.0) + np.zeros(np.shape(v))


def _kept_in_range(v: Any, e: Any, dtype: DType) -> Any:
    """Integer errors; a value that could wrap may be anything."""
    if e is None or dtype.is_float:
        return e
    low, high = dtype.limits
    x = number(v)
    return np.where((e > 0) & ((x + e > high) | (x - e < low)), np.inf, e)


def _flushable(given: Pair, dtype: DType) -> Pair:
    """A pair of a type whose subnormals may count as zero (`least`): what that costs, where it is one."""
    v, e = given
    size = np.abs(number(v))
    subnormal = (size > 0) & (size < least(dtype))
    return (v, plus(e, np.where(subnormal, size, 0.0))) if subnormal.any() else given


def _cast(operand: Pair, source: DType, dtype: DType, saturating: bool) -> Pair:
    v, e = operand
    result = cast(v, source, dtype, saturating)
    if e is None:
        return result, None
    x = number(v)
    if dtype.is_float:
        # Rounding is monotone: the kernel's result lies between those of the interval's ends.
        middle = number(result)
        moved = np.maximum(number(round_float(x + e, dtype)) - middle, middle - number(round_float(x - e, dtype)))
        return result, np.where(e > 0, np.where(np.isnan(moved), np.inf, moved), 0.0)
    low, high = dtype.limits
    upper, lower = np.rint(x + e), np.rint(x - e)
    if not saturating:
        return result, np.where(
            (e > 0) & ((upper > high) | (lower < low)),
            np.inf,
            np.where(e > 0, np.maximum(upper - np.rint(x), np.rint(x) - lower), 0.0),
        )
    middle = np.clip(np.rint(x), low, high)
    spread = np.maximum(np.clip(upper, low, high) - middle, middle - np.clip(lower, low, high))
    return result, np.where(e > 0, np.where(np.isnan(spread), np.inf, spread), 0.0)
