"""Elements in registers that several lanes hold, or that take other bits there than in memory: what the YAML says of
them, checked.

    copies: 2       two lanes hold each element: the instruction reads one of them, and the other does no harm
    bits: 2         of an element a register has two bits
    shift: 2        an element begins at bit 2 of its field
    distinct: 2     of each two neighbours both must not be equal: the instruction says nothing of what it does then
"""

from __future__ import annotations

from autosched.ir.nodes import Stage
from autosched.tensorize.intrinsic import Operand
from autosched.tensorize.low_bits import looks_past
from autosched.tensorize.spec.keys.models import OperandKeys
from autosched.tensorize.spec.source import DocumentSource

WORD_BITS = 32
"""Of a register that holds fields."""


def check_fields(operand: Operand, own: OperandKeys, stage: Stage, source: DocumentSource) -> None:
    """SpecError where elements do not fit into the fields of their registers, or what is left of them is not all that
    the semantics looks at."""
    name = operand.name
    groups = operand.dtype.is_integer and not operand.written and operand.shape[-1] % (own.distinct or 1) == 0
    if own.distinct is not None and not groups:
        said = f"operand {name}: {operand.dtype}{list(operand.shape)} has no groups of {own.distinct} that may differ"
        raise source.error(said, "operands", name, "distinct", hint="of an input of integers, along the last dimension")
    for key, given in (("copies", own.copies), ("bits", own.bits), ("shift", own.shift)):
        if given is not None and operand.fragment is None:
            hint = "say by `fragment:` which lane holds what"
            raise source.error(f"operand {name}: {key} of no fragment", "operands", name, key, key=True, hint=hint)
        if given is not None and key != "copies" and operand.written:
            said = f"operand {name}: {key} of what is written: results lie as their type has them"
            raise source.error(said, "operands", name, key, key=True)
    if operand.fragment is None:
        return
    if own.load and (operand.shift or operand.field_bits != operand.dtype.bits):
        said = f"operand {name}: load fills registers with what lies in memory, and elements take other bits there"
        raise source.error(said, "operands", name, "load", hint="leave it out: lanes put in each element")
    room = operand.field_bits - operand.shift
    if room < 1 or (WORD_BITS % operand.field_bits and operand.in_fields):
        said = f"operand {name}: {operand.field_bits} bits from bit {operand.shift} on are no field of a register"
        hint = "a field is a part of 32 bits: 1, 2, 4, 8, 16 or 32 of them"
        raise source.error(said, "operands", name, "bits" if own.bits else "shift", hint=hint)
    if room < operand.dtype.bits and looks_past(stage.assign.value, name, room):
        said = f"operand {name}: {operand.dtype} does not fit into {room} bits of a register"
        hint = f"semantics that look at the low bits alone say so: {name}[…] & {(1 << room) - 1}"
        raise source.error(said, "operands", name, "bits", hint=hint)
