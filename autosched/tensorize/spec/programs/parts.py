"""Operands in parts: where the statements name elements along a dimension one by one (`a[i, k, 0]`, `a[i, k, 1]`),
each is an operand of its own.

    c[i, j] += a[i, k, 0] * b[k, j, 0] - a[i, k, 1] * b[k, j, 1]
    c[i, j] += a_0[i, k] * b_0[k, j] - a_1[i, k] * b_1[k, j]

So terms of two signs, and products of exchanged elements, are one term over more operands, which a program may hold
side by side or apart.
"""

from __future__ import annotations

from dataclasses import replace

from autosched.ir.map import Map
from autosched.ir.nodes import Assign, Statement, Tensor
from autosched.ir.program import Program
from autosched.ir.rewrites.reuse import places_of
from autosched.ir.value import Index, Read, Select, Value, is_value, map_value, reads, walk
from autosched.logic import Const
from autosched.tensorize.intrinsic import Intrinsic, Operand
from autosched.tensorize.reduction.update import NotAnUpdate, update_of_intrinsic

_NO_ORDER = Map((), ())


def in_parts(program: Program) -> tuple[Program, dict[str, str]]:
    """The program on parts of its operands, and the operand of each part; ({}) where nothing is named one by one."""
    subscripts: dict[str, list[tuple[Index, ...]]] = {}
    for place in places_of(program.body):
        subscripts.setdefault(place.assign.tensor, []).append(place.assign.index)
        for read in place.reads:
            subscripts.setdefault(read.tensor, []).append(read.index)
    along: dict[str, tuple[int, ...]] = {}
    for name, tensor in program.tensors.items():
        known = subscripts.get(name, [])
        fixed = [d for d, n in enumerate(tensor.extents) if n > 1 and all(isinstance(i[d], Const) for i in known)]
        if known and fixed:
            along[name] = tuple(fixed)
    if not along:
        return program, {}
    whole: dict[str, str] = {}
    names: dict[tuple[str, tuple[int, ...]], str] = {}
    tensors: dict[str, Tensor] = {}
    for name, tensor in program.tensors.items():
        if name not in along:
            tensors[name] = tensor
            continue
        for numbers in sorted({_numbers(index, along[name]) for index in subscripts[name]}):
            part = _part(name, numbers)
            while part in program.tensors or part in tensors:
                part += "_"
            shape = tuple(n for d, n in enumerate(tensor.shape) if d not in along[name])
            tensors[part] = replace(tensor, name=part, shape=shape or (Const(1),))
            whole[part] = name
            names[name, numbers] = part

    def place_in(tensor: str, index: tuple[Index, ...]) -> tuple[str, tuple[Index, ...]]:
        fixed = along[tensor]
        rest = tuple(i for d, i in enumerate(index) if d not in fixed)
        return names[tensor, _numbers(index, fixed)], rest or (Const(0),)

    def element(v: Value) -> Value:
        if not (isinstance(v, Read) and v.tensor in along):
            return v
        tensor, index = place_in(v.tensor, v.index)
        return replace(v, tensor=tensor, index=index)

    def visit(stmt: Statement) -> Statement:
        if not isinstance(stmt, Assign):
            return replace(stmt, body=tuple(map(visit, stmt.body)))
        tensor, index = place_in(stmt.tensor, stmt.index) if stmt.tensor in along else (stmt.tensor, stmt.index)
        return replace(stmt, tensor=tensor, index=index, value=map_value(stmt.value, element))

    body = tuple(map(visit, program.body))
    return replace(program, tensors=tensors, parameters=tuple(tensors), body=body, source=""), whole


def _numbers(index: tuple[Index, ...], along: tuple[int, ...]) -> tuple[int, ...]:
    parts = [index[d] for d in along]
    return tuple(p.value for p in parts if isinstance(p, Const))


def _part(name: str, numbers: tuple[int, ...]) -> str:
    return "_".join([name, *map(str, numbers)])


def one_term(name: str, program: Program) -> bool:
    """Whether the instruction's statement, as it is written, adds one term along each of its axes, be they loops or
    written out."""
    stage = program.stages[0]
    target = stage.assign.tensor
    operands = {n: Operand(n, t.dtype, t.extents, _NO_ORDER, written=n == target) for n, t in program.tensors.items()}
    try:
        update_of_intrinsic(Intrinsic(name, "", program, operands))
    except NotAnUpdate:
        return False
    return True


def parts_that_data_select(intrinsic: Intrinsic) -> dict[str, tuple[str, ...]]:
    """The parts of operands of which data select elements along one dimension, by its number; {} where none are."""
    value = intrinsic.stage.assign.value
    asked = [v for v in walk(value) if isinstance(v, Select) and is_value(v.condition)]
    chosen = {r.tensor for v in asked for branch in (v.then, v.other) for r in reads(branch)}
    found: dict[str, list[str]] = {}
    for part, name in in_parts(intrinsic.program)[1].items():
        found.setdefault(name, []).append(part)
    return {
        name: tuple(parts)
        for name, parts in found.items()
        if name in chosen and len(parts) == _numbers_along(intrinsic, name)
    }


def _numbers_along(intrinsic: Intrinsic, operand: str) -> int:
    """The extent of the one dimension that constants alone subscript; 0 where there are several."""
    subscripts = [r.index for r in intrinsic.stage.reads if r.tensor == operand]
    shape = intrinsic.operands[operand].shape
    fixed = [n for d, n in enumerate(shape) if n > 1 and all(isinstance(i[d], Const) for i in subscripts)]
    return fixed[0] if len(fixed) == 1 else 0
