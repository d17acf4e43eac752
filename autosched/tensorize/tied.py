"""Instructions that add an operand to what they compute, with that operand as their target.

    d[i] = fma(a[i], b[i], c[i])            d[i] = fma(a[i], b[i], d[i])

Issued with one register as c and d, the left one is the right one, which sums: so it fits products of many steps, too.
"""

from __future__ import annotations

from dataclasses import replace

from autosched.ir.nodes import Assign, Statement
from autosched.ir.program import Program
from autosched.ir.value import Read, Value, map_value, reads
from autosched.tensorize.intrinsic import Intrinsic, Operand
from autosched.tensorize.numerics.contract import Numerics
from autosched.tensorize.reduction.update import NotAnUpdate, update_of_intrinsic
from autosched.tensorize.spec.emit import with_operand

_VALUES = frozenset(["llvm", "c"])
"""Printers whose texts are the target's new value: nothing is written before all is read."""
FEWEST = 2
"""Elements that the term is made of: what adds one alone is a plain addition, which vector code has."""


def tied(intrinsic: Intrinsic) -> Intrinsic | None:
    """That form of an instruction; None for one that has none."""
    if tied not in intrinsic.cache:
        intrinsic.cache[tied] = _tied(intrinsic)
    found: Intrinsic | None = intrinsic.cache[tied]
    return found


def _tied(intrinsic: Intrinsic) -> Intrinsic | None:
    plain = intrinsic.kind == "compute" and not intrinsic.accumulates and not intrinsic.governed
    dtype = intrinsic.accumulator.dtype
    if not plain or (dtype.is_float and dtype.finite) or len(intrinsic.inputs) <= FEWEST:
        return None
    if replace(intrinsic.numerics, accumulate=Numerics().accumulate) != Numerics() or intrinsic.contracts:
        return None  # a bound on the whole says nothing of a sum
    if intrinsic.matrices is not None or not set(intrinsic.emit) <= _VALUES:
        return None
    for operand in intrinsic.inputs:
        if _one_register(operand, intrinsic.accumulator) and (made := _with(intrinsic, operand.name)) is not None:
            return made
    return None


def _one_register(operand: Operand, target: Operand) -> bool:
    """Whether the two hold their elements in the same register, in the same order."""
    named = replace(operand, name=target.name, written=True, load=target.load, broadcast=target.broadcast)
    return named == target


def _with(intrinsic: Intrinsic, start: str) -> Intrinsic | None:
    """With the operand as its target; None where it does not add to it then."""
    stage = intrinsic.stage
    own = [r for r in stage.reads if r.tensor == start]
    if len(own) != 1 or own[0].index != stage.assign.index:
        return None
    target = stage.assign.tensor

    def element(v: Value) -> Value:
        return replace(v, tensor=target) if isinstance(v, Read) and v.tensor == start else v

    def visit(stmt: Statement) -> Statement:
        if isinstance(stmt, Assign):
            return replace(stmt, value=map_value(stmt.value, element))
        return replace(stmt, body=tuple(map(visit, stmt.body)))

    program = _program(intrinsic.program, start, tuple(map(visit, intrinsic.program.body)))
    operands = {n: o for n, o in intrinsic.operands.items() if n != start}
    emit = {printer: with_operand(text, start, target) for printer, text in intrinsic.emit.items()}
    made = replace(intrinsic, program=program, operands=operands, emit=emit, second=None)
    try:
        update = update_of_intrinsic(made)
    except NotAnUpdate:
        return None
    sums = update.combine is not None and all(r.tensor != target for r in reads(update.term))
    return made if sums and len(update.operands) >= FEWEST else None


def _program(program: Program, start: str, body: tuple[Statement, ...]) -> Program:
    tensors = {n: t for n, t in program.tensors.items() if n != start}
    parameters = tuple(p for p in program.parameters if p != start)
    return replace(program, body=body, tensors=tensors, parameters=parameters, source="")
