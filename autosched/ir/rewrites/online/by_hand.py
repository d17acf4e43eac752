"""Carried state that is written by hand: a loop whose iterations need the one before, by no operation that is known.

    for j: Y[i] = tanh(Y[i] * 0.5 + X[i, j])

Such a loop keeps its order: no part of it can begin before the one in front has ended, and nothing says that partial
results combine. A sum, product, maximum or minimum is written `+=`, `*=`, `max`, `min`.
"""

from __future__ import annotations

from collections.abc import Iterator

from autosched.ir.nodes import Stage
from autosched.ir.printer import print_value
from autosched.ir.program import Program
from autosched.ir.rewrites.refusal import NotRewritten
from autosched.ir.rewrites.verdict import RewriteVerdict
from autosched.ir.value import Read
from autosched.logic import Var


def states_by_hand(program: Program) -> Iterator[RewriteVerdict]:
    """A refusal for each stage whose iterations read what an earlier one left."""
    for stage in program.stages:
        found = _carried(stage)
        if found is not None:
            axes, read = found
            one = f"an iteration of {', '.join(axes)} reads {print_value(read)} of the one before"
            text = f"{one}, which is no sum, product, maximum or minimum of terms: the loop keeps its order"
            reason = NotRewritten("DEPENDS", text, stage.name)
            yield RewriteVerdict("online", ", ".join(axes), (stage.name,), reason=reason)


def _carried(stage: Stage) -> tuple[list[str], Read] | None:
    """The axes along which a stage reads its own tensor, and what it reads."""
    target = stage.assign
    for read in stage.reads:
        if read.tensor != target.tensor:
            continue
        if read.index == target.index:
            axes = [a.name for a in stage.reduction]
        else:
            moved = {a.name for a, b in zip(target.index, read.index, strict=True) if a != b and isinstance(a, Var)}
            axes = [a.name for a in stage.axes if a.name in moved]
        if axes:
            return axes, read
    return None
