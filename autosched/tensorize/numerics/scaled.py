"""Terms of sums that are aligned, where more than two elements are multiplied: blocks with scales (OCP MX, nvfp4).

    (f32(a) * f32(sa)) * (f32(b) * f32(sb))

The exponent of such a product is the sum of its elements', each of its own type, and no factor overflows. A group
(`Numerics.group`) shares its scales: its products without them are added exactly, and the scales' exponents alone say
where the sum is cut (MMA-Sim: ST-FDPA and GST-FDPA).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from autosched.ir.dtypes import DType
from autosched.ir.nodes import Stage
from autosched.ir.value import Arith, Call, Cast, Read, Value
from autosched.logic import Int, evaluate
from autosched.tensorize.numerics.rounding import exponents, least_exponent

EXACT_BITS = 53
"""Of a product in f64."""


@dataclass(frozen=True)
class Element:
    """A factor: the element `read`, widened, or its magnitude."""

    value: Value
    read: Read


def elements_apart(value: Value) -> tuple[Element, ...]:
    """The elements that a term multiplies; () where it is no product of these alone, or one that f64 may round."""
    found = _elements(value)
    if found is None or sum(e.read.dtype.mantissa + 1 for e in found) > EXACT_BITS:
        return ()
    return tuple(found)


def _elements(value: Value) -> list[Element] | None:
    match value:
        case Arith("*", left, right, _):
            one, other = _elements(left), _elements(right)
            return None if one is None or other is None else one + other
        case Read() | Cast(Read(), _, False) | Call("abs", (Read() | Cast(Read(), _, False),), _):
            inside = value.args[0] if isinstance(value, Call) else value
            read = inside.operand if isinstance(inside, Cast) else inside
            assert isinstance(read, Read)
            return [Element(value, read)] if read.dtype.is_float and value.dtype.is_float else None
    return None


def shared_by(places: npt.NDArray[np.int64], group: int) -> bool:
    """Whether neighbours in each group read one element; `places` of shape (points, lanes)."""
    grouped = places.reshape(-1, group, places.shape[-1])
    return group > 1 and bool((grouped == grouped[:, :1]).all())


def bits_below(stage: Stage, group: int) -> int | None:
    """How far below the exponents of its scales a group's sum may lie, if it is not zero: products of the least
    elements, and subnormal scales. None where groups share no element, or are no whole ones."""
    elements = elements_apart(stage.assign.value)
    reduction = [a for a in stage.axes if a not in stage.spatial]
    points = np.indices(tuple(a.extent for a in reduction), dtype=np.int64).reshape(len(reduction), -1, 1)
    if not elements or points.shape[1] % group:
        return None
    at = {a.name: np.zeros((), np.int64) for a in stage.axes}
    at |= {a.name: own for a, own in zip(reduction, points, strict=True)}
    found = 0
    some = False
    for e in elements:
        # Numbers of elements matter as equal or not: each dimension by itself is enough.
        parts = [np.asarray(evaluate(p, at), np.int64) for p in e.read.index if isinstance(p, Int)]
        shared = all(shared_by(np.broadcast_to(p, points.shape[1:]), group) for p in parts)
        some |= shared
        own = e.read.dtype
        found += own.mantissa if shared else max(0, own.mantissa - least_exponent(own))
    return found if some else None


def aligned_terms(
    values: Sequence[Any], dtypes: Sequence[DType], shared: Sequence[bool], group: int
) -> tuple[Any, Any]:
    """Exact terms, one for each group, and the exponents by which they are aligned; `values` of shape (points, n)."""
    with np.errstate(all="ignore"):
        own, scale = np.ones(values[0].shape), np.ones(values[0].shape)
        places = np.zeros(values[0].shape, np.int64)
        for value, dtype, of_group in zip(values, dtypes, shared, strict=True):
            if of_group:
                scale *= value
            else:
                own *= value
            if of_group or group == 1:
                places += exponents(value, dtype)
        if group > 1:
            own, scale, places = own.reshape(-1, group, own.shape[-1]).sum(axis=1), scale[::group], places[::group]
        terms = own * scale
        return terms, np.where(terms == 0, np.int64(-4000), places)
