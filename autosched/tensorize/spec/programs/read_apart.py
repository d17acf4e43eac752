"""Instructions that read what they overwrite in another way than by adding to it, as those that overwrite an operand.

    c[i] = fma(a[i], c[i], b[i])            c[i] = fma(a[i], c_before[i], b[i])

What the right one computes, the left one does with one register as `c_before` and `c`; a compiler sees to that, and
copies the register first where its old value is used again.
"""

from __future__ import annotations

from dataclasses import replace

from autosched.ir.nodes import Assign, Statement, Tensor
from autosched.ir.program import Program
from autosched.ir.value import Read, Value, map_value, reads
from autosched.tensorize.reduction.update import NotAnUpdate, update_of
from autosched.tensorize.spec.emit import names, with_operand
from autosched.tensorize.spec.keys.models import IntrinsicKeys
from autosched.tensorize.spec.keys.started_keys import VALUES
from autosched.tensorize.spec.programs.semantics import overwrites


def read_apart(program: Program, keys: IntrinsicKeys, own: str) -> tuple[Program, IntrinsicKeys]:
    """The program and the keys with an operand for what the target held; as they are where it is read in no such way,
    and where nothing says that its register may be another one: texts that are the target's new value. `own` is the
    printer of a bare text."""
    stage = program.stages[0]
    target = stage.target
    texts = keys.emit if isinstance(keys.emit, dict) else {own: keys.emit}
    values = set(texts) <= VALUES and keys.pseudocode is None and keys.scope == "thread" and not keys.state
    if keys.kind != "compute" or not texts or not values or overwrites(program) or stage.reduction:
        return program, keys
    try:
        update_of(stage, merging=True)
        return program, keys
    except NotAnUpdate:
        pass
    if any(r.tensor == target.tensor and r.index != target.index for r in reads(stage.assign.value)):
        return program, keys
    before = f"{target.tensor}_before"
    while before in program.tensors:
        before += "_"

    def element(v: Value) -> Value:
        return replace(v, tensor=before) if isinstance(v, Read) and v.tensor == target.tensor else v

    def visit(stmt: Statement) -> Statement:
        if isinstance(stmt, Assign):
            return replace(stmt, value=map_value(stmt.value, element))
        return replace(stmt, body=tuple(map(visit, stmt.body)))

    tensor = program.tensors[target.tensor]
    tensors = {**program.tensors, before: Tensor(before, tensor.dtype, tensor.shape)}
    place = program.parameters.index(target.tensor)
    parameters = (*program.parameters[:place], before, *program.parameters[place:])
    made = replace(
        program, body=tuple(map(visit, program.body)), tensors=tensors, parameters=parameters, source=""
    )
    operands = dict(keys.operands)
    if target.tensor in operands:
        operands[before] = operands[target.tensor]
    emit = {printer: with_operand(text, target.tensor, before) for printer, text in texts.items()}
    if not all(names(text, before) for text in emit.values()):
        return program, keys
    written: str | dict[str, str] = emit if isinstance(keys.emit, dict) else emit[own]
    return made, keys.model_copy(update={"operands": operands, "emit": written})
