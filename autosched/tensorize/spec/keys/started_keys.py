"""The keys of an instruction whose sum has a start: what they say of the operand it starts from, and what means nothing
where it starts from zero."""

from __future__ import annotations

from autosched.tensorize.spec.emit import names, with_operand
from autosched.tensorize.spec.keys.models import IntrinsicKeys
from autosched.tensorize.spec.programs.started import Started
from autosched.tensorize.spec.source import DocumentSource

VALUES = frozenset(["llvm", "c"])
"""Printers whose texts are the target's new value: nothing is written before all is read."""


def one_register(keys: IntrinsicKeys, started: Started, own: str, source: DocumentSource) -> IntrinsicKeys:
    """The keys with the operand that the sum starts from as its target; SpecError where they say that the two are
    different, or where a text could write the one before it reads the other. `own` is the printer of a bare text."""
    start, target = started.start, started.target
    if start is None or target is None:
        return keys
    operands = dict(keys.operands)
    said = operands.pop(start, None)
    if said is not None and operands.setdefault(target, said) != said:
        wrong = f"operand {start}: {target} starts from it, so both are one register, and {target} has other keys"
        raise source.error(wrong, "operands", start, key=True, hint=f"say the same of {start} and {target}")
    texts = keys.emit if isinstance(keys.emit, dict) else {own: keys.emit}
    for printer, text in texts.items():
        if printer not in VALUES and names(text, start):
            place = ("emit", printer) if isinstance(keys.emit, dict) else ("emit",)
            wrong = f"emit.{printer}: {{{start}}} and {{{target}}} are one register, since the sum starts from {start}"
            raise source.error(wrong, *place, hint=f"name it {{{target}}} wherever it is read, too")
    emit = {printer: with_operand(text, start, target) for printer, text in texts.items()}
    made: str | dict[str, str] = emit if isinstance(keys.emit, dict) else emit[own]
    return keys.model_copy(update={"operands": operands, "emit": made})


def check_from_zero(keys: IntrinsicKeys, source: DocumentSource) -> None:
    """SpecError for a key that means nothing where the sum starts from zero, or that is not supported there."""
    if keys.kind != "compute":
        raise source.error(f"semantics: a sum, and kind is {keys.kind}", "semantics", hint="leave kind out")
    if keys.overwrite is not None:
        said = "overwrite: the semantics starts its sum from zero already"
        raise source.error(said, "overwrite", hint="leave it out, or describe the form that adds to its target")
    if keys.timing.chain is not None:
        said = "timing.chain: it waits for no accumulator, since its sum starts from zero"
        raise source.error(said, "timing", "chain", hint="give latency and interval")
    for key, given in (("pseudocode", keys.pseudocode), ("state.matrices", keys.state.get("matrices"))):
        if given is not None:
            said = f"{key} of an instruction whose sum starts from zero is not supported"
            raise source.error(said, key.split(".")[0], hint="describe the form that adds to its target")
