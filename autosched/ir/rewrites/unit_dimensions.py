"""`drop_unit_dimensions`: intermediates without the dimensions of which they have one element.

    M: f32[64, 1];  M[b, 0] = max(M[b, 0], S[b, 0, j])        M: f32[64];  M[b] = max(M[b], S[b, j])
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from autosched.ir.program import Program
from autosched.ir.rewrites.elements import elements_read, elements_written
from autosched.ir.rewrites.rewrite import Rewrite
from autosched.ir.rewrites.tiles.placed import placed
from autosched.ir.value import Index
from autosched.logic import Const

T = TypeVar("T")


@dataclass(frozen=True)
class _Narrower:
    """An intermediate without the dimensions `dropped`."""

    name: str
    dropped: frozenset[int]

    def of(self, index: tuple[Index, ...]) -> tuple[Index, ...]:
        return _left(index, self.dropped)


def drop_unit_dimensions(program: Program) -> Rewrite | None:
    """The program with those left out whose subscript is 0 wherever the intermediate is touched; of each one dimension
    stays at least. None where there is nothing to leave out."""
    dropped = {name: units for name in program.tensors if (units := _units(program, name))}
    if not dropped:
        return None
    tensors = {
        name: replace(tensor, shape=_left(tensor.shape, dropped.get(name, frozenset())))
        for name, tensor in program.tensors.items()
    }
    places = {name: _Narrower(name, units) for name, units in dropped.items()}
    body = tuple(placed(stmt, places) for stmt in program.body)
    proof = tuple(f"{name} has one element along dimension {min(d)}" for name, d in dropped.items())
    return Rewrite("drop unit dimensions", program, replace(program, body=body, tensors=tensors, source=""), proof)


def _units(program: Program, name: str) -> frozenset[int]:
    """The dimensions of an intermediate that are left out."""
    tensor = program.tensors[name]
    if not tensor.intermediate or name in program.symbolic:
        return frozenset()
    units = {d for d, size in enumerate(tensor.shape) if size == Const(1)}
    for element in (*elements_read(program.body), *elements_written(program.body)):
        if element.tensor == name:
            units = {d for d in units if element.index[d] == Const(0)}
    return frozenset(units if len(units) < len(tensor.shape) else set(sorted(units)[1:]))


def _left(parts: tuple[T, ...], dropped: frozenset[int]) -> tuple[T, ...]:
    return tuple(part for d, part in enumerate(parts) if d not in dropped)
