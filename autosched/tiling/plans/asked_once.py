"""Reductions that a row computes only where the data say so: each row asks once, before its loops."""

from __future__ import annotations

from dataclasses import replace

from autosched.ir.nodes import Stage
from autosched.ir.value import Literal, Value, is_value, reads
from autosched.ir.variables import value_vars


def asked_once(stage: Stage) -> tuple[Value, ...]:
    """Conditions on data that each row of an updating reduction asks once, since its axes do not change them; a row
    where one fails keeps what it has."""
    if stage.init is not None or not stage.reduction:
        return ()
    inner = {a.name for a in stage.reduction}
    return tuple(g for g in stage.guards if is_value(g) and not value_vars(g) & inner and not _reads(g, stage))


def _reads(value: Value, stage: Stage) -> bool:
    return any(r.tensor == stage.assign.tensor for r in reads(value))


def looked_at(stage: Stage) -> Stage:
    """A stage of such conditions as rows see it where they fail: what is computed behind them is left out."""
    if not asked_once(stage):
        return stage
    assign = replace(stage.assign, value=Literal(0, stage.assign.value.dtype))
    return replace(stage, axes=stage.spatial, assign=assign)
