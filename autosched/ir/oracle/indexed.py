"""Ranges of data that are subscripts: what the extents of the tensors that they index leave."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor

from autosched.ir.nodes import Stage
from autosched.ir.oracle.assumed import assumed_range
from autosched.ir.oracle.index_values import Limits, index_values
from autosched.ir.program import Program
from autosched.ir.value import Arith, Cast, FromIndex, Index, Literal, Read, Value, children, is_value, reads
from autosched.logic import interval


def indexed_range(program: Program, name: str) -> Limits | None:
    """The values of an integer tensor for which subscripts that read it stay inside; None where no subscript says so,
    and for floats.

    A subscript that reads it alone, plus or times numbers and axes, is solved for it. Of others the values of their
    data are cut from above until intervals say that they stay inside: of all data at once of which nothing is assumed.
    """
    found: Limits | None = None
    for stage in program.stages if program.tensors[name].dtype.is_integer else ():
        for tensor, dimension, index in subscripts(stage):
            names = {r.tensor for r in reads(index)}
            if name not in names or not index.dtype.is_integer:
                continue
            limits, axes = (0, program.tensors[tensor].extents[dimension] - 1), axis_ranges(program, stage)
            inside = _solved(index, limits, axes) if names == {name} else None
            inside = inside or _searched(program, name, index, limits, axes)
            if inside is not None:
                found = inside if found is None else (max(found[0], inside[0]), min(found[1], inside[1]))
    return found if found is None or found[0] <= found[1] else None


def subscripts(stage: Stage) -> Iterator[tuple[str, int, Value]]:
    """Subscripts from data: the tensor, its dimension, and the subscript."""
    roots: list[Value] = [stage.assign.value, *([] if stage.init is None else [stage.init])]
    roots += [g for g in stage.guards if is_value(g)] + [i for i in stage.assign.index if is_value(i)]
    yield from _of(stage.assign.tensor, stage.assign.index)
    while roots:
        node = roots.pop()
        if isinstance(node, Read):
            yield from _of(node.tensor, node.index)
        roots += [c for c in children(node) if is_value(c)]


def _of(tensor: str, index: tuple[Index, ...]) -> Iterator[tuple[str, int, Value]]:
    yield from ((tensor, d, part) for d, part in enumerate(index) if is_value(part))


def axis_ranges(program: Program, stage: Stage) -> dict[str, Limits]:
    """The values that axes take."""
    found = {n: (low, high) for n, (low, high) in program.symbolic.items()}
    for axis in stage.axes:
        low = interval(axis.lower, found)[0]
        found[axis.name] = low, max(low, interval(axis.upper, found)[1] - 1)
    return found


def _solved(index: Value, limits: Limits, ranges: dict[str, Limits]) -> Limits | None:
    """The values of the element in `index` with which it is within the limits, whatever the axes are."""
    low, high = (max(limits[0], index.dtype.limits[0]), min(limits[1], index.dtype.limits[1]))  # nothing wraps
    match index:
        case Read():
            return low, high
        case Cast(operand, dtype) if dtype.is_integer and operand.dtype.is_integer:
            return _solved(operand, (low, high), ranges)
        case Arith("+", left, right):
            for data, other in ((left, right), (right, left)):
                number = _number(other, ranges)
                if number is not None:
                    return _solved(data, (low - number[0], high - number[1]), ranges)
        case Arith("-", data, other):
            number = _number(other, ranges)
            if number is not None:
                return _solved(data, (low + number[1], high + number[0]), ranges)
        case Arith("*", left, right):
            for data, other in ((left, right), (right, left)):
                number = _number(other, ranges)
                if number is not None and number[0] == number[1] > 0:
                    return _solved(data, (-(-low // number[0]), high // number[0]), ranges)
    return None


def _searched(program: Program, name: str, index: Value, limits: Limits, axes: dict[str, Limits]) -> Limits | None:
    """The values of the tensor, from the least that is assumed (0: none is) up to the greatest with which the subscript
    is within the limits; None where it always is, or never."""
    known = {r.tensor: _stated(program, r.tensor) for r in reads(index)}
    if not known.keys() <= set(program.inputs):
        return None

    def up_to(most: int) -> dict[str, Limits]:
        ends = {}
        for tensor, (low, high) in known.items():
            least = min(0, high or 0) if low is None else low
            if tensor == name or low is None or high is None:
                high = least + most if high is None else min(high, least + most)
            ends[tensor] = least, max(least, high)
        return ends

    def fits(most: int) -> bool:
        values = index_values(index, up_to(most), axes)
        return values is not None and limits[0] <= values[0] and values[1] <= limits[1]

    inside, outside = 0, program.tensors[name].dtype.limits[1] - up_to(0)[name][0]
    if not fits(inside) or fits(outside):
        return None
    while outside - inside > 1:
        middle = (inside + outside) // 2
        inside, outside = (middle, outside) if fits(middle) else (inside, middle)
    return up_to(inside)[name]


def _stated(program: Program, tensor: str) -> tuple[int | None, int | None]:
    """The least and the greatest integer that the program assumes of a tensor, or that is known of its data."""
    known = program.data.get(tensor)
    low, high = assumed_range(program, tensor) if known is None else (known.low, known.high)
    return None if low is None else ceil(low), None if high is None else floor(high)


def _number(value: Value, ranges: dict[str, Limits]) -> Limits | None:
    """The range of what data do not decide."""
    match value:
        case Literal(number, dtype) if dtype.is_integer:
            return int(number), int(number)
        case FromIndex(index, dtype) if dtype.is_integer:
            low, high = interval(index, ranges)
            return (low, high) if dtype.limits[0] <= low and high <= dtype.limits[1] else None
        case Cast(operand, dtype) if dtype.is_integer:
            return _number(operand, ranges)
    return None
