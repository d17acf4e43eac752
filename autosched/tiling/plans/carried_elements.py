"""Stages each of whose elements is computed from the one before: `Y[i, j] = A[i, j] * Y[i, j - 1] + X[i, j]`."""

from __future__ import annotations

from autosched.ir.nodes import Stage
from autosched.ir.value import Read, is_plain, substitute
from autosched.logic import Var


def element_before(stage: Stage, axis: str) -> Read | None:
    """The element that the stage wrote in the iteration before of its loop `axis`, where it reads that one, and no
    other of its tensor."""
    assign = stage.assign
    if assign.op != "=" or stage.init is not None or stage.guards or stage.reduction or not is_plain(assign.index):
        return None
    if Var(axis) not in assign.index or assign.value.dtype.small_float:
        return None
    before = substitute(stage.target, {axis: Var(axis) - 1})
    own = {r for r in stage.reads if r.tensor == assign.tensor}
    return before if isinstance(before, Read) and own == {before} else None
