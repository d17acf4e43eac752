"""`operands: {b: {state: weights}}`: an operand that a state holds, where the instruction has one that can be held."""

from __future__ import annotations

from autosched.ir.program import Program
from autosched.tensorize.held import PLACES
from autosched.tensorize.spec.keys.models import IntrinsicKeys
from autosched.tensorize.spec.source import DocumentSource


def check_held(keys: IntrinsicKeys, program: Program, source: DocumentSource) -> None:
    """SpecError for an operand of a state where there is none that could hold it."""
    held: dict[str, str] = {}
    for name, own in keys.operands.items():
        wrong, hint = "", ""
        if own.state is None:
            continue
        if keys.kind != "compute":
            wrong, hint = f"its kind is {keys.kind}", "the instruction that loads a state says so by `moves: {to: …}`"
        elif name == program.stages[0].assign.tensor:
            wrong, hint = "it is what the instruction writes", "a state holds what a copy brings"
        elif own.state in PLACES:
            wrong, hint = f"{own.state} is where copies of tiles lie", "give the state a name of its own"
        elif own.state in held:
            wrong, hint = f"{held[own.state]} is in {own.state}, too", "a state holds one operand: give each its own"
        elif keys.emit or "matrices" in keys.state:
            wrong, hint = "texts and registers that hold matrices have no such operand", "leave `emit` out"
        if wrong:
            raise source.error(f"operand {name}: state: {wrong}", "operands", name, "state", hint=hint)
        held[own.state] = name
