"""How a memory access depends on the lane: uniform, contiguous, a repeated group, strided, or anything.

All printers call `classify`, so one place tells a vector load, a splat and a gather apart. The answer is exact: the
flat row-major offset is split into a part without the lane and a function of the lane alone, and that function is
evaluated at every lane. Where no such split is found the access is `elements`, which is always right.

>>> classify((Var("p"), Var("j") * 16 + Var("l")), (8, 64), Lane("l", 16)).kind
'contiguous'
>>> str(classify((Var("i"), Var("p") * 4 + Var("l") % 4), (8, 64), Lane("l", 64)))
'group(4)'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from math import gcd

import numpy as np

from autosched.codegen.tree.kernel import Buffer, KernelError, Lane
from autosched.ir.value import Index, is_plain
from autosched.ir.variables import index_vars
from autosched.logic import Binary, Const, Int, Var, affine, evaluate, free_vars, merge_dimensions
from autosched.logic.walk import substitute_int


@dataclass(frozen=True, slots=True)
class LaneAccess:
    """`kind` is `uniform`, `contiguous`, `group`, `strided` or `elements`; `size` is the group's elements
    or the stride.

    `offsets` holds each lane's offset from lane 0, in elements, where it does not depend on outer variables; only an
    `elements` access may lack it (None)."""

    kind: str
    size: int = 0
    offsets: tuple[int, ...] | None = None

    def __str__(self) -> str:
        return f"{self.kind}({self.size})" if self.kind in ("group", "strided") else self.kind


def strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides of `shape`, in elements."""
    result = [1] * len(shape)
    for d in range(len(shape) - 2, -1, -1):
        result[d] = result[d + 1] * shape[d + 1]
    return tuple(result)


def flat_offset(buffer: Buffer, index: tuple[Int, ...]) -> Int:
    """The row-major offset of `buffer[index]` in elements."""
    total: Int = Const(0)
    parts, shape = merge_dimensions(index, buffer.shape)
    for part, stride in zip(parts, strides(shape), strict=True):
        total = total + part * stride
    return total


def plain(name: str, index: tuple[Index, ...]) -> tuple[Int, ...]:
    """The subscripts of a register or an operand. KernelError where data index it."""
    if not is_plain(index):
        raise KernelError(f"{name} is indexed by data")
    return index


def at_lane(index: tuple[Int, ...], lane: str, element: Int | int = 0) -> tuple[Int, ...]:
    """The subscripts in one lane."""
    return tuple(substitute_int(part, {lane: element}) for part in index)


@lru_cache(maxsize=1 << 12)  # kernels of one plan share most of their subscripts
def classify(index: tuple[Index, ...], shape: tuple[int, ...], lane: Lane | None) -> LaneAccess:
    """How the flat offset of `index` in an array of `shape` depends on the lane; `uniform` without a lane.

    Data-dependent subscripts count as outer variables where they do not mention the lane.
    """
    width = lane.width if lane else 1
    if lane is None or width == 1:
        return LaneAccess("uniform", 0, (0,) * width)
    slope, functions = 0, list[tuple[int, Int]]()
    parts, shape = merge_dimensions(index, shape)
    for part, stride in zip(parts, strides(shape), strict=True):
        if lane.var not in index_vars((part,)):
            continue
        split = _lane_part(part, lane.var) if isinstance(part, Int) else None
        if split is None:
            return LaneAccess("elements")
        slope += split[0] * stride
        functions += [(c * stride, f) for c, f in split[1]]
    places = np.arange(width, dtype=np.int64)
    offsets = slope * places
    for factor, function in functions:
        offsets = offsets + factor * np.asarray(evaluate(function, {lane.var: places}), np.int64)
    return access_of(tuple((offsets - offsets[0]).tolist()))


def access_of(offsets: tuple[int, ...]) -> LaneAccess:
    """The access whose lanes lie at `offsets` from lane 0.

    >>> str(access_of((0, 1, 0, 1))), str(access_of((0, 3, 6))), str(access_of((0, 0, 1, 1)))
    ('group(2)', 'strided(3)', 'elements')
    """
    width = len(offsets)
    if not any(offsets):
        return LaneAccess("uniform", 0, offsets)
    step = offsets[1]
    if all(o == step * e for e, o in enumerate(offsets)):
        return LaneAccess("contiguous", 1, offsets) if step == 1 else LaneAccess("strided", step, offsets)
    size = max(offsets) + 1
    if step == 1 and width % size == 0 and all(o == e % size for e, o in enumerate(offsets)):
        return LaneAccess("group", size, offsets)
    return LaneAccess("elements", 0, offsets)


def split_divisible(node: Int, divisor: int) -> tuple[Int, Int] | None:
    """`(q, r)` with `node == q * divisor + r` where `r` holds the terms whose coefficients `divisor` does not divide.

    So `node // divisor == q + r // divisor` and `node % divisor == r % divisor` (division floors; positive divisor).
    None where `node` is not affine.
    """
    form = affine(node)
    if form is None or divisor <= 0:
        return None
    quotient: Int = Const(form.constant // divisor)
    rest: Int = Const(form.constant % divisor)
    for name, c in form.coefficients.items():
        if c % divisor == 0:
            quotient = Var(name) * (c // divisor) + quotient
        else:
            rest = Var(name) * c + rest
    return quotient, rest


def offset_multiple(coefficients: Mapping[str, int], constant: int) -> int:
    """The greatest number that divides `sum(c * v) + constant` for all integers `v`; 0 for zero itself."""
    return reduce(gcd, (abs(c) for c in coefficients.values()), abs(constant))


def _lane_part(node: Int, lane: str) -> tuple[int, list[tuple[int, Int]]] | None:
    """`node` less a lane-free part, as `slope * lane + sum(factor * function of the lane alone)`; None if not found."""
    names = free_vars(node)
    if lane not in names:
        return 0, []
    form = affine(node)
    if form is not None:
        return form.coefficient(lane), []
    if names == {lane}:
        return 0, [(1, node)]
    match node:
        case Binary("+" | "-" as op, left, right):
            a, b = _lane_part(left, lane), _lane_part(right, lane)
            if a is None or b is None:
                return None
            sign = 1 if op == "+" else -1
            return a[0] + sign * b[0], a[1] + [(sign * c, f) for c, f in b[1]]
        case Binary("*", left, Const(value)) | Binary("*", Const(value), left):
            a = _lane_part(left, lane)
            return None if a is None else (a[0] * value, [(c * value, f) for c, f in a[1]])
        case Binary("//" | "%" as op, left, Const(divisor)) if (parts := split_divisible(left, divisor)) is not None:
            quotient, rest = parts
            if free_vars(rest) > {lane}:
                return None  # the outer part moves the carries: not a function of the lane alone
            folded = rest // divisor if op == "//" else rest % divisor
            a = _lane_part(quotient, lane) if op == "//" else (0, [])
            if a is None:
                return None
            return a[0], a[1] + ([(1, folded)] if lane in free_vars(folded) else [])
    return None
