"""Choices in a body that are guards: `C += (A[…] if inside else 0) * B[…]` adds nothing where `inside` fails."""

from __future__ import annotations

from dataclasses import replace

from autosched.ir.value import Condition, Literal, Select, Value, map_value, walk
from autosched.tensorize.body_zero import is_zero_by_structure
from autosched.tensorize.reduction_update import Update


def lift_guards(update: Update) -> tuple[Update, tuple[Condition, ...]]:
    """The update with every choice between a value and zero taken out of its term, and their conditions.

    A choice is taken out only where zero in its place makes the whole term zero: leaving the step out is then the same
    as adding it, the sign of a zero aside.
    """
    if update.combine != "+":
        return update, ()
    found: list[Condition] = []
    term = update.term
    for node in list(walk(term)):
        if not (isinstance(node, Select) and isinstance(node.other, Literal) and node.other.value == 0):
            continue
        if is_zero_by_structure(_replaced(term, node, Literal(0, node.dtype))):
            term = _replaced(term, node, node.then)
            found.append(node.condition)
    return replace(update, term=term), tuple(dict.fromkeys(found))


def _replaced(term: Value, node: Value, by: Value) -> Value:
    return map_value(term, lambda v: by if v == node else v)
