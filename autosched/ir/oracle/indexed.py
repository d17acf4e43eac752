"""Ranges of data that are subscripts: what the extents of the tensors that they index leave."""

from __future__ import annotations

from collections.abc import Iterator

from autosched.ir.nodes import Stage
from autosched.ir.program import Program
from autosched.ir.value import Arith, Cast, FromIndex, Index, Literal, Read, Value, children, is_value, reads
from autosched.logic import interval

Limits = tuple[int, int]
"""Least and greatest, both inside."""


def indexed_range(program: Program, name: str) -> Limits | None:
    """The values of an integer tensor for which every subscript that reads it alone, plus or times numbers and axes,
    stays inside; None where no subscript says so."""
    found: Limits | None = None
    for stage in program.stages:
        for tensor, dimension, index in subscripts(stage):
            if {r.tensor for r in reads(index)} != {name} or not index.dtype.is_integer:
                continue
            inside = _solved(index, (0, program.tensors[tensor].extents[dimension] - 1), _ranges(program, stage))
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


def _ranges(program: Program, stage: Stage) -> dict[str, Limits]:
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
