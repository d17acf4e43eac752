"""Parameters that decide: what conditions, guards and subscripts read, and what these are compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor, isfinite

from autosched.ir.nodes import Stage
from autosched.ir.oracle.assumed import assumed_range, integer_range
from autosched.ir.oracle.indexed import axis_ranges, indexed_range, subscripts
from autosched.ir.program import Program
from autosched.ir.value import Comparison, FromIndex, Literal, Scalar, Value, is_value, reads, walk
from autosched.logic import interval

Number = int | float
TIES = (-2, 2)
"""Where two tensors are compared, both hold whole numbers from here to there: some are equal."""


def decisive(program: Program) -> dict[str, tuple[int, int]]:
    """Integer inputs that conditions, guards and subscripts read, with the least and the greatest that each may be."""
    named = {n for s in program.stages for n in _deciding(s)}
    found = {}
    for name in (n for n in program.inputs if n in named and n not in program.data):
        if not program.tensors[name].dtype.is_integer:
            continue
        least, most = integer_range(program, name)
        inside = indexed_range(program, name)
        if inside is not None and max(least, inside[0]) <= min(most, inside[1]):
            least, most = max(least, inside[0]), min(most, inside[1])
        if least < most:
            found[name] = least, most
    return found


@dataclass(frozen=True)
class ComparedWith:
    """Parameters that conditions compare, with values around what they are compared with, in order: with `axes`, or
    with numbers and other parameters (`others`)."""

    axes: dict[str, tuple[Number, ...]]
    others: dict[str, tuple[Number, ...]]


def compared(program: Program) -> ComparedWith:
    """None whose assumed range is hardly wider."""
    spans: dict[tuple[str, bool], tuple[int, int]] = {}
    numbers: dict[tuple[str, bool], set[Number]] = {}
    for stage in program.stages:
        ranges = axis_ranges(program, stage)
        for node in (n for n in nodes(stage) if isinstance(n, Comparison)):
            for data, other in ((node.left, node.right), (node.right, node.left)):
                names, against = _parameters(program, data), _parameters(program, other)
                if len(names) != 1 or len(against) > 1 or (reads(other) and not against):
                    continue
                along = _axes(data, other, ranges)
                span = along or (TIES if against else _around(_literals(other)))
                if span is not None:
                    key = min(names), along is not None
                    old = spans.get(key, span)
                    spans[key] = min(span[0], old[0]), max(span[1], old[1])
                    numbers.setdefault(key, set()).update(_literals(other))
    found = {key: tuple(sorted({*range(low, high + 1), *numbers[key]})) for key, (low, high) in spans.items()}
    kept = {k: v for k, v in found.items() if k[0] not in program.data and _wider_than(program, k[0], v)}
    return ComparedWith(*({n: v for (n, along), v in kept.items() if along is wanted} for wanted in (True, False)))


def nodes(stage: Stage) -> Iterator[Value]:
    """Of a stage's value, of its start and of its guards."""
    for root in (stage.assign.value, stage.init, *(g for g in stage.guards if is_value(g))):
        if root is not None:
            yield from walk(root)


def _deciding(stage: Stage) -> Iterator[str]:
    """Tensors that a stage's conditions, guards and subscripts read."""
    asked: list[Value] = [g for g in stage.guards if is_value(g)]
    asked += [node for node in nodes(stage) if isinstance(node, Comparison)]
    asked += [index for _, _, index in subscripts(stage)]
    for value in asked:
        yield from (r.tensor for r in reads(value))


def _parameters(program: Program, value: Value) -> set[str]:
    """Inputs and scalars that a value reads."""
    scalars = {v.name for v in walk(value) if isinstance(v, Scalar) and v.name in program.scalars}
    return ({r.tensor for r in reads(value)} & set(program.inputs)) | scalars


def _axes(data: Value, other: Value, ranges: dict[str, tuple[int, int]]) -> tuple[int, int] | None:
    """From one below the least to two past the greatest of the axes on either side."""
    known = [interval(v.index, ranges) for side in (other, data) for v in walk(side) if isinstance(v, FromIndex)]
    return (min(low for low, _ in known) - 1, max(high for _, high in known) + 2) if known else None


def _around(values: list[Number]) -> tuple[int, int] | None:
    return (floor(min(values)) - 1, ceil(max(values)) + 1) if values else None


def _literals(value: Value) -> list[Number]:
    """Numbers of moderate size in a value, and what they are with the other sign."""
    found = [v.value for v in walk(value) if isinstance(v, Literal)]
    some = [v for v in found if isfinite(v) and abs(v) < 1 << 16]
    return [*some, *(-v for v in some if v != 0)] if len(some) < 4 else []


def _wider_than(program: Program, name: str, values: tuple[Number, ...]) -> bool:
    """Whether random elements mostly lie elsewhere, or (floats) between."""
    dtype = (program.tensors.get(name) or program.scalars[name]).dtype
    low, high = assumed_range(program, name)
    return dtype.is_float or low is None or high is None or high - low > 4 * (values[-1] - values[0])
