"""Operands that stay in a state of an accelerator from one load to the next, as weights in a systolic array.

One instruction of kind `copy` loads the state, others read it. Nothing here knows an instruction by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from autosched.errors import nearest
from autosched.ir.value import Cast, Read
from autosched.logic import Var
from autosched.tensorize.intrinsic import Intrinsic, Operand

PLACES = ("memory", "inputs", "accumulators")
"""Where copies of an accelerator take elements from. They bring them there too, or to a state."""


def as_it_is(copy: Intrinsic) -> bool:
    """Whether it writes every element of its tile, converted at most, and changes nothing else of it."""
    assign, value = copy.stage.assign, copy.stage.assign.value
    value = value.operand if isinstance(value, Cast) else value
    same = isinstance(value, Read) and value.index == assign.index
    whole = all(isinstance(i, Var) for i in assign.index) and len(set(assign.index)) == len(assign.index)
    every = prod(a.extent for a in copy.stage.axes) == copy.accumulator.elements == copy.inputs[0].elements
    return assign.op == "=" and same and whole and every and not copy.stage.guards


def loads(copy: Intrinsic, operand: Operand) -> bool:
    """Whether a copy loads the state that holds an operand: from the scratchpad of inputs, in whole issues."""
    return copy.kind == "copy" and copy.moves == ("inputs", operand.state) and not why_not(copy, operand)


def why_not(copy: Intrinsic, operand: Operand) -> str:
    """What keeps a copy to the operand's state from filling it; nothing where it does."""
    into, start = copy.accumulator, copy.inputs[0]
    if copy.moves != ("inputs", operand.state):
        return f"{copy.name} does not take it from the inputs"
    if {start.dtype, into.dtype} != {operand.dtype}:
        return f"{copy.name} writes {into.dtype} from {start.dtype}"
    if operand.elements % into.elements or not as_it_is(copy):
        return f"{copy.name} does not copy each element of {list(operand.shape)}, or a part of it, as it is"
    return ""


def not_set(known: Iterable[Intrinsic]) -> tuple[Intrinsic, Operand, str, str] | None:
    """The first instruction that reads a state which none of the others sets: itself, its operand, what is wrong and
    what would mend it."""
    known = list(known)
    for reader in known:
        for operand in reader.held:
            if any(loads(i, operand) for i in known):
                continue
            near = [i for i in known if i.kind == "copy" and i.moves is not None and i.moves[1] == operand.state]
            said = f"operand {operand.name} is read from the state {operand.state} before it is set: "
            said += "; ".join(why_not(i, operand) for i in near) or f"nothing loads {operand.state}"
            mend = "describe an instruction of kind: copy with `moves: {from: inputs, to: " + operand.state + "}` that "
            return reader, operand, said, mend + f"reads and writes {operand.dtype}{list(operand.shape)}"
    return None


def never_read(known: Iterable[Intrinsic]) -> tuple[Intrinsic, str, str] | None:
    """The first copy to a place that there is not, nor a state that holds an operand of others: itself, what is wrong
    and what would mend it."""
    known = list(known)
    states = sorted({o.state for i in known for o in i.held})
    for copy in known:
        if copy.moves is not None and copy.moves[1] not in (*PLACES, *states):
            to = copy.moves[1]
            close = nearest(to, (*PLACES, *states))
            mend = f"did you mean {close!r}? " if close else ""
            mend += "an operand that it holds says so: `operands: {b: {state: " + to + "}}`"
            said = f"moves: no instruction reads a state {to}, and places are 'memory', 'inputs' or 'accumulators'"
            return copy, said, mend
    return None
