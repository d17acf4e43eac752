"""`sequences:` of an entry: targets whose machine runs others in its place, and what operands take there."""

from __future__ import annotations

from collections.abc import Mapping

from autosched.errors import nearest
from autosched.tensorize.intrinsic import Operand
from autosched.tensorize.spec.models import IntrinsicKeys
from autosched.tensorize.spec.operands import DocumentSource, lanes_of

_WORD = 32  # bits of a register


def sequences_of(
    keys: IntrinsicKeys, operands: Mapping[str, Operand], source: DocumentSource
) -> tuple[tuple[frozenset[str], dict[str, int]], ...]:
    """Features, and registers of a lane by operand; SpecError for unknown operands and fewer than an operand fills."""
    lanes = lanes_of(source.name.split("/")[0], keys) or 1
    for number, given in enumerate(keys.sequences):
        for name, count in given.registers.items():
            place = "sequences", number, "registers", name
            if name not in operands:
                close = nearest(name, operands)
                hint = (f"did you mean {close!r}? " if close else "") + f"operands: {', '.join(operands)}"
                raise source.error(f"sequences: {name!r} is no operand", *place, key=True, hint=hint)
            own = -(-operands[name].elements * operands[name].dtype.bits // (lanes * _WORD))
            if count < own:
                raise source.error(f"sequences: {name} fills {own} registers by itself, more than {count}", *place)
    return tuple((frozenset(given.when), dict(given.registers)) for given in keys.sequences)
