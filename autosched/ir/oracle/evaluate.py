"""Values over whole slabs of iterations: numpy arrays in the dtypes' containers, one operation at a time."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from autosched.errors import DataError, Location
from autosched.ir.dtypes import DTYPES, DType
from autosched.ir.oracle.numerics import cast, container, normalise, reinterpreted, round_float
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
from autosched.logic import Bool, Int, affine, evaluate
from autosched.logic.expr import ARITHMETIC, COMPARE


@dataclass
class Frame:
    """Where evaluation happens: tensors in container form, scalars, and one value an axis.

    `env` maps an axis to an int, or to the int64 array of a slab dimension; `slab` maps the latter to (dimension,
    first, extent), `rank` counts slab dimensions. With `lenient`, addresses outside are clipped: the caller masks.
    """

    arrays: dict[str, Any]
    scalars: Mapping[str, Any]
    env: dict[str, Any] = field(default_factory=dict)
    slab: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    rank: int = 0
    lenient: bool = False
    location: Location | None = None

    def with_slab(self, dims: list[tuple[str, int, int]], fixed: Mapping[str, int]) -> Frame:
        """A frame whose slab has the dimensions (axis, first, extent), other axes `fixed`."""
        env = {**self.env, **fixed}
        for d, (name, first, extent) in enumerate(dims):
            shape = [1] * len(dims)
            shape[d] = extent
            env[name] = np.arange(first, first + extent, dtype=np.int64).reshape(shape)
        slab = {name: (d, first, extent) for d, (name, first, extent) in enumerate(dims)}
        return Frame(self.arrays, self.scalars, env, slab, len(dims), self.lenient, self.location)


def condition(node: Condition, frame: Frame, mask: Any) -> Any:
    """A truth value or boolean array."""
    return evaluate(node, frame.env) if isinstance(node, Bool) else value(node, frame, mask)


def both(a: Any, b: Any) -> Any:
    """Conjunction of masks; None is all true."""
    return b if a is None else a if b is None else np.logical_and(a, b)


def value(node: Value, frame: Frame, mask: Any = None) -> Any:
    """The value over the slab (broadcastable to it); `mask` says which points count for the check of addresses."""
    match node:
        case Literal(number, dtype):
            return container(dtype)(number)
        case Read(tensor, index, _):
            return fetch(frame, tensor, index, mask)
        case Scalar(name, _):
            return frame.scalars[name]
        case FromIndex(index, dtype):
            whole = np.asarray(evaluate(index, frame.env), np.int64)
            return cast(whole, DTYPES["s64"], dtype)
        case Unary(op, operand, dtype):
            x = value(operand, frame, mask)
            return normalise(-x if op == "-" else ~x, dtype)
        case Arith(op, left, right, dtype):
            return arith(op, value(left, frame, mask), value(right, frame, mask), dtype)
        case Comparison(op, left, right):
            return COMPARE[op](value(left, frame, mask), value(right, frame, mask))
        case Logical(op, parts):
            return _logical(op, parts, frame, mask)
        case Select():
            return _select(node, frame, mask)
        case Call(function, args, dtype):
            return call(function, [value(a, frame, mask) for a in args], dtype, args[0].dtype)
        case Cast(operand, dtype, saturating):
            return cast(value(operand, frame, mask), operand.dtype, dtype, saturating)


def _logical(op: str, parts: tuple[Condition, ...], frame: Frame, mask: Any) -> Any:
    result = condition(parts[0], frame, mask)
    if op == "not":
        return np.logical_not(result)
    for part in parts[1:]:
        reached = both(mask, result if op == "and" else np.logical_not(result))
        other = condition(part, frame, reached)
        result = np.logical_and(result, other) if op == "and" else np.logical_or(result, other)
    return result


def _select(node: Select, frame: Frame, mask: Any) -> Any:
    chosen = condition(node.condition, frame, mask)
    if np.ndim(chosen) == 0:
        return value(node.then if chosen else node.other, frame, mask)
    then = value(node.then, frame, both(mask, chosen))
    other = value(node.other, frame, both(mask, np.logical_not(chosen)))
    return np.where(chosen, then, other)


_NORMALISED: dict[str, Callable[[Any, Any], Any]] = ARITHMETIC | {"/": operator.truediv}
BITWISE: dict[str, Callable[[Any, Any], Any]] = {"&": operator.and_, "|": operator.or_, "^": operator.xor}
DIRECT: dict[str, Callable[[Any, Any], Any]] = _NORMALISED | BITWISE
"""Operations by Python's operator."""
_EXACT = BITWISE | {"min": np.minimum, "max": np.maximum}


def arith(op: str, a: Any, b: Any, dtype: DType) -> Any:
    """One binary operation in `dtype`, rounded or wrapped once. An integer divided by zero gives 0 and rest 0."""
    if op in _NORMALISED:
        return normalise(_NORMALISED[op](a, b), dtype)
    return _shift(op, a, b, dtype) if op in ("<<", ">>") else _EXACT[op](a, b)


def _shift(op: str, a: Any, b: Any, dtype: DType) -> Any:
    """Shifts: by the width or more, or by a negative number, everything is shifted out (0, or -1)."""
    out = (b < 0) | (b >= dtype.bits)
    if op == ">>":
        return (
            a >> np.where(out, np.asarray(b).dtype.type(dtype.bits - 1 if dtype.signed else 0), b)
            if dtype.signed
            else _unless(out, a >> np.where(out, 0, b).astype(np.asarray(b).dtype))
        )
    return normalise(_unless(out, a << np.where(out, 0, b).astype(np.asarray(b).dtype)), dtype)


def _unless(out: Any, shifted: Any) -> Any:
    return np.where(out, np.asarray(shifted).dtype.type(0), shifted)


def _special(function: str) -> Callable[[Any], Any]:
    """A function of SciPy's. Any thread may load it, also while others load what models learn with: it imports nothing
    that imports it."""

    def apply(x: Any) -> Any:
        import scipy.special  # here: loading it takes longer than most programs need

        return getattr(scipy.special, function)(x)

    return apply


_WIDE: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "erf": _special("erf"),
    "sigmoid": _special("expit"), "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "round": np.rint, "floor": np.floor, "ceil": np.ceil,
}  # fmt: skip


def call(function: str, args: list[Any], dtype: DType, first: DType | None = None) -> Any:
    """A function, computed in float64 and rounded once into `dtype`; `first` is the dtype of the first argument, where
    that is another one."""
    if function == "fma":
        a, b, c = args
        return _fma(a, b, c, dtype)
    if function == "scalb":
        x, k = args
        return _scalb(x, k, dtype)
    if function == "lookup":
        numbers = np.array(args[1:], dtype.numpy)
        return numbers[np.asarray(args[0]) & (len(numbers) - 1)]
    (x,) = args
    if function.startswith("bits_"):
        return reinterpreted(x, first or dtype, dtype)
    if function == "abs":
        return normalise(np.abs(x), dtype)
    if function == "popcount":
        bits = np.asarray(x).view(f"u{np.asarray(x).dtype.itemsize}")
        return np.bitwise_count(bits & bits.dtype.type((1 << dtype.bits) - 1)).astype(container(dtype))
    return round_float(_WIDE[function](np.asarray(x).astype(np.float64)), dtype)


_FAR = 5000.0
"""A power of two that takes every float to infinity or zero."""


def _scalb(x: Any, k: Any, dtype: DType) -> Any:
    """As x86's `vscalef`: an infinite power has the last word over a NaN; 0 and infinity it may make one."""
    x, k = np.asarray(x).astype(np.float64), np.floor(np.asarray(k).astype(np.float64))
    power = np.nan_to_num(np.clip(k, -_FAR, _FAR)).astype(np.int64)
    scaled = np.where(np.isinf(k), x * np.where(k > 0, np.inf, 0.0), np.ldexp(x, power))
    decided = np.where(np.isinf(k) & np.isnan(x), np.where(k > 0, np.inf, 0.0), scaled)
    return round_float(np.where(np.isnan(k), np.nan, decided), dtype)


def _fma(a: Any, b: Any, c: Any, dtype: DType) -> Any:
    if dtype.name == "f64":
        return _fma_wide(*np.broadcast_arrays(a, b, c))
    # The product of two 24-bit significands is exact in 53; the sum is rounded to odd, so only the last rounding counts
    p = np.asarray(a).astype(np.float64) * np.asarray(b).astype(np.float64)
    c = np.asarray(c).astype(np.float64)
    s, error = _two_sum(p, c)
    if not np.count_nonzero(error):
        return round_float(s, dtype)
    return round_float(_odd(s, error), dtype)


def _odd(total: Any, error: Any) -> Any:
    """`total + error`, of which `total` is the nearest, rounded to odd."""
    even = (np.asarray(total).view(np.int64) & 1) == 0
    moved = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where(np.isfinite(total) & (error != 0) & even, moved, total)


_LEAST, _MOST = 2.0**-400, 2.0**400
"""Of factors and terms (other than zero) for which no step of `_fma_wide` over- or underflows."""
_SPLITTER = 2.0**27 + 1


def _fma_wide(a: Any, b: Any, c: Any) -> Any:
    """In f64: the product in two parts, and what is left of the sum rounded to odd before the last rounding (Boldo and
    Melquiond 2008). Values near the ends of the range go one by one."""
    with np.errstate(all="ignore"):
        high, low = _product(a, b)
        first, rest = _two_sum(c, low)
        total, left = _two_sum(high, first)
        exact = np.asarray(total + _odd(*_two_sum(rest, left)))
        plain = a * b + c  # the sign of an exact zero; infinities and NaN
    finite = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
    result = np.where(finite & (exact != 0), exact, plain)
    result = np.where(np.isfinite(a) & np.isfinite(b) & ~np.isfinite(c), c, result)  # what is added to may overflow
    sizes = [np.abs(x) for x in (a, b, c)]
    rare = finite & np.logical_or.reduce([(x != 0) & ~((x > _LEAST) & (x < _MOST)) for x in sizes])
    if np.count_nonzero(rare):
        result[rare] = [_fma_exact(*each) for each in zip(a[rare], b[rare], c[rare], strict=True)]
    return result


def _product(a: Any, b: Any) -> tuple[Any, Any]:
    """`a * b` and what it was rounded by (Dekker 1971), from halves of 26 bits."""
    p = a * b
    (a1, a0), (b1, b0) = _halves(a), _halves(b)
    return p, a0 * b0 - (((p - a1 * b1) - a0 * b1) - a1 * b0)


def _halves(a: Any) -> tuple[Any, Any]:
    t = _SPLITTER * a
    high = t - (t - a)
    return high, a - high


def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """`a + b` and what it was rounded by (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _fma_exact(a: float, b: float, c: float) -> float:
    if np.isfinite(a) and np.isfinite(b) and not np.isfinite(c):
        return float(c)  # the product may overflow a double, which is no infinity here
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        return float(np.float64(a) * np.float64(b) + np.float64(c))  # the sign of an exact zero
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


# -- addresses


def positions(frame: Frame, index: tuple[Index, ...], mask: Any) -> list[Any]:
    return [
        evaluate(part, frame.env) if isinstance(part, Int) else np.asarray(value(part, frame, mask)).astype(np.int64)
        for part in index
    ]


def inside(frame: Frame, tensor: str, spots: list[Any], mask: Any) -> Any:
    """None where all positions lie inside, else the mask of those that do; DataError for a counted one outside."""
    good: Any = None
    for d, (part, extent) in enumerate(zip(spots, frame.arrays[tensor].shape, strict=True)):
        if np.size(part) == 0 or (np.min(part) >= 0 and np.max(part) < extent):
            continue
        here = (part >= 0) & (part < extent)
        outside = np.logical_not(here) if mask is None else np.logical_and(mask, np.logical_not(here))
        if not frame.lenient and np.any(outside):
            worst = np.broadcast_to(part, np.shape(outside))[np.asarray(outside)] if np.ndim(outside) else part
            raise DataError(
                f"dimension {d} of {tensor} has extent {extent}; the program reaches index {int(np.ravel(worst)[0])}",
                hint="an index from data must stay inside: say by assume(...) which values its data have",
                location=frame.location,
            )
        good = both(good, here)
    return good


def view(frame: Frame, tensor: str, index: tuple[Index, ...]) -> Any | None:
    """A view of the tensor shaped to broadcast over the slab, where the address is plain strides; else None."""
    array = frame.arrays[tensor]
    picks: list[Any] = []
    dims: list[int] = []
    for part, extent in zip(index, array.shape, strict=True):
        form = affine(part) if isinstance(part, Int) else None
        if form is None:
            return None
        moving = [n for n in form.coefficients if n in frame.slab]
        start = form.constant + sum(c * frame.env[n] for n, c in form.coefficients.items() if n not in frame.slab)
        if not moving:
            if not 0 <= start < extent:
                return None
            picks.append(int(start))
            continue
        if len(moving) > 1:
            return None
        d, first, count = frame.slab[moving[0]]
        c = form.coefficients[moving[0]]
        low, high = start + c * first, start + c * (first + count - 1)
        if c < 0 or low < 0 or high >= extent or d in dims or count == 0:
            return None
        picks.append(slice(int(low), int(high) + 1, c))
        dims.append(d)
    picked = array[(*picks, ...)]  # the ellipsis keeps a single element an array
    order = sorted(range(len(dims)), key=lambda k: dims[k])
    picked = picked.transpose(order)
    return picked[(*(slice(None) if d in dims else None for d in range(frame.rank)), ...)]


def fetch(frame: Frame, tensor: str, index: tuple[Index, ...], mask: Any = None) -> Any:
    """The elements at `index` over the slab; those outside that do not count are any element."""
    found = view(frame, tensor, index)
    if found is not None:
        return found
    spots = positions(frame, index, mask)
    if inside(frame, tensor, spots, mask) is not None:
        spots = [np.clip(p, 0, n - 1) for p, n in zip(spots, frame.arrays[tensor].shape, strict=True)]
    return frame.arrays[tensor][tuple(spots)]


def put(frame: Frame, tensor: str, index: tuple[Index, ...], values: Any, mask: Any = None) -> None:
    """Store over the slab where `mask` holds; the elements are distinct."""
    shape = tuple(e for _, _, e in sorted(frame.slab.values()))
    found = view(frame, tensor, index)
    if found is not None and found.shape == shape:
        np.copyto(found, values, where=True if mask is None else mask)
        return
    spots = positions(frame, index, mask)
    mask = both(mask, inside(frame, tensor, spots, mask))
    if not shape:
        if mask is None or bool(mask):
            frame.arrays[tensor][tuple(int(p) for p in spots)] = values
        return
    spread = [np.broadcast_to(p, shape) for p in spots]
    full = np.broadcast_to(values, shape)
    if mask is None:
        frame.arrays[tensor][tuple(spread)] = full
    else:
        chosen = np.broadcast_to(mask, shape)
        frame.arrays[tensor][tuple(p[chosen] for p in spread)] = full[chosen]
