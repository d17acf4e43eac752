"""Inputs on which two scalar expressions differ: found by running both, and never reported unless they really do."""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.ir.dtypes import BOOL, DType
from autosched.ir.oracle import numerics
from autosched.ir.printer import print_value
from autosched.ir.value import FromIndex, Read, Scalar, Select, Value, children, is_value
from autosched.ir.value import Logical as LogicalValue
from autosched.logic import Bool, Int
from autosched.tensorize.body.arrays import evaluate

_SEED = 0  # a counterexample must be the same every time
_CORNERS = 14_000
_RANDOM = 2_000
_FEW = 64


def leaves(*values: Value) -> tuple[Any, ...]:
    """What the values are functions of: reads, scalars, index values, and conditions on axes. Parts of an address are
    none, unless they stand elsewhere too."""
    found: dict[Any, None] = {}
    waiting = list(reversed(values))
    while waiting:
        node = waiting.pop()
        if isinstance(node, Read | Scalar | FromIndex):
            found[node] = None
            continue
        parts = (node.condition,) if isinstance(node, Select) else node.parts if isinstance(node, LogicalValue) else ()
        found |= {p: None for p in parts if not is_value(p)}
        waiting += reversed(children(node))
    return tuple(found)


def show_leaf(leaf: Any) -> str:
    """`A[i, p]`, a scalar's name, or a condition's text."""
    match leaf:
        case Read():
            return _show_read(leaf)
        case Scalar(name, _):
            return name
        case FromIndex(index, dtype):
            return f"{dtype}({index})"
    return print_value(leaf) if is_value(leaf) else _show_formula(leaf)


@lru_cache(maxsize=4096)
def _show_read(read: Read) -> str:
    return f"{read.tensor}[{', '.join(show_index(i) for i in read.index)}]" if read.index else read.tensor


@lru_cache(maxsize=4096)
def _show_formula(formula: Int | Bool) -> str:
    return str(formula)


def show_index(index: Any) -> str:
    """A subscript as in the program's text."""
    return str(index) if isinstance(index, Int) else print_value(index)


def domain_bits(*values: Value) -> int:
    """Bits of all inputs together: 2 to this power is the number of cases."""
    return sum(_dtype(leaf).bits for leaf in leaves(*values))


def find_difference(left: Value, right: Value) -> dict[str, Any] | None:
    """Corner values of every input (all combinations, as far as they are few), then random ones; None: they agree."""
    keys = leaves(left, right)
    dtypes = tuple(map(_dtype, keys))
    for inputs in (_corner_inputs, _random_inputs):
        found = _compare(left, right, keys, dict(zip(keys, inputs(dtypes), strict=True)))
        if found is not None:
            return found
    return None


def differs_at_once(left: Value, right: Value) -> bool:
    """Whether two values differ on some random inputs: a quick no before a proof is tried."""
    keys = leaves(left, right)
    few = (column[:_FEW] for column in _random_inputs(tuple(map(_dtype, keys))))
    return _compare(left, right, keys, dict(zip(keys, few, strict=True))) is not None


def find_difference_exhaustively(left: Value, right: Value) -> dict[str, Any] | None:
    """The difference of smallest inputs among all cases, or None, which is a proof; at most 2^16 cases."""
    assert domain_bits(left, right) <= 16
    keys = leaves(left, right)
    return _compare(left, right, keys, dict(zip(keys, _every_input(tuple(map(_dtype, keys))), strict=True)))


def run_on(left: Value, right: Value, inputs: dict[Any, Any]) -> dict[str, Any] | None:
    """Both on one input: the counterexample, or None where they agree."""
    return _compare(left, right, tuple(inputs), {k: _array([v], _dtype(k)) for k, v in inputs.items()})


def _dtype(leaf: Any) -> DType:
    return leaf.dtype if is_value(leaf) else BOOL


def _array(numbers: list[Any], dtype: DType) -> npt.NDArray[Any]:
    if dtype == BOOL:
        return np.array(numbers, np.bool_)
    if dtype.is_float:
        return np.asarray(numerics.round_float(np.array(numbers, np.float64), dtype))
    return np.array([numerics.wrap_int(int(n), dtype) for n in numbers], numerics.container(dtype))


Columns = tuple[npt.NDArray[Any], ...]
"""One array an input, all of one length; never written to."""


@lru_cache(maxsize=64)
def _every_input(dtypes: tuple[DType, ...]) -> Columns:
    """All combinations of values, those near zero first."""
    every = []
    for dtype in dtypes:
        low, high = (0, 1) if dtype == BOOL else dtype.limits
        every.append(_array(sorted(range(low, high + 1), key=abs), dtype))
    return tuple(grid.reshape(-1) for grid in np.meshgrid(*every, indexing="ij"))


@lru_cache(maxsize=64)
def _corner_inputs(dtypes: tuple[DType, ...]) -> Columns:
    corners = [_corners(dtype) for dtype in dtypes]
    while prod(len(c) for c in corners) > _CORNERS:
        longest = max(corners, key=len)
        corners[corners.index(longest)] = longest[: len(longest) * 2 // 3]
    columns = [list(c) for c in zip(*product(*corners), strict=True)]
    return tuple(_array(column, dtype) for column, dtype in zip(columns, dtypes, strict=True))


@lru_cache(maxsize=64)
def _random_inputs(dtypes: tuple[DType, ...]) -> Columns:
    rng = np.random.default_rng(_SEED)
    return tuple(_random(dtype, rng) for dtype in dtypes)


def _corners(dtype: DType) -> list[Any]:
    """Values near which things go wrong, the simplest first."""
    if dtype == BOOL:
        return [True, False]
    if dtype.is_integer:
        low, high = dtype.limits
        found = [1, 0, -1, 2, 3, high, low, high - 1, low + 1, high // 2, low // 2, high // 2 + 1, 7, -7]
        return list(dict.fromkeys(n for n in found if low <= n <= high))
    if dtype.scale:
        return [1.0, 2.0, 0.5, 4.0, 0.25, 2.0**60, 2.0**-60, dtype.greatest, 2.0 ** dtype.exponents[0]]
    large = min(dtype.greatest, 2.0**120)
    step = 2.0**-dtype.mantissa
    return [1.0, 0.0, 2.0, -1.0, 1 + step, 3.0, 1.5, -(1 + step), large, -large, 2 - step, 0.1, -0.0, 1 / 3]


def _random(dtype: DType, rng: np.random.Generator) -> npt.NDArray[Any]:
    if dtype == BOOL:
        return rng.integers(0, 2, _RANDOM).astype(np.bool_)
    if dtype.is_integer:
        low, high = dtype.limits
        kind = np.uint64 if high > 2**63 else np.int64
        return _array(list(rng.integers(low, high, _RANDOM, dtype=kind, endpoint=True)), dtype)
    if dtype.scale:
        return _array(list(np.exp2(rng.integers(-8, 9, _RANDOM))), dtype)
    return _array(list(rng.standard_normal(_RANDOM)), dtype)


def _compare(left: Value, right: Value, keys: tuple[Any, ...], env: dict[Any, Any]) -> dict[str, Any] | None:
    a, b = np.broadcast_arrays(evaluate(left, env), evaluate(right, env))
    differ = np.atleast_1d(a != b)
    if left.dtype.is_float:
        differ &= np.atleast_1d(~(np.isnan(a) & np.isnan(b)))
    if not differ.any():
        return None
    at = int(np.argmax(differ))

    def number(column: Any) -> Any:
        item = np.broadcast_to(column, differ.shape)[at].item()
        return item if isinstance(item, bool | int) else float(item)

    return {
        "inputs": {show_leaf(k): number(env[k]) for k in keys},
        "program": number(a),
        "intrinsic": number(b),
    }
