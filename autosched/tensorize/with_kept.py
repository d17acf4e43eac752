"""Instructions that overwrite their target under a mask, with what the target keeps as an operand of its own.

    if p[i] != 0: c[i] = a[i] + b[i]        c[i] = a[i] + b[i] if p[i] != 0 else c_kept[i]

The two are one instruction, whose target is loaded first. So a program's own mask fits its mask, and the elements that
the program keeps are read as any other operand.
"""

from __future__ import annotations

from dataclasses import replace

from autosched.ir.nodes import Assign, Statement
from autosched.ir.value import Read, Value, map_value
from autosched.tensorize.intrinsic import Intrinsic


def keeping(intrinsic: Intrinsic) -> Intrinsic | None:
    """That form of an instruction; None for one that adds up, or that keeps nothing."""
    if not intrinsic.governed or intrinsic.accumulates or intrinsic.emit:
        return None
    target = intrinsic.accumulator
    name = f"{target.name}_kept"
    while name in intrinsic.operands:
        name += "_"

    def element(v: Value) -> Value:
        return replace(v, tensor=name) if isinstance(v, Read) and v.tensor == target.name else v

    def visit(stmt: Statement) -> Statement:
        if isinstance(stmt, Assign):
            return replace(stmt, value=map_value(stmt.value, element))
        return replace(stmt, body=tuple(map(visit, stmt.body)))

    program = intrinsic.program
    tensors = {**program.tensors, name: replace(program.tensors[target.name], name=name)}
    body = tuple(map(visit, program.body))
    program = replace(program, tensors=tensors, parameters=tuple(tensors), body=body, source="")
    operands = {**intrinsic.operands, name: replace(target, name=name, written=False)}
    return replace(intrinsic, program=program, operands=operands, second=None, length=None, lengthened=None)
